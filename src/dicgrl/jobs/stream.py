"""The main job: a stream learned part by part, measured after each, and written to a run folder.

Besides what a learner saves, the folder gets the results and a trace of every epoch. An interrupted
run continues after its last complete part. On a CPU it ends with the same numbers as a run that was
never interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import new_folder
from dicgrl.evaluation.metrics import SNAPSHOT
from dicgrl.graph import Part, Stream
from dicgrl.intake import Intake
from dicgrl.jobs.changing import Changing, OnEpoch
from dicgrl.jobs.held import clear_up, held
from dicgrl.jobs.results import about_run, results_of
from dicgrl.jobs.resume import forked, resumed
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.trainers.snapshots import check_protocol

OnPart = Callable[[dict[str, Any]], None]
"""Told the results so far after every part."""


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
    protocol: str = "seen",
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
        protocol: How it is measured, as for `Learner.evaluate`.
        on_part: Told the results so far after every part.
        on_epoch: Told the part and the report of every epoch.

    Returns:
        The results, as written to `results.json`.

    Raises:
        BusyError: Another process is writing to the run folder.
    """
    about = about_run(stream, recipe)
    check_keep(keep)
    check_protocol(protocol, recipe.settings.task.trainer_type())
    folder = None if out is None else RunFolder(out)
    with held(folder):
        learner = _begun(stream, recipe, seed, device, folder, resume, first)
        if learner.trainer.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(learner.trainer.device)
        if folder is not None:
            clear_up(folder)
            if learner.num_parts and not folder.exists():
                learner.save(folder.path, keep=keep, about=about)
        found = None
        for number in range(learner.num_parts, len(stream)):
            run = Changing(learner, about, folder, keep, on_epoch=on_epoch)
            found = learn_part(run, stream[number], protocol=protocol)
            if number == 0 and first is not None and not learner.strategy.keeps_state:
                _share(learner, first)
            if on_part:
                on_part(found)
        if found is None:  # all was learned before; results may have been lost when it was killed
            if lacks(learner, protocol):
                learner.evaluate(protocol=protocol)
            found = results_of(learner, about)
            if folder is not None:
                learner.save(folder.path, keep=keep, about=about, results=found)
        return found


def learn_part(
    run: Changing, part: Part | Intake, at_most: int | None = 0, protocol: str = "seen"
) -> dict[str, Any]:
    """Learn a part, measure, and write what is known then; gives the results so far.

    Args:
        run: The run that learns it.
        part: A part of a stream, or what the learner made of facts.
        at_most: Test examples to measure, as for `Learner.evaluate`; None measures nothing.
        protocol: How it is measured, as for `Learner.evaluate`.
    """
    measures = at_most is not None
    run.learner.learn(part, probe=measures, probe_at_most=at_most or 0, monitor=run.watch)
    if measures:
        run.learner.evaluate(at_most=at_most or 0, protocol=protocol)
    found = run.results()
    run.write(found)
    return found


def lacks(learner: Learner, protocol: str = "seen") -> bool:
    """Whether there are test examples, and a protocol was not measured after the newest change."""
    tests = learner.tests[-1] if learner.tests else []
    if not tests:
        return bool(learner.num_parts and learner.trainer.count("test"))
    return protocol == "snapshot" and any(f"mrr{SNAPSHOT}" not in test for test in tests)


def _begun(
    stream: Stream,
    recipe: Recipe,
    seed: int,
    device: str,
    folder: RunFolder | None,
    resume: bool,
    first: Path | None,
) -> Learner:
    """The learner that a run begins or goes on with."""
    if folder is not None and folder.check_new(resume=resume):
        return resumed(folder, stream, recipe, seed, device)
    if first is not None and RunFolder(first).exists():
        return forked(first, stream, recipe, seed, device)
    return Learner(settings=recipe.settings, seed=seed, device=device, names=stream.names)


def _share(learner: Learner, first: Path) -> None:
    with contextlib.suppress(OSError), new_folder(first) as temporary:  # another run was faster
        learner.save(temporary)
