"""Learns new facts as the next part of a stored run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dicgrl.errors import unknown_name
from dicgrl.intake import Facts, Intake
from dicgrl.jobs.held import clear_up, held
from dicgrl.jobs.results import results_of
from dicgrl.jobs.stream import OnEpoch, learn_part
from dicgrl.learner import Learner
from dicgrl.readers import Reading
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.tasks import Task, task_of_model

EVALUATE: dict[str, int | None] = {"sample": 2000, "all": 0, "none": None}
"""How much is measured after a part was learned: test examples at most, 0 for all."""


@dataclass(frozen=True, slots=True)
class LearnOutcome:
    """What was done with the facts.

    Attributes:
        results: The results of the run, as written to `results.json`.
        intake: What was new in the facts. If nothing was, the run is unchanged, unless something
            was noted.
        noted: How many known facts got a later date (`dated`) or were counted again (`again`).
    """

    results: dict[str, Any]
    intake: Intake
    noted: Mapping[str, int] = field(default_factory=dict)

    @property
    def told(self) -> dict[str, Any]:
        """The results, and what became of facts that were not learned."""
        intake = self.intake
        told: dict[str, Any] = {"nothing_new": True} if intake.is_empty else {}
        told |= {"noted": dict(self.noted)} if self.noted else {}
        facts = {"given": intake.given, "known": intake.known, "held_out": intake.held_out}
        dropped = {"facts": facts} if intake.known or intake.held_out else {}
        return self.results | told | dropped


def learn_facts(
    out: Path,
    facts: Facts,
    *,
    device: str = "auto",
    keep: str | None = None,
    evaluate: str = "sample",
    message: str = "",
    wait: float = 0.0,
    reading: Reading | None = None,
    on_epoch: OnEpoch | None = None,
) -> LearnOutcome:
    """Learn what arrived after a run, and write it to the run's folder as its next part.

    Triples that are known already, or that the run holds out to measure with, are left out, and so
    are known edges; where nothing is left, the run stays as it is.

    Args:
        out: The run folder.
        facts: What arrived, by its labels, as `Learner.learn` takes it: a file of triples, or files
            of new nodes and edges of a network, in any layout of docs/data.md; `-` for lines of
            triples, or of edges between known nodes, from standard input. Entities, relations and
            classes may be new.
        device: auto, cpu or cuda.
        keep: As for `run_stream`.
        evaluate: What is measured then: a sample of the test sets where there are many (`sample`),
            `all` of them or `none`.
        message: What to say of the version.
        wait: Seconds to wait for another process that is writing to the run.
        reading: How files are to be read, where they do not say it themselves.
        on_epoch: Told the part and the report of every epoch.

    Raises:
        BusyError: Another process is writing to the run folder.
        UserError: It is asked for something that there is not.
    """
    folder = RunFolder(out)
    config = folder.config()
    check_keep(keep)
    at_most = most_measured(evaluate)
    with held(folder, wait):
        learner = Learner.load(out, device=device)
        clear_up(folder)
        about = about_stored(config, learner, out)
        intake = learner.intake(facts, reading=reading)
        if not intake.is_empty or learner.trainer.would_note(intake.given_part):
            results = learn_part(learner, intake, about, folder, keep, on_epoch, at_most, message)
            newest = learner.trainer.history[-1]
            return LearnOutcome(results, intake, {n: len(a) for n, a in newest.arrays.items()})
        results = results_of(learner, about | {"published": config.get("published", {})})
        if intake.names.items() - learner.names.items():
            learner.learn(intake)  # it takes the names
            learner.save(out, keep=keep)
        if not folder.is_measured():  # saved from Python
            learner.save(out, keep=keep, results=results)
        return LearnOutcome(results, intake)


def about_stored(config: Mapping[str, Any], learner: Learner, out: Path) -> dict[str, Any]:
    """What `about_run` said of a run that goes on with other data; no published values are its."""
    return {
        "dataset": config.get("dataset", out.name),
        "task": config.get("task", learner.task.name),
        "recipe": config.get("recipe", "default"),
        "published": {},
    }


def most_measured(evaluate: str) -> int | None:
    """How many test examples are measured after a change; 0 for all, None for none.

    Raises:
        UserError: It is none of `EVALUATE`.
    """
    if not isinstance(evaluate, str) or evaluate not in EVALUATE:
        raise unknown_name("evaluate", evaluate, EVALUATE)
    return EVALUATE[evaluate]


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
