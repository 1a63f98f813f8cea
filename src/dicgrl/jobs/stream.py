"""The main job: a stream learned part by part, measured after each, and written to a run folder.

The folder is that of `dicgrl.store.run_folder`, with `results.json`, `trace.jsonl` (one line per epoch) and
the learning curves besides. A run that was interrupted goes on after its last complete part and
ends, on a CPU, with the numbers of one that was not.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import (
    append_to_file,
    check_place,
    new_folder,
    remove_leftovers,
    replacing_file,
)
from dicgrl.common.devices import device_name, peak_memory
from dicgrl.common.locks import locked
from dicgrl.errors import DataError, UserError
from dicgrl.graph import (
    SPLITS,
    KnowledgeGraph,
    NetworkGraph,
    NetworkPart,
    Part,
    Stream,
)
from dicgrl.learner import Learner, part_results
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import (
    check_configured,
    check_keep,
    check_layout,
    configuration,
    measured_parts,
    part_content,
    read_config,
    same_content,
    save_learner,
    write_json,
)
from dicgrl.training import EpochReport

_LONGEST_LINE = 1 << 16  # bytes of a trace that are read to find its last line

OnPart = Callable[[dict[str, Any]], None]
OnEpoch = Callable[[int, EpochReport], None]
OnKnown = Callable[[int], None]
OnNamed = Callable[[list[str]], None]
OnStale = Callable[[int, int, int], None]


def run_stream(
    stream: Stream,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | None = None,
    resume: bool = False,
    keep: str | None = None,
    first: Path | None = None,
    on_part: OnPart | None = None,
    on_epoch: OnEpoch | None = None,
) -> dict[str, Any]:
    """Learn a stream part by part.

    Args:
        stream: The stream.
        recipe: The settings.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        out: Run folder; nothing is written without one.
        resume: Go on with the run in the folder; where there is none, begin.
        keep: Whose models stay in the folder: of all parts, or of the last; unless given, as the
            run was begun, and all for a new one.
        first: Folder that keeps the first part for runs that differ only in how they learn later
            ones: it is taken from there, or put there.
        on_part: Told the results so far after every part.
        on_epoch: Told the part and the report of every epoch.

    Returns:
        The results, as written to `results.json`.

    Raises:
        BusyError: Another process is writing to the run folder.
    """
    about = {
        "dataset": stream.name,
        "task": str(stream.task),
        "recipe": recipe.name,
        "published": recipe.published,
    }
    check_keep(keep)
    with contextlib.nullcontext() if out is None else locked(out):
        if out is not None and check_folder(out, resume):
            learner = _resumed(out, stream, recipe, seed, device)
        elif first is not None and (first / "config.json").exists():
            learner = _forked(first, stream, recipe, seed, device)
        else:
            learner = Learner(
                settings=recipe.settings, seed=seed, device=device, names=stream.names
            )
        if learner.run.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(learner.run.device)
        if out is not None:
            remove_leftovers(out)
            if learner.num_parts and not (out / "config.json").exists():
                save_learner(learner, out, about, keep)
        found = None
        for number in range(learner.num_parts, len(stream)):
            found = _learn_part(learner, stream[number], about, out, keep, on_epoch)
            if number == 0 and first is not None and not learner.strategy.keeps_state:
                _share(learner, first)
            if on_part:
                on_part(found)
        if found is None:  # all was learned before; results may have been lost when it was killed
            found = results(learner, about)
            if out is not None:
                save_learner(learner, out, about, keep)
                write_json(out / "results.json", found)
        return found


def _learn_part(
    learner: Learner,
    part: Part,
    about: dict[str, Any],
    out: Path | None,
    keep: str | None,
    on_epoch: OnEpoch | None,
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Learn a part, measure, write what is known then; gives the results so far."""
    number = learner.num_parts
    trace: list[EpochReport] = []

    def watch(report: EpochReport) -> None:
        trace.append(report)
        if on_epoch:
            on_epoch(number, report)

    learner.learn(part, names=names, probe=True, monitor=watch)
    learner.evaluate()
    found = results(learner, about)
    if out is not None:
        append_trace(out, number, trace)
        save_learner(learner, out, about, keep)
        write_json(out / "results.json", found)
    return found


def learn_more(
    out: Path,
    facts: Path,
    *,
    device: str = "auto",
    keep: str | None = None,
    on_epoch: OnEpoch | None = None,
    on_known: OnKnown | None = None,
    on_named: OnNamed | None = None,
    on_stale: OnStale | None = None,
) -> dict[str, Any]:
    """Learn what arrived after a run, and write it to the run's folder as its next part.

    Triples that are known already, or that the run has set aside to measure with, are left out, and
    so are known edges; where nothing is left, the run stays as it is.

    Args:
        out: The run folder.
        facts: What arrived, by its labels: a file of triples, or files of new nodes and edges of a
            network, in any layout of docs/data.md. Entities, relations and classes may be new.
        device: auto, cpu or cuda.
        keep: As of `run_stream`.
        on_epoch: Told the part and the report of every epoch.
        on_known: Told how many facts there are where all of them are known.
        on_named: Told labels that are new, but are the readable names of others.
        on_stale: Told, where triples are left out, how many there are, how many of them are known,
            and how many are set aside.

    Returns:
        The results, as written to `results.json`.

    Raises:
        BusyError: Another process is writing to the run folder.
    """
    config = read_config(out)
    check_keep(keep)
    with locked(out):
        _trace_before(out, 0)  # a damaged one is found now, not when it is added to
        learner = Learner.load(out, device=device)
        remove_leftovers(out)
        about = {
            "dataset": config.get("dataset", out.name),
            "task": config.get("task", str(learner.task)),
            "recipe": config.get("recipe", "default"),
            "published": {},
        }
        part, names = learner.as_part(facts)
        given = sum(len(getattr(part, split)) for split in SPLITS)
        if isinstance(part, NetworkPart):
            given = len(part.edges)
        part, stale = learner.news(part)
        if on_stale and any(stale):
            on_stale(given, *stale)
        if not learner.brings_something(part):
            if names.items() - learner.names.items():
                learner.names.update(names)
                save_learner(learner, out, keep=keep)
            if on_known:
                on_known(given)
            found = results(learner, about | {"published": config.get("published", {})})
            if measured_parts(out) != learner.num_parts:  # a run that was killed may have lost it
                write_json(out / "results.json", found)
            return found
        named = learner.named_alike(part)
        if named and on_named:
            on_named(named)
        return _learn_part(learner, part, about, out, keep, on_epoch, names)


def _share(learner: Learner, first: Path) -> None:
    with contextlib.suppress(OSError), new_folder(first) as temporary:  # another run was faster
        save_learner(learner, temporary)


def check_folder(out: Path, resume: bool, resumable: bool = True) -> bool:
    """Whether a folder holds a run to go on with; where none is `resumable`, none may be there.

    Raises:
        UserError: It holds a run and nobody asked to go on with it, or folders of runs, or parts
            without their config.json, or a damaged trace; or it is no folder.
    """
    check_place(out)
    there = (out / "config.json").exists()
    if there and not resume:
        go_on = ", or go on with it (--resume)" if resumable else ""
        raise UserError(f"{out}: holds a run already; choose another folder{go_on}")
    if not there:
        check_layout(out, several=False)
        check_configured(out)
    _trace_before(out, 0)  # a damaged one is found now, not when it is added to
    return there


def results(learner: Learner, about: dict[str, Any]) -> dict[str, Any]:
    """What `results.json` says."""
    config = configuration(learner)
    found = learner.evaluations()
    last = found[-1]
    return {
        **about,
        "model": config["model"],
        "strategy": config["strategy"],
        "seed": learner.seed,
        "device": device_name(learner.run.device),
        "settings": config["settings"],
        "protocol": config["protocol"],
        "parts": [part_results(*entry) for entry in zip(learner.reports, found, strict=True)],
        "forgetting": last.forgetting,
        "backward_transfer": last.backward_transfer,
        "forward_transfer": last.forward_transfer,
        "retention": last.retention,
        "peak_memory_bytes": peak_memory(learner.run.device),
    }


def _resumed(out: Path, stream: Stream, recipe: Recipe, seed: int, device: str) -> Learner:
    config = read_config(out)
    if isinstance(config.get("settings"), dict):  # settings that are younger had their defaults
        defaults = type(recipe.settings)().as_dict()
        config["settings"] = json.loads(json.dumps(defaults)) | config["settings"]
    if config.get("setting") == "whole":
        raise UserError(f"{out}: a run of --whole, not one that learns this stream part by part")
    wanted = {
        "dataset": stream.name,
        "seed": seed,
        "settings": json.loads(json.dumps(recipe.settings.as_dict())),
    }
    for key, value in wanted.items():
        if config.get(key) != value:
            differs = key
            if key == "settings":
                stored = config.get(key) or {}
                differs = next((k for k in value if stored.get(k) != value[k]), key)
                value, config = value[differs], stored
            raise UserError(
                f"{out}: the run there has {differs}={config.get(differs)!r}, not {value!r}; "
                "resume it as it was begun, or choose another folder"
            )
    learner = Learner.load(out, device=device)
    if learner.num_parts > len(stream):
        raise UserError(f"{out}: the run there is longer than this stream")
    _check_parts(out, learner, stream)
    return learner


def _forked(first: Path, stream: Stream, recipe: Recipe, seed: int, device: str) -> Learner:
    learner = Learner.load(first, device=device)
    if learner.seed != seed:
        raise UserError(f"{first}: the first part there was learned with seed {learner.seed}")
    _check_parts(first, learner, stream)
    return learner.fork(recipe.settings)


def _check_parts(folder: Path, learner: Learner, stream: Stream) -> None:
    """Refuse a learner whose parts are not those of the stream."""
    first = stream[0]
    graph: Any = KnowledgeGraph()
    if isinstance(first, NetworkPart):
        graph = NetworkGraph(first.features.shape[1])
    for number, taken in enumerate(learner.run.taken):
        if not same_content(part_content(graph.add(stream[number])), part_content(taken)):
            raise UserError(
                f"{folder}: part {number} of the run there is not that of this stream; it came by "
                "`learn`, from other data or with another --valid or --test"
            )


def append_trace(out: Path, part: int, trace: list[EpochReport]) -> None:
    """Add a part's epochs; lines of that part from a run that was killed are dropped.

    The cost follows the epochs, unless there is something to drop: then the file is replaced. It
    is called before the part is saved, so that a line that a killed process left unfinished is of
    a part that is learned again.
    """
    path = out / "trace.jsonl"
    added = [json.dumps({"part": part, **asdict(entry)}) for entry in trace]
    if _ends_before(path, part):
        append_to_file(path, _as_lines(added))
        return
    kept = _trace_before(out, part)
    with replacing_file(path) as temporary:
        temporary.write_text(_as_lines(kept + added), encoding="utf-8")


def _as_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _ends_before(path: Path, part: int) -> bool:
    """Whether the last line of a trace is whole and of an earlier part."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_LINE, 0))
            *lines, rest = file.read().split(b"\n")
        return not rest and bool(json.loads(lines[-1])["part"] < part)
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return False


def _trace_before(out: Path, part: int) -> list[str]:
    """Lines of earlier parts in the trace, without a last one that was not written to its end."""
    path = out / "trace.jsonl"
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text.splitlines()
        if len(lines) > 1 and not text.endswith(("\n", "}")):  # the first lines come at once
            lines.pop()
        kept = [line for line in lines if json.loads(line)["part"] < part]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(path, f"damaged ({error}); remove the file to go on without it") from error
    return kept
