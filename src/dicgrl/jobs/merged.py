"""The setting that is not continual: all parts merged, one model (the paper's appendix A).

The run folder is that of a stream of one part (`dicgrl.jobs.stream`): it answers the same
questions, and new facts can become its next part.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from dicgrl.graph import SPLITS, Stream
from dicgrl.jobs.changing import Changing
from dicgrl.jobs.held import held
from dicgrl.jobs.results import about_run
from dicgrl.learner import Learner
from dicgrl.parallel.group import speaks
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import Commit
from dicgrl.training import DivergedError
from dicgrl.training.loop import Monitor


def run_merged(
    stream: Stream,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | None = None,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Train one model on all parts of a stream and measure it on all their test sets.

    Args:
        stream: The stream.
        recipe: The settings.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        out: Run folder; nothing is written without one. When training diverges, it gets the last
            good weights instead of a part.
        monitor: Told about every epoch.

    Returns:
        The results, as written to `results.json`.

    Raises:
        BusyError: Another process is writing to the folder.
        UserError: There is a run in it.
    """
    learner = Learner(settings=recipe.settings, seed=seed, device=device, names=stream.names)
    if out is None:
        return _run_merged(learner, stream, recipe, None, monitor)
    folder = RunFolder(out)
    with held(folder):
        folder.check_new(resumable=False)
        return _run_merged(learner, stream, recipe, folder, monitor)


def _run_merged(
    learner: Learner,
    stream: Stream,
    recipe: Recipe,
    folder: RunFolder | None,
    monitor: Monitor | None,
) -> dict[str, Any]:
    about = about_run(stream, recipe) | {"setting": "whole"}
    told = (lambda _, report: monitor(report)) if monitor else None
    run = Changing(learner, about, folder, on_epoch=told)
    try:
        report = learner.learn(stream.merged()[0], monitor=run.watch)
    except DivergedError:
        if folder is not None:
            meta = {"dataset": stream.name, "seed": learner.seed}
            state = learner.state()
            if speaks():
                folder.save_diverged(state, Commit(about, trace=run.epochs), meta)
        raise
    learner.evaluate()
    started = time.perf_counter()
    trainer = learner.trainer
    validation = trainer.measure(trainer.examples("valid")) if trainer.count("valid") else None
    found = run.results() | {
        "learn_seconds": report.learn_seconds,
        "evaluate_seconds": report.evaluate_seconds + time.perf_counter() - started,
        "epochs": report.epochs,
        "best_epoch": report.best_epoch,
        "validation": validation,
        "test": _test_metrics(learner),
        "count": {split: trainer.count(split) for split in SPLITS},
    }
    run.write(found)
    return found


def _test_metrics(learner: Learner) -> dict[str, Any] | None:
    """Metrics on the test set of the only part; None where it has none."""
    if not learner.tests[0]:
        return None
    return {name: v for name, v in learner.tests[0][0].items() if name not in ("part", "count")}
