"""The setting that is not continual: all parts merged, one model (the paper's appendix A).

The run folder is that of a stream of one part (`dicgrl.jobs.stream`): it answers the same
questions, and new facts can become its next part.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from dicgrl.graph import SPLITS, Stream
from dicgrl.jobs.stream import results
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import RunFolder
from dicgrl.training import DivergedError, EpochReport
from dicgrl.training.loop import Monitor


def run_whole(
    stream: Stream,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | None = None,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Train one model on the whole stream and measure it on the whole test set.

    With `out`, the folder gets what a run has there; when training diverges, the last good weights
    are there instead of a part.

    Returns:
        The results, as they are written to the folder.

    Raises:
        BusyError: Another process is writing to the folder.
        UserError: There is a run in it.
    """
    learner = Learner(settings=recipe.settings, seed=seed, device=device, names=stream.names)
    with contextlib.nullcontext() if out is None else RunFolder(out).locked():
        if out is not None:
            RunFolder(out).check_new(resumable=False)
        return _run_whole(learner, stream, recipe, out, monitor)


def _run_whole(
    learner: Learner, stream: Stream, recipe: Recipe, out: Path | None, monitor: Monitor | None
) -> dict[str, Any]:
    about = {
        "dataset": stream.name,
        "task": str(stream.task),
        "recipe": recipe.name,
        "published": recipe.published,
        "setting": "whole",
    }
    trace: list[EpochReport] = []

    def watch(report: EpochReport) -> None:
        trace.append(report)
        if monitor:
            monitor(report)

    try:
        report = learner.learn(stream.merged()[0], monitor=watch)
    except DivergedError:
        if out is not None:
            RunFolder(out).append_trace(0, trace)
            meta = {"dataset": stream.name, "seed": learner.seed}
            RunFolder(out).save_diverged(learner.state(), about=about, meta=meta)
        raise
    learner.evaluate()
    started = time.perf_counter()
    run = learner.run
    validation = run.measure(run.examples("valid")) if run.count("valid") else None
    found = results(learner, about) | {
        "learn_seconds": report.learn_seconds,
        "evaluate_seconds": report.evaluate_seconds + time.perf_counter() - started,
        "epochs": report.epochs,
        "best_epoch": report.best_epoch,
        "validation": validation,
        "test": _metrics(learner),
        "count": {split: run.count(split) for split in SPLITS},
    }
    if out is not None:
        RunFolder(out).append_trace(0, trace)
        learner.save(out, about=about)
        RunFolder(out).write_results(found)
    return found


def _metrics(learner: Learner) -> dict[str, Any] | None:
    """Metrics on the test set of the only part; None where it has none."""
    if not learner.tests[0]:
        return None
    return {name: v for name, v in learner.tests[0][0].items() if name not in ("part", "count")}
