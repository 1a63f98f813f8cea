"""A learner in a folder: safetensors for arrays, JSON for the rest, checksummed, no pickle.

    config.json   what the learner is: settings, seed, identity
    names-*.json  readable names of labels, where there are any
    part-0/       what arrived with a part, and what is known of it
        part.json         checksums of the files beside it
        data.safetensors  the part's triples, or nodes and edges, in ids of the graph
        labels.json       labels that were new
        report.json       what learning it took and what was measured after it
        model.*           the model after this part (see `dicgrl.store.checkpoint`)
        strategy.safetensors  what the strategy keeps

With `keep="last"` only the newest part has a model and a strategy's state beside it; config.json
remembers it.

A part's folder is written under another name and renamed when it is whole: a folder that is there
is complete, and a run that was killed goes on after its last part. Every byte is covered by a
checksum: config.json, part.json and report.json carry their own, the others stand in part.json
(names-*.json in config.json). All of them name the learner that they belong to. Loading reads, and
checks, all but the models of earlier parts. Where `dicgrl.jobs.stream` has left a results.json, which it
writes after each part, a newest part that was lost is missed, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dicgrl.common.atomic import check_place, new_folder, remove_leftovers, replacing_file
from dicgrl.common.devices import pick_device
from dicgrl.common.locks import locked
from dicgrl.errors import DataError, UserError, unknown_name
from dicgrl.graph import KnowledgePart, NetworkPart, Part, Vocabulary
from dicgrl.graph.part import SPLITS
from dicgrl.learner import Learner, PartReport
from dicgrl.models import BACKBONES
from dicgrl.settings import LinkSettings, NodeSettings
from dicgrl.store.checkpoint import checksum, load_model, save_model, write_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORMAT = "dicgrl-run-2"
KEEP = ("all", "last")
_MODEL = ("model.json", "model.safetensors", "strategy.safetensors")


def save_learner(
    learner: Learner, folder: Path, extra: dict[str, Any] | None = None, keep: str | None = None
) -> None:
    """Write a learner; parts that are there already are left as they are.

    Parts that this learner wrote to the folder or read from it are not looked at again, so that the
    cost follows what is new.

    Args:
        learner: The learner.
        folder: Where to; a folder that holds this learner's earlier parts, or none.
        extra: Further values for `config.json`.
        keep: Whose models stay in the folder: of all parts, or of the last; unless given, as the
            folder was begun, and all in a new one.

    Raises:
        BusyError: Another process is writing to the folder.
        UserError: The folder holds another learner, folders of runs or parts without their
            config.json, or is a file; or the last part was not learned to its end.
    """
    check_keep(keep)
    check_place(folder)
    learner.check_usable()
    with locked(folder):
        _save(learner, folder, extra, keep)


def _save(learner: Learner, folder: Path, extra: dict[str, Any] | None, keep: str | None) -> None:
    there = folder / "config.json"
    known = 0
    if there.exists():
        known = learner.stored.get(folder.resolve(), 0)
        config = read_config(folder)
        if config.get("identity") != learner.identity:
            raise UserError(f"{folder}: holds another run; choose another folder")
        keep = keep or config.get("keep")
        _rename(learner, folder, config)
    else:
        check_layout(folder, several=False)
        check_configured(folder)
        write_config(learner, folder, extra, keep or "all")
    for number in range(max(known - 1, 0), learner.num_parts):  # the last may be measured since
        place = part_folder(folder, number)
        report = _report(learner, number)
        if not place.exists():
            with new_folder(place) as temporary:
                _write_part(learner, number, temporary)
                _write_sealed(temporary / "report.json", report)
            continue
        if number >= known:
            _check_same(learner, number, place)
        if read_json(place / "report.json") != _sealed(report):
            _write_sealed(place / "report.json", report)
    learner.stored[folder.resolve()] = learner.num_parts
    if keep == "last":
        for number in range(learner.num_parts - 1):
            _drop_model(part_folder(folder, number), _key(learner, number))


def write_config(
    learner: Learner, folder: Path, extra: dict[str, Any] | None = None, keep: str = "all"
) -> None:
    """Write what a learner is, without its parts; for the arguments see `save_learner`."""
    config = (extra or {}) | configuration(learner) | {"keep": keep}
    # Before config.json, which says that there is a run here.
    _write_sealed(folder / "config.json", config | _write_names(learner, folder))


def _write_names(learner: Learner, folder: Path) -> dict[str, str]:
    """Write readable names to a file of their own; what config.json says of it."""
    digest = _digest(learner)
    if not digest:
        return {}
    write_json(_names_file(folder, digest), dict(learner.names))
    return {"names_sha256": digest}


def _rename(learner: Learner, folder: Path, config: dict[str, Any]) -> None:
    """Write names anew that are no longer what they were.

    Those that config.json named until now stay for whoever is just reading it; older ones go.
    """
    before, now = config.pop("names_sha256", ""), _digest(learner)
    if now == before:
        return
    _write_sealed(folder / "config.json", config | _write_names(learner, folder))
    needed = {_names_file(folder, digest) for digest in (before, now)}
    for place in set(folder.glob("names-*.json")) - needed:
        place.unlink(missing_ok=True)


def _read_names(folder: Path, config: dict[str, Any]) -> dict[str, str]:
    digest = config.get("names_sha256")
    if not digest:
        return {}
    place = _names_file(folder, digest)
    if not place.exists() and (folder / "names.json").exists():  # an earlier version's
        place = folder / "names.json"
    _check_sum(place, digest)
    names: dict[str, str] = read_json(place)
    return names


def _names_file(folder: Path, digest: str) -> Path:
    return folder / f"names-{digest[:8]}.json"


def _digest(learner: Learner) -> str:
    """Checksum of the file of a learner's names; empty where there are none."""
    if not learner.names:
        return ""
    return hashlib.sha256(_as_text(dict(learner.names)).encode()).hexdigest()


def check_keep(keep: str | None) -> None:
    """Refuse what is given and none of `KEEP`.

    Raises:
        UserError: It is not.
    """
    if keep is not None and keep not in KEEP:
        raise unknown_name("keep", keep, KEEP)


def check_layout(folder: Path, several: bool) -> None:
    """Refuse to mix a run with folders of runs, which is where several strategies go.

    Raises:
        UserError: The folder holds a run and several are to come, or the other way round.
    """
    if several and (folder / "config.json").exists():
        raise UserError(
            f"{folder}: holds a run already; several strategies need a folder of their own"
        )
    runs = _runs_in(folder)
    if not several and runs:
        raise UserError(
            f"{folder}: holds the runs {', '.join(runs)}; name one of them, or a new one"
        )


def check_configured(folder: Path) -> None:
    """Refuse parts that have lost their config.json, which is written before the first of them.

    Raises:
        UserError: There are such.
    """
    if not (folder / "config.json").exists() and _part_numbers(folder):
        raise UserError(
            f"{folder}: holds parts of a run, but config.json is missing; put it back, or choose "
            "another folder"
        )


def _runs_in(folder: Path) -> list[str]:
    found = []
    for place in folder.glob("*/config.json"):
        with contextlib.suppress(DataError):  # of somebody else
            content = read_json(place)
            if isinstance(content, dict) and content.get("format") == FORMAT:
                found.append(place.parent.name)
    return sorted(found)


def load_learner(folder: Path, device: str | torch.device = "auto") -> Learner:
    """Read back a learner with its newest part.

    Where another process saves a part meanwhile, and with it drops the model that is being read,
    it is read again.

    Raises:
        DataError: A file is missing, damaged or not of this package.
    """
    pick_device(device)  # a mistake there is not the folder's
    while True:
        config, parts = read_config(folder), saved_parts(folder)
        try:
            return _load(folder, config, device)
        except (DataError, FileNotFoundError) as error:
            if saved_parts(folder) != parts:
                continue
            if isinstance(error, DataError):
                raise
            raise DataError(folder, f"damaged run ({error})") from error


def _load(folder: Path, config: dict[str, Any], device: str | torch.device) -> Learner:
    try:
        kind = NodeSettings if config["model"] in BACKBONES else LinkSettings
        settings = kind(**config["settings"])
        learner = Learner(settings=settings, seed=config["seed"], device=device)
        learner.identity = config["identity"]
    except (KeyError, TypeError, UserError) as error:
        raise DataError(folder / "config.json", f"not a run that works here ({error})") from error
    learner.names = _read_names(folder, config)
    numbers = range(saved_parts(folder))
    if not numbers:
        return learner
    newest = part_folder(folder, numbers[-1])
    for number in numbers:
        _verify(part_folder(folder, number), _key(learner, number), number == numbers[-1])
    if not (newest / "model.json").exists():
        raise DataError(newest, "no model beside the newest part")
    model, _ = load_model(newest, learner.run.device)
    try:
        learner.run.recall(_parts(folder, len(numbers)), model)
        for number in numbers:
            path = part_folder(folder, number) / "report.json"
            _recall_report(learner, _read_sealed(path, _key(learner, number)))
        state = _read_tensors(newest / "strategy.safetensors")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(folder, f"damaged run ({error})") from error
    learner.strategy.restore({k: v.to(learner.run.device) for k, v in state.items()})
    learner.stored[folder.resolve()] = len(numbers)
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
        runs = _runs_in(folder)
        held = f"; the folder holds the runs {', '.join(runs)}" if runs else ""
        raise DataError(folder, f"no run here (config.json is missing){held}")
    return _read_sealed(path, {})


def read_results(folder: Path) -> dict[str, Any]:
    """The `results.json` of a run.

    Raises:
        DataError: There is none, or no part was finished.
    """
    config = read_config(folder)
    path = folder / "results.json"
    if not path.exists():
        if "dataset" not in config:  # `run` says what it learns
            raise DataError(
                folder,
                "saved from Python, without results.json; `dicgrl learn` writes it, also where its "
                "facts are known",
            )
        raise DataError(folder, "this run has no results yet; --resume goes on with it")
    results = read_json(path)
    if not results.get("parts"):
        raise DataError(path, "this run has no results yet")
    if results.get("setting") == "whole":
        raise DataError(folder, "a run of --whole; this needs one that learned part by part")
    parts = saved_parts(folder)
    if len(results["parts"]) != parts:
        raise DataError(
            path,
            f"of {len(results['parts'])} parts where the run has {parts}; `learn` or --resume"
            " writes it anew",
        )
    return results


def saved_parts(folder: Path) -> int:
    """How many parts of a run are complete.

    Raises:
        DataError: A part is missing between others, or one that results.json knows.
    """
    measured = measured_parts(folder)  # before parts are counted: one may be written meanwhile
    numbers = _part_numbers(folder)
    for number, found in enumerate(numbers):
        if number != found:
            raise DataError(part_folder(folder, number), "damaged run: this part is missing")
    if len(numbers) < measured:  # a part is written before the results that it led to
        raise DataError(
            part_folder(folder, len(numbers)),
            f"damaged run: this part is missing, results.json knows {measured}; put it back, or "
            f"remove results.json to go on after {len(numbers)}",
        )
    return len(numbers)


def measured_parts(folder: Path) -> int:
    """How many parts results.json is about; 0 where it cannot be read: it can be written anew."""
    try:
        return len(read_json(folder / "results.json")["parts"])
    except (DataError, KeyError, TypeError):
        return 0


def _part_numbers(folder: Path) -> list[int]:
    there = [p.name.removeprefix("part-") for p in folder.glob("part-*") if p.is_dir()]
    return sorted(int(name) for name in there if name.isdecimal())


def stored_parts(folder: Path) -> Iterator[Part]:
    """What a run has learned, part by part, in ids of its graph."""
    return _parts(folder, saved_parts(folder))


def data_checksums(folder: Path) -> list[tuple[str, str]]:
    """Checksums of the arrays and labels of every part; equal where the data is.

    Raises:
        DataError: A part is damaged or missing.
    """
    places = [part_folder(folder, number) for number in range(saved_parts(folder))]
    files = [_read_sealed(place / "part.json", {})["files"] for place in places]
    return [(each["data.safetensors"], each["labels.json"]) for each in files]


def part_folder(folder: Path, number: int) -> Path:
    """Where a part lies."""
    return folder / f"part-{number}"


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    with replacing_file(path) as temporary:
        temporary.write_text(_as_text(content), encoding="utf-8")


def _as_text(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its own checksum, as it is read back."""
    text = _as_text(content)
    plain: dict[str, Any] = json.loads(text)
    return plain | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def _write_sealed(path: Path, content: dict[str, Any]) -> None:
    write_json(path, _sealed(content))


def _read_sealed(path: Path, key: dict[str, Any]) -> dict[str, Any]:
    """Read back what `_write_sealed` wrote, byte for byte, for the same learner and part."""
    content = read_json(path)
    if content.get("format") != FORMAT:
        raise DataError(path, f"not a run of this version (expected format {FORMAT!r})")
    content.pop("sha256", None)
    # Its text is made again: that tells white space and repeated keys apart, too.
    if path.read_bytes() != _as_text(_sealed(content)).encode():
        raise DataError(path, "damaged: its checksum is not the one that was written")
    for name, value in key.items():
        if content.get(name) != value:
            raise DataError(path, f"of another run or part: {name} {content.get(name)}")
    return content


def _key(learner: Learner, number: int) -> dict[str, Any]:
    return {"identity": learner.identity, "part": number}


def _write_part(learner: Learner, number: int, place: Path) -> None:
    arrays, labels = part_content(learner.run.taken[number])
    write_arrays(arrays, place / "data.safetensors")
    write_json(place / "labels.json", labels)
    if number == learner.num_parts - 1:
        save_model(learner.run.model, place, {"part": number})
        kept = {k: v.cpu().contiguous() for k, v in learner.strategy.state().items()}
        write_arrays(kept, place / "strategy.safetensors")
    sums = {path.name: checksum(path) for path in sorted(place.iterdir())}
    described = {"format": FORMAT, **_key(learner, number), "files": sums}
    _write_sealed(place / "part.json", described)


def _drop_model(place: Path, key: dict[str, Any]) -> None:
    """Remove a part's model; part.json stops naming it first: what it names is always there."""
    left = [place / name for name in _MODEL if (place / name).exists()]
    if not left:
        return
    remove_leftovers(place)
    described = _read_sealed(place / "part.json", key)
    named = {name: value for name, value in described["files"].items() if name not in _MODEL}
    if named != described["files"]:
        _write_sealed(place / "part.json", described | {"files": named})
    for path in left:
        path.unlink()


def _report(learner: Learner, number: int) -> dict[str, Any]:
    answers = learner.first_answers if number == 0 else None
    return {
        "format": FORMAT,
        **_key(learner, number),
        "report": asdict(learner.reports[number]),
        "tests": learner.tests[number],
        "before": learner.before[number],
        "retention": learner.retention[number],
        "answers": None if answers is None else "".join(map(str, answers.int().tolist())),
    }


def _recall_report(learner: Learner, stored: dict[str, Any]) -> None:
    learner.reports.append(PartReport(**stored["report"]))
    learner.tests.append(stored["tests"])
    learner.before.append(stored["before"])
    learner.retention.append(stored["retention"])
    if stored["answers"] is not None:
        learner.first_answers = torch.tensor([sign == "1" for sign in stored["answers"]])


def _verify(place: Path, key: dict[str, Any], newest: bool) -> None:
    """Check the files of a part; models of parts that are not the newest are not read."""
    for name, expected in _read_sealed(place / "part.json", key)["files"].items():
        if newest or name not in _MODEL:
            _check_sum(place / name, expected)


def _check_sum(path: Path, expected: str) -> None:
    if not path.is_file():
        raise DataError(path, "damaged run: this file is missing")
    if checksum(path) != expected:
        raise DataError(path, "damaged: its checksum is not the one that was written")


def _check_same(learner: Learner, number: int, place: Path) -> None:
    _read_sealed(place / "part.json", _key(learner, number))
    stored = _read_tensors(place / "data.safetensors"), read_json(place / "labels.json")
    if not same_content(part_content(learner.run.taken[number]), stored):
        raise UserError(
            f"{place}: another part {number} was learned and saved here; choose another folder"
        )


Content = tuple[dict[str, Tensor], dict[str, Any]]


def fingerprint(parts: Iterable[Part]) -> str:
    """A checksum of what parts bring: their arrays and labels."""
    digest = hashlib.sha256()
    for part in parts:
        arrays, labels = part_content(part)
        for name, array in arrays.items():
            digest.update(f"{name} {tuple(array.shape)} ".encode())
            digest.update(array.contiguous().numpy().tobytes())
        digest.update(json.dumps(labels).encode())
    return digest.hexdigest()


def same_content(one: Content, other: Content) -> bool:
    """Whether two parts brought the same."""
    (arrays, labels), (theirs, their_labels) = one, other
    return (
        labels == their_labels
        and arrays.keys() == theirs.keys()
        and all(torch.equal(arrays[name], theirs[name]) for name in arrays)
    )


def part_content(part: Part) -> Content:
    """Arrays and new labels of a part, in ids of the graph."""
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
        labels = read_json(place / "labels.json")
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


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a run.

    Raises:
        DataError: It is missing or damaged.
    """
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
