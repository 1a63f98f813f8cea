"""Facts that change after they were learned: a learner's forget, replace, rename and merge."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from dicgrl.ask.names import Names
from dicgrl.errors import UserError
from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.part_report import PartReport
from dicgrl.graph.change import FORGET, Change
from dicgrl.intake import Facts, Retraction, find_facts
from dicgrl.strategies.base import Learned, Strategy
from dicgrl.tasks import Task
from dicgrl.trainers import Trainer
from dicgrl.training.loop import Monitor


class Lifecycle(ABC):
    """What can be done to what was learned; there is a report, and room for tests, of each change.

    Attributes:
        trainer: Holds the graph and the model.
        strategy: Learns changes.
        reports: What each change took.
        tests: What was measured after each change.
        before: What was measured before it was learned, above chance.
        retention: How much of the first part is still answered.
        first_answers: Which questions of the first part's test set were answered at first.
    """

    trainer: Trainer
    strategy: Strategy
    reports: list[PartReport]
    tests: list[list[Tested]]
    before: list[float | None]
    retention: list[float | None]
    first_answers: torch.Tensor | None
    _half_learned: bool

    @property
    @abstractmethod
    def task(self) -> Task:
        """What it learns."""

    @property
    @abstractmethod
    def names(self) -> Names:
        """Readable names by label."""

    @abstractmethod
    def check_learned(self) -> None:
        """Refuse a learner that has learned nothing, or a part not to its end."""

    def undergo(
        self,
        change: Change,
        learn: Callable[[], Learned],
        names: Names | None = None,
        probe: Callable[[], float | None] | None = None,
    ) -> PartReport:
        """Let a change happen and be learned; what `learn` and its like have in common.

        Args:
            change: The change.
            learn: Learns it, once the trainer has taken it in.
            names: Readable names that came with it.
            probe: Measures before it is learned.
        """
        trainer = self.trainer
        started = time.perf_counter()
        self._half_learned = True
        before = [trainer.count("test", 0, 1)] if trainer.num_parts else []
        try:
            trainer.undergo(change)
        except UserError:  # refused before anything changed
            self._half_learned = False
            raise
        self.names.update(names or {})
        if change.part is not None:
            self.strategy.prepare(trainer)
        took = time.perf_counter() - started
        ahead = probe() if probe and trainer.newest else None
        started = time.perf_counter()
        learned = learn()
        if trainer.device.type == "cuda":
            torch.cuda.synchronize(trainer.device)
        took += time.perf_counter() - started
        self._half_learned = False
        report = learned.report(trainer, took)
        if before and before != [trainer.count("test", 0, 1)]:
            self.first_answers = None  # the first part asks other questions now
        self.reports.append(report)
        self.before.append(ahead)
        self.tests.append([])
        self.retention.append(None)
        return report

    def retraction(self, facts: Facts) -> Retraction:
        """What `forget` would make of facts: those of them that are known; nothing changes.

        Raises:
            UserError: None of them is known, or they are nothing that `learn` would take.
        """
        self.check_learned()
        return find_facts(self.task, self.trainer.graph, facts)

    def forget(self, facts: Facts | Retraction, *, monitor: Monitor | None = None) -> PartReport:
        """Take facts back: they are not known any more, and what they taught is unlearned.

        They are neither learned, replayed nor protected again, and answers no longer count them as
        known. Validation and test facts leave their sets, too. What no fact speaks of any more is
        no answer; it keeps its id, and comes back with the next fact about it. What the model
        learned from the facts is repaired near them, at a cost that follows their number; see
        docs/method.md.

        Args:
            facts: Facts in any form that `learn` takes, or what `retraction` made of them. Those
                that are not known are counted in the report (`details["unknown"]`).
            monitor: Told about every epoch.

        Raises:
            UserError: None of them is known, or nothing would be left to learn from; nothing has
                changed then.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> facts = [("Alien", "genre", "horror"), ("Brazil", "genre", "satire")]
            >>> report = learner.learn([*facts, ("Alien", "genre", "satire")])
            >>> learner.forget([("Alien", "genre", "satire")]).details["forgotten"]
            1
            >>> learner.trainer.count("train")
            2
        """
        self.check_learned()
        found = facts if isinstance(facts, Retraction) else self.retraction(facts)
        if not self.trainer.graph.left_without(found.arrays):
            raise UserError("nothing would be left to learn from: begin a new run instead")
        change = Change(FORGET, None, found.arrays)
        return self._noted(self.undergo(change, lambda: self._repair(monitor)), found)

    def _repair(self, monitor: Monitor | None) -> Learned:
        return self.strategy.repair(self.trainer, monitor)

    @staticmethod
    def _noted(report: PartReport, found: Retraction) -> PartReport:
        report.details |= {"forgotten": found.known, "unknown": found.unknown}
        return report
