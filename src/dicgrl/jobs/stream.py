"""The main job: a stream learned part by part, measured after each, and written to a run folder.

Besides what a learner saves, the folder gets its results and a trace of every epoch. A run that was
interrupted goes on after its last complete part and ends, on a CPU, with the numbers of one that
was not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import new_folder, remove_leftovers
from dicgrl.graph import Part, Stream
from dicgrl.intake import Intake
from dicgrl.jobs.folder import check_folder, holds_run, lock, write_results
from dicgrl.jobs.results import about_run, results_of
from dicgrl.jobs.resume import forked, resumed
from dicgrl.jobs.trace import append_trace
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import check_keep, save_learner
from dicgrl.training import EpochReport

OnPart = Callable[[dict[str, Any]], None]
"""Told the results so far after every part."""
OnEpoch = Callable[[int, EpochReport], None]
"""Told the number of the part and the report of every epoch."""


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
    about = about_run(stream, recipe)
    check_keep(keep)
    with lock(out):
        learner = _begun(stream, recipe, seed, device, out, resume, first)
        if learner.run.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(learner.run.device)
        if out is not None:
            remove_leftovers(out)
            if learner.num_parts and not holds_run(out):
                save_learner(learner, out, about, keep)
        found = None
        for number in range(learner.num_parts, len(stream)):
            found = learn_part(learner, stream[number], about, out, keep, on_epoch)
            if number == 0 and first is not None and not learner.strategy.keeps_state:
                _share(learner, first)
            if on_part:
                on_part(found)
        if found is None:  # all was learned before; results may have been lost when it was killed
            found = results_of(learner, about)
            if out is not None:
                save_learner(learner, out, about, keep)
                write_results(out, found)
        return found


def learn_part(
    learner: Learner,
    part: Part | Intake,
    about: dict[str, Any],
    out: Path | None,
    keep: str | None = None,
    on_epoch: OnEpoch | None = None,
) -> dict[str, Any]:
    """Learn a part, measure, and write what is known then; gives the results so far.

    Args:
        learner: The learner.
        part: A part of a stream, or what the learner made of facts.
        about: What `about_run` says of the run.
        out: Run folder; nothing is written without one.
        keep: As for `run_stream`.
        on_epoch: Told the part and the report of every epoch.
    """
    number = learner.num_parts
    trace: list[EpochReport] = []

    def watch(report: EpochReport) -> None:
        trace.append(report)
        if on_epoch:
            on_epoch(number, report)

    learner.learn(part, probe=True, monitor=watch)
    learner.evaluate()
    found = results_of(learner, about)
    if out is not None:
        append_trace(out, number, trace)
        save_learner(learner, out, about, keep)
        write_results(out, found)
    return found


def _begun(
    stream: Stream,
    recipe: Recipe,
    seed: int,
    device: str,
    out: Path | None,
    resume: bool,
    first: Path | None,
) -> Learner:
    """The learner that a run begins or goes on with."""
    if out is not None and check_folder(out, resume):
        return resumed(out, stream, recipe, seed, device)
    if first is not None and holds_run(first):
        return forked(first, stream, recipe, seed, device)
    return Learner(settings=recipe.settings, seed=seed, device=device, names=stream.names)


def _share(learner: Learner, first: Path) -> None:
    with contextlib.suppress(OSError), new_folder(first) as temporary:  # another run was faster
        save_learner(learner, temporary)
