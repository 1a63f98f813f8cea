"""A learner in a folder: safetensors for arrays, JSON for the rest, checksummed, no pickle.

    config.json   what the learner is: settings, seed, identity
    names.json    readable names of labels, where there are any
    part-0/       what arrived with a part, and what is known of it
        part.json         checksums of the files beside it
        data.safetensors  the part's triples, or nodes and edges, in ids of the graph
        labels.json       labels that were new
        report.json       what learning it took and what was measured after it
        model.*           the model after this part (see `dicgrl.checkpoint`)
        strategy.safetensors  what the strategy and the measurements keep

A part's folder is written under another name and renamed when it is whole: a folder that is there
is complete, and a run that was killed goes on after its last part.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dicgrl.checkpoint import checksum, load_model, save_model
from dicgrl.errors import DataError, UserError
from dicgrl.files import new_folder, replacing_file
from dicgrl.graph import KnowledgePart, NetworkPart, Part, Vocabulary
from dicgrl.graph.part import SPLITS
from dicgrl.learner import Learner, PartReport
from dicgrl.models import BACKBONES
from dicgrl.settings import LinkSettings, NodeSettings
from dicgrl.tasks import LinkRun, NodeRun

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = "dicgrl-run-1"


def save_learner(learner: Learner, folder: Path, extra: dict[str, Any] | None = None) -> None:
    """Write a learner; parts that are there already are left as they are.

    Args:
        learner: The learner.
        folder: Where to; a folder that holds this learner's earlier parts, or none.
        extra: Further values for `config.json`.

    Raises:
        UserError: The folder holds another learner.
    """
    there = folder / "config.json"
    if there.exists():
        found = _read_json(there)
        if found.get("identity") != learner.identity:
            raise UserError(f"{folder}: holds another run; choose another folder")
    else:
        write_json(there, (extra or {}) | configuration(learner))
        if learner.names:
            write_json(folder / "names.json", learner.names)
    for number in range(learner.num_parts):
        place = part_folder(folder, number)
        if place.exists():
            _check_same(learner, number, place)
            continue
        with new_folder(place) as temporary:
            _write_part(learner, number, temporary)
    if not learner.num_parts:
        return
    newest = part_folder(folder, learner.num_parts - 1)
    report = _report(learner, learner.num_parts - 1)
    if _read_json(newest / "report.json") != report:  # measured since
        write_json(newest / "report.json", report)


def load_learner(folder: Path, device: str = "auto") -> Learner:
    """Read back a learner with its newest part.

    Raises:
        DataError: A file is missing, damaged or not of this package.
    """
    config = read_config(folder)
    try:
        kind = NodeSettings if config["model"] in BACKBONES else LinkSettings
        settings = kind(**config["settings"])
        learner = Learner(settings=settings, seed=config["seed"], device=device)
        learner.identity = config["identity"]
    except (KeyError, TypeError, UserError) as error:
        if isinstance(error, UserError) and "device" in str(error):
            raise
        raise DataError(folder / "config.json", f"damaged run ({error})") from error
    if (folder / "names.json").exists():
        learner.names = _read_json(folder / "names.json")
    numbers = range(saved_parts(folder))
    if not numbers:
        return learner
    newest = part_folder(folder, numbers[-1])
    for number in numbers:
        _verify(part_folder(folder, number))
    if not (newest / "model.json").exists():
        raise DataError(newest, "no model beside the newest part")
    model, _ = load_model(newest, learner.run.device)
    try:
        learner.run.recall(_parts(folder, len(numbers)), model)
        for number in numbers:
            _recall_report(learner, _read_json(part_folder(folder, number) / "report.json"))
        state = _read_tensors(newest / "strategy.safetensors")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(folder, f"damaged run ({error})") from error
    learner.first_answers = state.pop("first_answers", None)
    learner.strategy.restore({k: v.to(learner.run.device) for k, v in state.items()})
    return learner


def configuration(learner: Learner) -> dict[str, Any]:
    """What a learner is, ready for JSON."""
    return {
        "format": FORMAT,
        "identity": learner.identity,
        "model": learner.settings.model,
        "strategy": learner.settings.strategy,
        "seed": learner.seed,
        "settings": learner.settings.as_dict(),
        "protocol": learner.run.describe_protocol(),
    }


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a run.

    Raises:
        DataError: There is none, or it is not of this package.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise DataError(folder, "no run here (config.json is missing)")
    config = _read_json(path)
    if config.get("format") != FORMAT:
        raise DataError(path, f"not a run of this version (expected format {FORMAT!r})")
    return config


def read_results(folder: Path) -> dict[str, Any]:
    """The `results.json` of a run.

    Raises:
        DataError: There is none, or no part was finished.
    """
    read_config(folder)
    path = folder / "results.json"
    if not path.exists():
        raise DataError(folder, "this run has no results yet; --resume goes on with it")
    results = _read_json(path)
    if not results.get("parts"):
        raise DataError(path, "this run has no results yet")
    return results


def saved_parts(folder: Path) -> int:
    """How many parts of a run are complete."""
    number = 0
    while part_folder(folder, number).is_dir():
        number += 1
    return number


def part_folder(folder: Path, number: int) -> Path:
    """Where a part lies."""
    return folder / f"part-{number}"


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    with replacing_file(path) as temporary:
        temporary.write_text(
            json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _write_part(learner: Learner, number: int, place: Path) -> None:
    arrays, labels = _part_content(learner.run, number)
    save_file(arrays, place / "data.safetensors")
    write_json(place / "labels.json", labels)
    if number == learner.num_parts - 1:
        save_model(learner.run.model, place, {"part": number})
        kept = {k: v.cpu().contiguous() for k, v in learner.strategy.state().items()}
        if learner.first_answers is not None:
            kept["first_answers"] = learner.first_answers
        save_file(kept, place / "strategy.safetensors")
    sums = {path.name: checksum(path) for path in sorted(place.iterdir())}
    write_json(place / "part.json", {"format": FORMAT, "part": number, "sha256": sums})
    write_json(place / "report.json", _report(learner, number))


def _report(learner: Learner, number: int) -> dict[str, Any]:
    return {
        "report": asdict(learner.reports[number]),
        "tests": learner.tests[number],
        "before": learner.before[number],
        "retention": learner.retention[number],
    }


def _recall_report(learner: Learner, stored: dict[str, Any]) -> None:
    learner.reports.append(PartReport(**stored["report"]))
    learner.tests.append(stored["tests"])
    learner.before.append(stored["before"])
    learner.retention.append(stored["retention"])


def _verify(place: Path) -> None:
    described = _read_json(place / "part.json")
    if described.get("format") != FORMAT:
        raise DataError(place / "part.json", f"not of this version (expected format {FORMAT!r})")
    sums = described.get("sha256")
    if not isinstance(sums, dict):
        raise DataError(place / "part.json", "damaged: it lists no checksums")
    for name, expected in sums.items():
        path = place / Path(name).name
        if not path.is_file() or checksum(path) != expected:
            raise DataError(path, "damaged: its checksum is not the one that was written")


def _check_same(learner: Learner, number: int, place: Path) -> None:
    arrays, labels = _part_content(learner.run, number)
    stored = _read_tensors(place / "data.safetensors")
    same = stored.keys() == arrays.keys() and all(
        torch.equal(stored[name], arrays[name]) for name in arrays
    )
    if not same or _read_json(place / "labels.json") != labels:
        raise UserError(
            f"{place}: another part {number} was learned and saved here; choose another folder"
        )


def _part_content(run: LinkRun | NodeRun, number: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Arrays and new labels of a part, in ids of the graph."""
    part = run.taken[number]
    if isinstance(part, KnowledgePart):
        arrays = {split: getattr(part, split) for split in SPLITS}
        labels = {
            "entities": part.entities.labels(part.new_entities),
            "relations": part.relations.labels(part.new_relations),
        }
    else:
        names = ("edges", "features", "labels", *SPLITS)
        arrays = {name: getattr(part, name) for name in names}
        labels = {
            "nodes": part.nodes.labels(part.new_nodes),
            "classes": part.classes.labels(part.new_classes),
        }
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, labels


def _parts(folder: Path, count: int) -> Iterator[Part]:
    first, second = Vocabulary(), Vocabulary()
    for number in range(count):
        place = part_folder(folder, number)
        labels = _read_json(place / "labels.json")
        arrays = {k: v.numpy() for k, v in _read_tensors(place / "data.safetensors").items()}
        is_network = "nodes" in labels
        names = ("nodes", "classes") if is_network else ("entities", "relations")
        ranges = []
        for vocabulary, name in zip((first, second), names, strict=True):
            known = len(vocabulary)
            vocabulary.add(labels[name])
            ranges.append(range(known, len(vocabulary)))
        kind: Any = NetworkPart if is_network else KnowledgePart
        yield kind(number, first, second, *ranges, **arrays)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(path, "damaged run: this file is missing") from None
    except (ValueError, OSError) as error:
        raise DataError(path, f"damaged ({error})") from error
    if not isinstance(content, dict):
        raise DataError(path, "damaged: expected a JSON object")
    return content


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(path, f"damaged ({error})") from error
