"""The main job: a stream learned part by part, measured after each, and written to a run folder.

The folder is a `dicgrl.store.run_folder.RunFolder`. A run that was interrupted resumes after its
last complete part and ends, on a CPU, with the numbers of one that was not.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import new_folder
from dicgrl.common.devices import device_name, peak_memory
from dicgrl.errors import UserError
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
from dicgrl.store.content import part_content, same_content
from dicgrl.store.run_folder import RunFolder, check_keep
from dicgrl.training import EpochReport

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
        The results, as they are written to the folder.

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
    with contextlib.nullcontext() if out is None else RunFolder(out).locked():
        if out is not None and RunFolder(out).check_new(resume=resume):
            learner = _resumed(out, stream, recipe, seed, device)
        elif first is not None and RunFolder(first).exists():
            learner = _forked(first, stream, recipe, seed, device)
        else:
            learner = Learner(
                settings=recipe.settings, seed=seed, device=device, names=stream.names
            )
        if learner.run.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(learner.run.device)
        if out is not None:
            RunFolder(out).remove_leftovers()
            if learner.num_parts and not RunFolder(out).exists():
                learner.save(out, about=about, keep=keep)
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
                learner.save(out, about=about, keep=keep)
                RunFolder(out).write_results(found)
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
        RunFolder(out).append_trace(number, trace)
        learner.save(out, about=about, keep=keep)
        RunFolder(out).write_results(found)
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
        The results, as they are written to the folder.

    Raises:
        BusyError: Another process is writing to the run folder.
    """
    folder = RunFolder(out)
    config = folder.config()
    check_keep(keep)
    with folder.locked():
        folder.check_trace()
        learner = Learner.load(out, device=device)
        folder.remove_leftovers()
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
                learner.save(out, keep=keep)
            if on_known:
                on_known(given)
            found = results(learner, about | {"published": config.get("published", {})})
            if folder.measured_parts() != learner.num_parts:  # lost where the run was killed
                folder.write_results(found)
            return found
        named = learner.named_alike(part)
        if named and on_named:
            on_named(named)
        return _learn_part(learner, part, about, out, keep, on_epoch, names)


def _share(learner: Learner, first: Path) -> None:
    with contextlib.suppress(OSError), new_folder(first) as temporary:  # another run was faster
        learner.save(temporary)


def results(learner: Learner, about: dict[str, Any]) -> dict[str, Any]:
    """What is known of a learner and was measured after each of its parts, ready for JSON."""
    found = learner.evaluations()
    last = found[-1]
    return {
        **about,
        "model": learner.settings.model,
        "strategy": learner.settings.strategy,
        "seed": learner.seed,
        "device": device_name(learner.run.device),
        "settings": learner.settings.as_dict(),
        "protocol": learner.run.describe_protocol(),
        "parts": [part_results(*entry) for entry in zip(learner.reports, found, strict=True)],
        "forgetting": last.forgetting,
        "backward_transfer": last.backward_transfer,
        "forward_transfer": last.forward_transfer,
        "retention": last.retention,
        "peak_memory_bytes": peak_memory(learner.run.device),
    }


def _resumed(out: Path, stream: Stream, recipe: Recipe, seed: int, device: str) -> Learner:
    config = RunFolder(out).config()
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
