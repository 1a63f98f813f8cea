"""Learns new facts as the next part of a stored run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dicgrl.intake import Facts, Intake
from dicgrl.jobs.changing import USUAL, ChangeOptions, changing
from dicgrl.jobs.stream import lacks, learn_part
from dicgrl.store.run_folder import RunFolder
from dicgrl.tasks import Task, task_of_model


@dataclass(frozen=True, slots=True)
class LearnOutcome:
    """What was done with the facts.

    Attributes:
        results: The results of the run, as written to `results.json`.
        intake: What was new in the facts. If nothing was, the run is unchanged, unless something
            was noted.
        noted: How many known facts got a later date (`dated`) or were counted again (`again`).
        caught_up: Whether nothing was learned, but measured what had not been before.
    """

    results: dict[str, Any]
    intake: Intake
    noted: Mapping[str, int] = field(default_factory=dict)
    caught_up: bool = False

    @property
    def told(self) -> dict[str, Any]:
        """The results, and what became of facts that were not learned."""
        intake = self.intake
        told: dict[str, Any] = {"nothing_new": True} if intake.is_empty else {}
        told |= {"noted": dict(self.noted)} if self.noted else {}
        counts = {"known": intake.known, "held_out": intake.held_out}
        counts |= {"self_loops": intake.self_loops} if intake.self_loops else {}
        dropped = {"facts": {"given": intake.given, **counts}} if any(counts.values()) else {}
        return self.results | told | dropped


def learn_facts(out: Path, facts: Facts, options: ChangeOptions = USUAL) -> LearnOutcome:
    """Learn what arrived after a run, and write it to the run's folder as its next part.

    Triples that are known already, or that the run holds out to measure with, are left out, and so
    are known edges; where nothing is left, the run stays as it is. What was not measured after its
    newest version, because it was saved from Python or with `evaluate` of none, is measured then.

    Args:
        out: The run folder.
        facts: What arrived, by its labels, as `Learner.learn` takes it: a file of triples, or files
            of new nodes and edges of a network, in any layout of docs/data.md; `-` for lines of
            triples, or of edges between known nodes, from standard input. Entities, relations and
            classes may be new.
        options: How.

    Raises:
        BusyError: Another process is writing to the run folder.
        UserError: It is asked for something that there is not.
    """
    with changing(out, options) as run:
        learner, folder = run.learner, RunFolder(out)
        intake = learner.intake(facts, reading=options.reading)
        if not intake.is_empty or learner.trainer.would_note(intake.given_part):
            results = learn_part(run, intake, options.at_most)
            newest = learner.trainer.history[-1]
            return LearnOutcome(results, intake, {n: len(a) for n, a in newest.arrays.items()})
        run.take_names(intake)
        behind = options.at_most is not None and lacks(learner)
        if behind:
            learner.evaluate(at_most=options.at_most or 0)
        results = run.results() | {"published": folder.config().get("published", {})}
        if behind or not folder.is_measured():  # saved from Python, or without measuring
            run.write(results)
        return LearnOutcome(results, intake, caught_up=behind)


def task_of(folder: Path) -> Task:
    """What the run in a folder learns; its model is not loaded.

    Raises:
        DataError: There is no run.
    """
    return task_of_model(RunFolder(folder).config().get("model", ""))


def would_fine_tune(folder: Path) -> bool:
    """Whether a run merged all parts into a plain model, which forgets when it learns on.

    Raises:
        DataError: There is no run.
    """
    config = RunFolder(folder).config()
    return config.get("setting") == "whole" and config.get("strategy") == "lower"
