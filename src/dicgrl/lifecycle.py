"""Correct what was learned: a learner's forget, replace, rename, merge, revise and retrain."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from dicgrl.ask.names import Names
from dicgrl.errors import UserError
from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.part_report import PartReport
from dicgrl.graph import Part
from dicgrl.graph.arrays import distinct
from dicgrl.graph.change import FORGET, REPLACE, RETRAIN, Change
from dicgrl.intake import Facts, Intake, Retraction, find_facts
from dicgrl.readers import NetworkFacts, Reading
from dicgrl.readers.given import reading_of
from dicgrl.relabel import Pair, merging, renaming
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
    """

    trainer: Trainer
    strategy: Strategy
    reports: list[PartReport]
    tests: list[Sequence[Tested]]
    before: list[float | None]
    retention: list[float | None]
    _half_learned: bool
    _at_work: int | None

    @property
    @abstractmethod
    def task(self) -> Task:
        """What it learns."""

    @property
    @abstractmethod
    def names(self) -> Names:
        """Readable names by label."""

    @abstractmethod
    def intake(self, facts: Facts, *, reading: Reading | None = None) -> Intake:
        """What `learn` would make of facts."""

    @abstractmethod
    def check_learned(self) -> None:
        """Refuse a learner that has learned nothing, or a part not to its end."""

    @abstractmethod
    def _foresee(self) -> Mapping[str, Any]:
        """What can be told of what has just arrived, before it is learned."""

    @abstractmethod
    def _examine(self, foreseen: Mapping[str, Any]) -> None:
        """Look at what was learned, and warn the caller of `learn` and its like."""

    def undergo(
        self,
        change: Change,
        learn: Callable[[], Learned],
        names: Names | None = None,
        probe: Callable[[], float | None] | None = None,
        given: Part | None = None,
    ) -> PartReport:
        """Apply a change and learn it; what `learn`, `forget` and the others have in common.

        Args:
            change: The change.
            learn: Learns it, once the trainer has taken it in.
            names: Readable names that came with it.
            probe: Measures before it is learned.
            given: What arrived, before known facts were left out of it.
        """
        self._at_work = threading.get_ident()
        try:
            return self._undergone(change, learn, names, probe, given)
        finally:
            self._at_work = None

    def _undergone(
        self,
        change: Change,
        learn: Callable[[], Learned],
        names: Names | None,
        probe: Callable[[], float | None] | None,
        given: Part | None,
    ) -> PartReport:
        trainer = self.trainer
        started = time.perf_counter()
        self._half_learned = True
        try:
            trainer.undergo(change)
        except UserError:  # refused before anything changed
            self._half_learned = False
            raise
        if given is not None:
            trainer.note_arrivals(given)
        self.names.update(names or {})
        if change.part is not None:
            self.strategy.prepare(trainer)
        took = time.perf_counter() - started
        ahead = probe() if probe and trainer.newest else None
        foreseen = self._foresee() if change.part is not None else {}
        started = time.perf_counter()
        learned = learn()
        if trainer.device.type == "cuda":
            torch.cuda.synchronize(trainer.device)
        took += time.perf_counter() - started
        self._half_learned = False
        report = learned.report(trainer, took)
        self.reports.append(report)
        self.before.append(ahead)
        self.tests.append([])
        self.retention.append(None)
        self._examine(foreseen)
        return report

    def retraction(self, facts: Facts, *, reading: Reading | None = None) -> Retraction:
        """Find those of some facts that are known, as `forget` would; nothing changes.

        Args:
            facts: Facts in any form that `learn` takes.
            reading: How files, frames or dicts are to be read, where they do not say it themselves.

        Raises:
            UserError: None of them is known, or they are nothing that `learn` would take.
        """
        self.check_learned()
        return find_facts(self.task, self.trainer.graph, facts, reading)

    def forget(
        self,
        facts: Facts | Retraction,
        *,
        reading: Reading | None = None,
        monitor: Monitor | None = None,
    ) -> PartReport:
        """Take facts back: they are no longer known, and the model unlearns them.

        They are neither learned, replayed nor protected again, and answers no longer count them as
        known. Validation and test facts leave their sets, too. What no fact speaks of any more is
        no answer; it keeps its id, and comes back with the next fact about it. What the model
        learned from the facts is repaired near them, at a cost that follows their number; see
        docs/method.md.

        Args:
            facts: Facts in any form that `learn` takes, or what `retraction` made of them. Those
                that are not known are counted in the report (`details["unknown"]`).
            reading: As of `retraction`.
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
        if not isinstance(facts, Retraction):
            facts = self.retraction(facts, reading=reading)
        if not self.trainer.graph.left_without(facts.arrays):
            raise UserError("nothing would be left to learn from: begin a new run instead")
        change = Change(FORGET, None, facts.arrays)
        return self._noted(self.undergo(change, lambda: self._repair(monitor)), facts)

    def replace(
        self,
        old: Facts,
        new: Facts,
        *,
        names: Mapping[str, str] | None = None,
        reading: Reading | None = None,
        monitor: Monitor | None = None,
    ) -> PartReport:
        """Take facts back and learn others in their place, as one change.

        What is among both stays as it is. The new facts are the next part.

        Args:
            old: As `facts` of `forget`.
            new: As `facts` of `learn`.
            names: As of `learn`.
            reading: As of `learn`, for both; for files, where only one of them is in a file.
            monitor: Told about every epoch.

        Raises:
            UserError: None of the old facts is known, or the new ones cannot be learned; nothing
                has changed then.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> report = learner.learn([("Alien", "year", 1978), ("Brazil", "year", 1985)])
            >>> report = learner.replace([("Alien", "year", 1978)], [("Alien", "year", 1979)])
            >>> report.kind, report.details["forgotten"], report.new_examples
            ('replace', 1, 1)
        """
        found = self.retraction(old, reading=reading_of(old, reading, beside=new))
        arrived = self.intake(new, reading=reading_of(new, reading, beside=old))
        found = found.besides(self.trainer.graph, arrived.given_part)
        named = Names(arrived.names) | Names(names)
        if arrived.is_empty:
            report = self.forget(found, monitor=monitor)
            self.names.update(named)
            return report
        if not self.trainer.graph.left_without(found.arrays) and not len(arrived.part.train):
            raise UserError("nothing would be left to learn from: begin a new run instead")
        arrived.warn(self.trainer.num_parts)

        def learn() -> Learned:
            return self._repair(monitor) + self.strategy.learn(self.trainer, monitor)

        change = Change(REPLACE, arrived.part, found.arrays)
        report = self.undergo(change, learn, named, given=arrived.given_part)
        return self._noted(report, found)

    def rename(self, old: str, new: str, *, of: str | None = None) -> PartReport:
        """Rename an entity, a relation, a node or a class; everything else stays.

        The old label is unknown from then on. A readable name goes over to the new one.

        Args:
            old: Its label or readable name.
            new: Its label from now on.
            of: What it is, such as "relations", where there is an entity of the same label.

        Raises:
            UserError: There is no such label, or the new one is known: that would be a merge.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=5, device="cpu")
            >>> report = learner.learn([("Alein", "genre", "horror")])
            >>> learner.rename("Alein", "Alien").kind
            'rename'
            >>> learner.predict("Alien", "genre", k=1)[0].label
            'horror'
        """
        return self.rename_many([(old, new)], of=of)

    def rename_many(self, pairs: Iterable[Pair], *, of: str | None = None) -> PartReport:
        """Like `rename`, for several pairs of an old and a new label as one change."""
        self.check_learned()
        change = renaming(self.trainer.graph, self.names, pairs, of)
        report = self.undergo(change, Learned)
        for old, new in zip(change.labels["old"], change.labels["new"], strict=True):
            if old in self.names:
                self.names[new] = self.names.pop(old)
        report.details["renamed"] = len(change.labels["new"])
        return report

    def merge(
        self, kept: str, gone: str, *, of: str | None = None, monitor: Monitor | None = None
    ) -> PartReport:
        """Make two entities, relations, nodes or classes one.

        All facts of the second become facts of the first, the same ones once, and its label finds
        the first from then on. The vector of the first starts between the two, by how many facts
        speak of each, and is repaired with what is around it. The second is no answer any more; its
        id and row stay. A node keeps its features, and its class where it has one.

        Args:
            kept: Label or readable name of the one that stays.
            gone: Label or readable name of the one that it takes in.
            of: What they are, such as "relations", where there are entities of the same labels.
            monitor: Told about every epoch.

        Raises:
            UserError: There is no such label, they are of different kinds, or one already.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> facts = [("Alien", "genre", "horror"), ("Alien (1979)", "director", "Scott")]
            >>> report = learner.learn(facts)
            >>> learner.merge("Alien", "Alien (1979)").kind
            'merge'
            >>> answers = learner.predict("Alien (1979)", "genre", k=9)
            >>> [answer.label for answer in answers if answer.known]
            ['horror']
        """
        return self.merge_many([(kept, gone)], of=of, monitor=monitor)

    def merge_many(
        self, pairs: Iterable[Pair], *, of: str | None = None, monitor: Monitor | None = None
    ) -> PartReport:
        """Like `merge`, for several pairs (the one to keep, the other) as one change."""
        self.check_learned()
        change = merging(self.trainer.graph, self.names, pairs, of)
        report = self.undergo(change, lambda: self._repair(monitor))
        report.details["merged"] = len(change.labels["gone"])
        return report

    def revise(self, facts: NetworkFacts, *, monitor: Monitor | None = None) -> PartReport:
        """Change the classes or features of known nodes of a network.

        A class that becomes known or changes is learned as a part; features that change are
        repaired around.

        Args:
            facts: Known nodes, with the classes or features that they have from now on; classes
                may be new, and "" leaves one as it is.
            monitor: Told about every epoch.

        Raises:
            UserError: It is not a network, a node is not known, or nothing would change.
        """
        self.check_learned()
        change = self.task.revision(facts, self.trainer.graph)
        learned = change.part is not None and len(change.part.train)

        def learn() -> Learned:
            if learned:
                return self.strategy.learn(self.trainer, monitor)
            return self._repair(monitor)

        report = self.undergo(change, learn)
        report.details["revised"] = len(
            distinct(*(change.arrays[n] for n in ("nodes", "described")))
        )
        return report

    def retrain(self, *, monitor: Monitor | None = None) -> PartReport:
        """Train a new model on everything that is known, as a new run would.

        Facts, held-out facts, labels and their ids, names and the strategy stay as they are; it
        costs what the whole graph costs, and is a change of its own.

        Args:
            monitor: Told about every epoch.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", dim=8, epochs=20, lr=0.1, device="cpu")
            >>> report = learner.learn([("Alien", "genre", "horror")])
            >>> report = learner.learn([("Aliens", "genre", "horror")])
            >>> report = learner.retrain()
            >>> report.kind, report.positives, learner.num_parts
            ('retrain', {'new': 20, 'old': 20}, 2)
        """
        self.check_learned()
        return self.undergo(Change(RETRAIN), lambda: self.strategy.retrain(self.trainer, monitor))

    def _repair(self, monitor: Monitor | None) -> Learned:
        return self.strategy.repair(self.trainer, monitor)

    @staticmethod
    def _noted(report: PartReport, found: Retraction) -> PartReport:
        report.details |= {"forgotten": found.known, "unknown": found.unknown}
        return report
