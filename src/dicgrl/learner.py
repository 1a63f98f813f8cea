"""The learner: a growing graph with its model and strategy; learns, answers, evaluates, saves."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from typing_extensions import override

from dicgrl.ask.asking import Asking, Prediction
from dicgrl.ask.names import Names
from dicgrl.ask.trust import examine, informed
from dicgrl.common.devices import pick_device
from dicgrl.common.numbers import whole_number
from dicgrl.errors import UserError
from dicgrl.evaluation.continual import Evaluation, Tested, evaluation, evaluations
from dicgrl.evaluation.part_report import PartReport
from dicgrl.graph.change import LEARN, Change
from dicgrl.intake import Facts, Intake, take_in
from dicgrl.lifecycle import Lifecycle
from dicgrl.readers import Reading
from dicgrl.recipes import chosen_settings
from dicgrl.saving import Saving
from dicgrl.settings import Settings
from dicgrl.strategies import strategy_named
from dicgrl.strategies.base import Learned
from dicgrl.tasks import Task
from dicgrl.trainers.foretold import foretold
from dicgrl.trainers.measured import measure_tests
from dicgrl.trainers.moved import stand
from dicgrl.training import Positives
from dicgrl.training.loop import Monitor

__all__ = ["Learner", "PartReport", "Prediction"]


class Learner(Lifecycle, Saving):
    """A graph embedding that is kept up to date while the graph grows.

    Args:
        model: transe, rotate, complex, distmult or convkb for knowledge graphs, gat or sage for
            networks. The default is rotate, or the model of `dataset`.
        strategy: How later parts are learned: fresh (the default), frozen, lower, upper, warm, ewc,
            emr, gem, lkge, incde, fastkge, arrival or dicgrl. docs/method.md describes them;
            `dicgrl.strategies.Strategy.registry` lists them with those of plugins.
        dataset: Name of a known dataset whose recipe is used, as on the command line. The default
            settings are for data of one's own.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        names: Readable names by label.
        settings: Complete settings, instead of `model`, `strategy` and changes.
        **changes: Settings that differ from the defaults, such as dim=100. A setting that neither
            the model nor the strategy uses is refused.

    Example:
        >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
        >>> report = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
        >>> report.new_examples
        2
        >>> learner
        Learner(transe, lower, seed=0, parts=1, entities=4, relations=1)
        >>> [answer.label for answer in learner.predict(head="Alien", relation="genre", k=1)]
        ['horror']
    """

    def __init__(
        self,
        model: str | None = None,
        strategy: str | None = None,
        *,
        dataset: str = "",
        seed: int = 0,
        device: str | torch.device = "auto",
        names: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        **changes: Any,
    ) -> None:
        self.settings = chosen_settings(settings, model, strategy, dataset, changes)
        # PyTorch's generator on the CPU ignores higher bits.
        self.seed = whole_number("seed", seed, 0, (1 << 32) - 1)
        self._names = Names(names)
        self.identity = secrets.token_hex(8)
        self.stored = {}
        self.trainer = self.task.trainer(self.settings, self.seed, pick_device(device))
        self.strategy = self.settings.make_strategy()
        self.reports: list[PartReport] = []
        self.tests: list[Sequence[Tested]] = []
        self.before: list[float | None] = []
        self.retention: list[float | None] = []
        self.first_answers: torch.Tensor | None = None
        self._half_learned = False
        self._at_work: int | None = None  # the thread that is learning

    def __repr__(self) -> str:
        kinds = self.task.part_type.vocabularies
        known = {"seed": self.seed, "parts": self.num_parts} | {k: self.count(k) for k in kinds}
        listed = ", ".join(f"{name}={value}" for name, value in known.items())
        return f"Learner({self.settings.model}, {self.settings.strategy}, {listed})"

    @property
    def task(self) -> Task:
        """The task: link prediction or node classification."""
        return self.settings.task

    @property
    def names(self) -> Names:
        """Readable names by label; they may be changed at any time."""
        return self._names

    @names.setter
    def names(self, names: Mapping[str, str]) -> None:
        self._names.become(Names(names))

    @property
    def num_parts(self) -> int:
        """Number of parts learned so far."""
        return self.trainer.num_parts

    @override
    def count(self, kind: str) -> int:
        if kind not in self.task.part_type.vocabularies:
            raise UserError(f"a {self.task.graph_is} has no {kind}")
        graph = self.trainer.graph
        return 0 if graph is None else len(graph.vocabularies()[kind])

    def intake(self, facts: Facts, *, reading: Reading | None = None) -> Intake:
        """Check facts, and return what is new in them; nothing is learned.

        Args:
            facts: The facts, in any form that `learn` accepts.
            reading: How to read files, frames or dicts that do not say it themselves.

        Raises:
            UserError: It is neither a part, nor triples or facts, nor a file with one part.
        """
        self.check_usable()
        return take_in(self.task, self.trainer.graph, self.names, facts, reading)

    def learn(
        self,
        facts: Facts | Intake,
        *,
        names: Mapping[str, str] | None = None,
        reading: Reading | None = None,
        probe: bool = False,
        probe_at_most: int = 0,
        foretell: bool = False,
        monitor: Monitor | None = None,
    ) -> PartReport:
        """Learn new facts as the next part.

        Args:
            facts: One of: a part of a stream; triples as a list, an array, a data frame with three
                columns or a file; new nodes and edges of a network as `NetworkFacts` or files; or
                the result of `intake`. Labels are text or whole numbers. Entities, relations and
                classes may be new, and edges may name old nodes.
            names: Readable names by label, in addition to those in a `labels.tsv` next to the
                files.
            reading: How to read files, frames or dicts that do not say it themselves.
            probe: Whether to measure the part's test set before it is learned, for the forward
                transfer.
            probe_at_most: Like `at_most` of `evaluate`; the part gets its share of it.
            foretell: Whether to test the model on the facts before it learns them (at most
                `probe_at_most` of them), and to measure how far old rows move. The results are
                `foretold` and `moved` in the report's details.
            monitor: Called after every epoch.

        Facts that are already known are left out. Of these, a later date is noted, and also that
        they arrived again if repeats count in learning (`weighting`). If nothing is left to learn
        or to note, there is no new part and the report is empty. If learning fails (it diverges or
        is interrupted), this learner cannot be used any more: load the one that was saved before.
        """
        if isinstance(facts, Intake):  # already checked by `intake`
            arrived = facts
            self.check_usable()
        else:
            arrived = self.intake(facts, reading=reading)
            arrived.warn(self.num_parts)
        named = Names(arrived.names) | Names(names)
        if arrived.is_empty and self.trainer.would_note(arrived.given_part):
            return self.undergo(Change(LEARN), Learned, named, given=arrived.given_part)
        if arrived.is_empty:
            self.names.update(named)
            return PartReport(self.trainer.newest, 0.0, 0, positives={"new": 0, "old": 0})
        if not self.num_parts and not len(arrived.part.train):  # nothing to start a model from
            raise UserError("the first part holds no training examples: there is nothing to learn")
        seen: dict[str, Any] = {}
        moved: Callable[[], dict[str, Any]] = dict

        def before() -> float | None:
            nonlocal moved
            if foretell and self.trainer.newest:
                seen["foretold"] = foretold(self.trainer, probe_at_most)
                moved = stand(self.trainer)
            return self._probe(probe_at_most) if probe else None

        def learn() -> Learned:
            return self.strategy.learn(self.trainer, monitor)

        change = Change(LEARN, arrived.part)
        report = self.undergo(change, learn, named, before, arrived.given_part)
        if seen:
            report.details |= seen | {"moved": moved()}
        return report

    @override
    def _foresee(self) -> Mapping[str, Any]:
        return self._asking().foresee()

    @override
    def _examine(self, foreseen: Mapping[str, Any]) -> None:
        examine(self._asking(), self.reports, foreseen, level=4)

    def evaluate(self, *, at_most: int = 0, protocol: str = "seen") -> Evaluation:
        """Measure the model on the test sets of all parts so far.

        Args:
            at_most: How many test triples to measure, as a sample from all parts; 0 for all. The
                sample is the same in every run. In a network all test nodes are measured, as that
                takes no longer.
            protocol: seen; or snapshot, which in addition ranks each test set of triples as if
                nothing had arrived after its part, as in publications on continual embeddings.
        """
        self.check_learned()
        started = time.perf_counter()
        most = whole_number("at_most", at_most, 0)
        found = measure_tests(self.trainer, most, protocol=protocol)
        self.tests[-1] = [measured.tested() for measured in found]
        if found and found[0].part == 0:
            if len(self.reports) == 1:
                self.first_answers = found[0].answered
            # If facts of the set were taken back, its questions are not the same as at first.
            same = [test["count"] for test in self.tests[0][:1]] == [found[0].size]
            self.retention[-1] = found[0].retained(self.first_answers if same else None)
        if reliability := self.ask.measure_reliability():
            self.reports[-1].calibration["test"] = reliability
        self.reports[-1].evaluate_seconds = time.perf_counter() - started
        return self.evaluation()

    def evaluation(self, parts: int | None = None) -> Evaluation:
        """What `evaluate` found after a number of changes; by default after all of them.

        If no facts were taken back, each change is a part.

        Raises:
            UserError: There were fewer changes.
        """
        self.check_learned()
        most = len(self.reports)
        parts = most if parts is None else whole_number("parts", parts, 1, most)
        return evaluation(
            self.trainer.metric,
            self.tests[:parts],
            self.before[:parts],
            self.retention[parts - 1],
            self._newest[:parts],
        )

    def evaluations(self) -> list[Evaluation]:
        """What `evaluate` found after each part, in order."""
        self.check_learned()
        metric = self.trainer.metric
        return list(evaluations(metric, self.tests, self.before, self.retention, self._newest))

    @property
    def _newest(self) -> list[int]:
        return [report.part for report in self.reports]

    @property
    @override
    def ask(self) -> Asking:
        self.check_learned()
        return self._asking()

    def _asking(self) -> Asking:
        return informed(self.task.asking(self.trainer, self.names), self.reports)

    @override
    def about(self) -> dict[str, Any]:
        self.check_learned()
        return {
            "task": self.task.name,
            "model": self.settings.model,
            "strategy": self.settings.strategy,
            "seed": self.seed,
            "version": self.version,
            "parts": self.num_parts,
            "counts": {kind: self.count(kind) for kind in self.task.part_type.vocabularies},
            "settings": self.settings.as_dict(),
            "protocol": self.strategy.describe_protocol(self.trainer),
            "evaluation": asdict(self.evaluation()),
        }

    def fork(self, settings: Settings) -> Learner:
        """Continue from this learner's first part with other settings for later parts.

        All strategies learn the first part in the same way, so comparisons need it only once.
        The learner itself is changed, and returned.

        Raises:
            UserError: More than one part was learned, or a setting differs that the first part
                depends on.
        """
        self.check_learned()
        if self.num_parts != 1:
            raise UserError(f"{self.num_parts} parts were learned; only the first can be shared")
        mine, theirs = self.settings.as_dict(), settings.as_dict()
        later = self.settings.later_names | settings.later_names
        differs = [key for key in theirs if key not in later and mine.get(key) != theirs[key]]
        alike = self.strategy.first_alike and strategy_named(settings.strategy).first_alike
        if mine != theirs and not alike:
            differs.append("strategy")
        if differs or self.strategy.keeps_state:
            raise UserError(f"the first part cannot be shared: {', '.join(differs) or 'its state'}")
        strategy = settings.make_strategy()  # before anything changes: it may refuse
        self.strategy = strategy
        self.settings = self.trainer.settings = settings
        self.identity = secrets.token_hex(8)
        self.stored = {}
        strategy.finish_part(self.trainer)
        if counted := self.reports[0].positives:  # unless an earlier version learned it
            self.reports[0].positives = asdict(Positives(**counted) + strategy.besides)
        return self

    @override
    def check_usable(self) -> None:
        if not self._half_learned:
            return
        if self._at_work not in (None, threading.get_ident()):
            raise UserError(
                f"another thread is learning part {self.trainer.newest}; wait until it has "
                "finished, or load a copy of the saved learner and use that"
            )
        raise UserError(
            f"part {self.trainer.newest} was not learned completely; load the learner that was "
            "saved before it"
        )

    def check_learned(self) -> None:
        """Refuse a learner that has learned nothing yet, or has not finished learning a part.

        Raises:
            UserError: It cannot answer.
        """
        self.check_usable()
        if not self.reports:
            raise UserError("nothing was learned yet: call learn first")

    def _probe(self, at_most: int) -> float | None:
        """The newest part's test metric before it is learned, minus that of chance."""
        trainer = self.trainer
        found = measure_tests(trainer, at_most, newest_only=True)
        return found[0].metrics[trainer.metric] - trainer.chance() if found else None
