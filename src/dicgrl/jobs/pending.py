"""Learns the facts that wait in a run, such as those that a server took in, as a new version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dicgrl.errors import SetupError, UserError
from dicgrl.intake import Intake, Retraction
from dicgrl.jobs.changing import Changing, about_stored, most_measured
from dicgrl.learner import Learner
from dicgrl.store.pending import Fact, Pending, keys_in
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.training import EpochReport


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """What was done with the waiting facts.

    Attributes:
        version: The newest version.
        settled: How many facts no longer wait.
        refused: Why some of them could not be learned or forgotten.
    """

    version: int
    settled: int = 0
    refused: tuple[str, ...] = ()


class PendingLearner:
    """Learns what waits in a run, as often as it is called; it keeps the learner in memory.

    Args:
        out: The run folder.
        device: auto, cpu or cuda.
        keep: As for `run_stream`.
        evaluate: As for `learn_facts`.
        message: What to say of the versions.
    """

    def __init__(
        self,
        out: Path,
        *,
        device: str = "auto",
        keep: str | None = None,
        evaluate: str = "sample",
        message: str = "",
    ) -> None:
        check_keep(keep)
        self._folder, self._device, self._keep = RunFolder(out), device, keep
        self._at_most = most_measured(evaluate)
        self._message = message
        self._learner: Learner | None = None

    def learn(self, wait: float = 0.0) -> PendingOutcome:
        """Learn what waits; the version and what it settled are one commit.

        Args:
            wait: Seconds to wait for another process that is writing to the run.

        Raises:
            BusyError: Another process is still writing.
            UserError: The facts cannot be learned; they go on waiting.
        """
        with self._folder.locked(wait):
            pending = self._folder.pending()
            if not pending.entries:
                return PendingOutcome(pending.version)
            try:
                return self._learn(self._fresh(pending.identity), pending)
            except BaseException:
                self._learner = None  # it may have learned, or been refreshed, by half
                raise

    def _fresh(self, identity: str) -> Learner:
        """The learner as its newest version; nobody else writes."""
        if self._learner is None or self._learner.identity != identity:
            self._folder.clear_up()
            self._learner = Learner.load(self._folder.path, device=self._device)
        else:
            self._learner.refresh(self._folder.path)
        return self._learner

    def _learn(self, learner: Learner, pending: Pending) -> PendingOutcome:
        folder, changes = self._folder, len(learner.trainer.history)
        about = about_stored(folder.config(), learner, folder.path)
        run = Changing(learner, about, folder, self._keep, self._message)
        settled = pending.settled(keys_in(learner.trainer.graph))
        refused = _change(learner, *settled, run.watch)
        if len(learner.trainer.history) == changes:  # all of it was known, or none of it
            with folder.pending_writer() as writer:
                writer.settle(pending.entries)
            return PendingOutcome(learner.version, len(pending), tuple(refused))
        if self._at_most is not None:
            learner.evaluate(at_most=self._at_most)
        run.write(run.results(), settled=pending.entries)
        return PendingOutcome(learner.version, len(pending), tuple(refused))


def _change(
    learner: Learner,
    learned: list[Fact],
    forgotten: list[Fact],
    monitor: Callable[[EpochReport], None],
) -> list[str]:
    """Let a learner learn and forget; says what could not be done, and why."""
    learned, refused = _possible(learner, learned)
    intake = learner.intake(learned) if learned else None
    part = None if intake is None or intake.is_empty else intake.part
    retraction = _known(learner, forgotten, intake)
    left = 1 if retraction is None else learner.trainer.graph.left_without(retraction.arrays)
    if not left and (part is None or not len(part.train)):
        refused.append("nothing would be left to learn from")
        retraction = None
    if retraction is not None and part is not None:
        learner.replace(forgotten, learned, monitor=monitor)
        return refused
    if retraction is not None:
        learner.forget(retraction, monitor=monitor)
    if intake is not None:  # that facts came again may be noted, too
        learner.learn(intake, monitor=monitor)
    return refused


def _possible(learner: Learner, facts: list[Fact]) -> tuple[list[Fact], list[str]]:
    """Facts that can be learned, and why others cannot: what they were about may be gone.

    Raises:
        SetupError: This machine lacks something, which says nothing of the facts.
    """
    refused: list[str] = []
    try:
        if facts:
            learner.intake(facts)
    except SetupError:
        raise
    except UserError:
        possible = []
        for fact in facts:
            try:
                learner.intake([fact])
                possible.append(fact)
            except SetupError:
                raise
            except UserError as error:
                refused.append(str(error))
        return possible, refused
    return facts, refused


def _known(learner: Learner, facts: list[Fact], arrived: Intake | None) -> Retraction | None:
    """Those of the facts that are known and do not come again; None if there is none."""
    if not facts:
        return None
    try:
        found = learner.retraction(facts)
        if arrived is None:
            return found
        # A fact may have come again by other labels: those of an entity that was merged.
        return found.besides(learner.trainer.graph, arrived.given_part)
    except SetupError:
        raise
    except UserError:  # there is none
        return None
