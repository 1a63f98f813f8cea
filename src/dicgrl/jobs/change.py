"""Corrects a stored run: facts are taken back or replaced, labels renamed or merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dicgrl.evaluation.part_report import PartReport
from dicgrl.intake import Facts
from dicgrl.jobs.learn import about_stored, most_measured
from dicgrl.jobs.results import results_of
from dicgrl.jobs.stream import OnEpoch
from dicgrl.learner import Learner
from dicgrl.readers import NetworkFacts, Reading
from dicgrl.readers.pairs import read_pairs
from dicgrl.readers.sources import open_file
from dicgrl.relabel import Pair
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.training import EpochReport
from dicgrl.training.loop import Monitor

Step = Callable[[Learner, Monitor], PartReport]
"""Lets a change happen to a learner."""


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change.

    Attributes:
        results: The results of the run, as written to `results.json`.
        report: What the change took.
    """

    results: dict[str, Any]
    report: PartReport


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How a change is made.

    Attributes:
        device: auto, cpu or cuda.
        keep: As for `run_stream`.
        evaluate: As for `learn_facts`.
        message: What to say of the version.
        wait: Seconds to wait for another process that is writing to the run.
        reading: How files are to be read, where they do not say it themselves.
        on_epoch: Told the part and the report of every epoch.
    """

    device: str = "auto"
    keep: str | None = None
    evaluate: str = "sample"
    message: str = ""
    wait: float = 0.0
    reading: Reading | None = None
    on_epoch: OnEpoch | None = None


USUAL = ChangeOptions()


def forget_facts(out: Path, facts: Facts, options: ChangeOptions = USUAL) -> ChangeOutcome:
    """Let a run forget the facts of a file; see `Learner.forget`.

    Args:
        out: The run folder.
        facts: The facts, as `learn_facts` takes them; `-` for standard input. Of a network also a
            file of lines of two: an edge, or a node and its class.
        options: How.
    """

    def forget(learner: Learner, watch: Monitor) -> PartReport:
        return learner.forget(facts, reading=options.reading, monitor=watch)

    return _change(out, forget, options)


def replace_facts(
    out: Path, old: Facts, new: Facts, options: ChangeOptions = USUAL
) -> ChangeOutcome:
    """Let a run forget the facts of one file and learn those of another; see `Learner.replace`."""

    def replace(learner: Learner, watch: Monitor) -> PartReport:
        return learner.replace(old, new, reading=options.reading, monitor=watch)

    return _change(out, replace, options)


def rename_labels(
    out: Path, pairs: Iterable[Pair], of: str | None = None, options: ChangeOptions = USUAL
) -> ChangeOutcome:
    """Give what a run knows other labels; see `Learner.rename_many`."""
    return _change(out, lambda learner, _: learner.rename_many(pairs, of=of), options)


def merge_labels(
    out: Path, pairs: Iterable[Pair], of: str | None = None, options: ChangeOptions = USUAL
) -> ChangeOutcome:
    """Make what a run knows as two one; see `Learner.merge_many`."""
    return _change(
        out, lambda learner, watch: learner.merge_many(pairs, of=of, monitor=watch), options
    )


def revise_nodes(
    out: Path, nodes: str | Path | NetworkFacts, options: ChangeOptions = USUAL
) -> ChangeOutcome:
    """Let known nodes of a run have other classes or features; see `Learner.revise`.

    Raises:
        UserError: The run is not of a network, or there is nothing to revise.
    """

    def revise(learner: Learner, watch: Monitor) -> PartReport:
        told = nodes
        if isinstance(told, str | Path):
            told = learner.task.read_revision(open_file(Path(told)))
        return learner.revise(told, monitor=watch)

    return _change(out, revise, options)


def retrain_run(out: Path, options: ChangeOptions = USUAL) -> ChangeOutcome:
    """Let a new model learn all that a run knows; see `Learner.retrain`."""
    return _change(out, lambda learner, watch: learner.retrain(monitor=watch), options)


def pairs_in(path: Path) -> list[tuple[str, str]]:
    """Pairs of labels in a file of two columns; `-` for standard input."""
    return read_pairs(open_file(path))


def _change(out: Path, step: Step, options: ChangeOptions) -> ChangeOutcome:
    """Change the run in a folder, measure, and write what is known then.

    Raises:
        BusyError: Another process is writing to the run folder.
        UserError: There is a mistake in what is asked for; the run is as it was.
    """
    folder = RunFolder(out)
    config = folder.config()
    check_keep(options.keep)
    at_most = most_measured(options.evaluate)
    trace: list[EpochReport] = []
    with folder.locked(options.wait):
        learner = Learner.load(out, device=options.device)
        folder.clear_up()

        def watch(report: EpochReport) -> None:
            trace.append(report)
            if options.on_epoch:
                options.on_epoch(learner.num_parts, report)

        report = step(learner, watch)
        if at_most is not None:
            learner.evaluate(at_most=at_most)
        results = results_of(learner, about_stored(config, learner, out))
        learner.save(
            out,
            keep=options.keep,
            message=options.message,
            results=results,
            trace=[asdict(epoch) for epoch in trace],
        )
    return ChangeOutcome(results, report)
