"""Corrects a stored run: facts are taken back or replaced, labels renamed or merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicgrl.evaluation.part_report import PartReport
from dicgrl.intake import Facts
from dicgrl.jobs.changing import USUAL, ChangeOptions, changing
from dicgrl.learner import Learner
from dicgrl.readers import NetworkFacts
from dicgrl.readers.pairs import read_pairs
from dicgrl.readers.sources import open_file
from dicgrl.relabel import Pair
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
    with changing(out, options) as run:
        report = step(run.learner, run.watch)
        if options.at_most is not None:
            run.learner.evaluate(at_most=options.at_most)
        results = run.results()
        run.write(results)
    return ChangeOutcome(results, report)
