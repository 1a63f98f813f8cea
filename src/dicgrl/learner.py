"""The learner: a model, a strategy and a graph that grows; learn, evaluate, predict, save, load."""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dicgrl.ask.answers import ASKED, best_answers, scores_of
from dicgrl.ask.explain import Explanation, explain
from dicgrl.ask.export import export
from dicgrl.ask.names import Names
from dicgrl.common.devices import pick_device
from dicgrl.datasets import datasets, registered
from dicgrl.defaults import DEFAULT_STRATEGY, default_model
from dicgrl.errors import DataWarning, UserError, shown, unknown_name
from dicgrl.evaluation import ranking_metrics
from dicgrl.evaluation.continual import Evaluation, Tested, evaluation, evaluations
from dicgrl.graph import (
    SPLITS,
    KnowledgeGraph,
    KnowledgePart,
    KnowledgeStream,
    NetworkGraph,
    NetworkPart,
    NetworkStream,
    Part,
    Task,
    Vocabulary,
)
from dicgrl.graph.arrays import IntArray, as_triples
from dicgrl.graph.checks import checked
from dicgrl.graph.labels import Triples, as_label, as_labels
from dicgrl.models import BACKBONES
from dicgrl.readers import NetworkFacts, read_part
from dicgrl.recipes import default_settings
from dicgrl.settings import LATER, LinkSettings, NodeSettings, check_use
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.state import LearnerState
from dicgrl.strategies import strategy as make_strategy
from dicgrl.tasks import LinkTrainer, NodeTrainer
from dicgrl.training.loop import Monitor

_CONVERTED = {"pykeen": "from_pykeen", "torch_geometric": "from_pyg"}  # by their libraries

Question = Sequence[str | None]
"""Head, relation and tail, one of which is None: that is asked for."""


@dataclass(slots=True)
class PartReport:
    """What learning a part took.

    Attributes:
        part: Number of the part.
        learn_seconds: Time of learning alone, validation left out.
        new_examples: Training examples that the part brought.
        replayed_examples: Old examples that were learned again.
        candidates: Old triples or edges that were looked at.
        activated: Those that share a component with the new ones.
        epochs: Epochs trained, all stages together.
        evaluate_seconds: Time of the last evaluation after it; 0 before any.
        validation: The best validation value (MRR, or the negative loss); None without any.
        best_epoch: The epoch whose weights were kept, of the last stage; 0 where none was trained.
        details: Further figures of the strategy, such as the drift of old rows or nodes.
    """

    part: int
    learn_seconds: float
    new_examples: int
    replayed_examples: int = 0
    candidates: int = 0
    activated: int = 0
    epochs: int = 0
    evaluate_seconds: float = 0.0
    validation: float | None = None
    best_epoch: int = 0
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer to a question.

    Attributes:
        label: The entity, relation or class.
        name: Its readable name; the label where there is none.
        score: The model's score; higher means more likely. For classes a probability.
        known: Whether it is a training fact already.
        aside: Whether it is known, and set aside to measure with: it was not learned.
    """

    label: str
    name: str
    score: float
    known: bool
    aside: bool = False


class Learner:
    """Keeps a graph embedding fresh while the graph grows.

    Args:
        model: transe or convkb for knowledge graphs, gat or sage for networks; transe unless given.
        strategy: How a new part is learned: frozen, lower, upper, ewc, emr, gem or dicgrl; dicgrl
            unless given.
        dataset: Name of a known dataset, whose recipe is then taken as on the command line; the
            default for data of one's own unless given.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        names: Readable names of labels.
        settings: Complete settings instead of `model`, `strategy` and changes.
        **changes: Settings that differ from the defaults, such as dim=100; those that neither the
            strategy nor the model uses are refused.

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
        settings: LinkSettings | NodeSettings | None = None,
        **changes: Any,
    ) -> None:
        named = {"dataset": dataset, "model": model, "strategy": strategy}
        for name, value in named.items():
            if not isinstance(value, str | None):
                raise UserError(f"{name}={value!r}: expected a name")
        if settings is not None:
            if not isinstance(settings, LinkSettings | NodeSettings):
                raise UserError(f"settings={settings!r}: expected LinkSettings or NodeSettings")
            given = [*(name for name, value in named.items() if value), *changes]
            if given:
                raise UserError(
                    f"settings are complete; change them instead of giving {', '.join(given)}"
                )
        else:
            if dataset and not registered(dataset):
                raise unknown_name("dataset", dataset, [known.name for known in datasets()])
            model = model or default_model(Task.LINK_PREDICTION)
            settings = default_settings(model, strategy or DEFAULT_STRATEGY, dataset)
            for name in changes:
                settings.check_effect(name)
            settings = settings.changed(changes)
            check_use(changes, [settings.form])
        # PyTorch's generator of the CPU drops what is beyond.
        seed = _whole_number("seed", seed, 0, (1 << 32) - 1)
        self.settings = settings
        self.seed = seed
        self._names = Names(names)
        self.identity = secrets.token_hex(8)
        self.stored: dict[Path, int] = {}  # how many of its parts lie in a folder
        place = pick_device(device)
        self.run: LinkTrainer | NodeTrainer
        if isinstance(settings, LinkSettings):
            self.run = LinkTrainer(settings, seed, place)
        else:
            self.run = NodeTrainer(settings, seed, place)
        self.strategy = make_strategy(settings)
        self.reports: list[PartReport] = []
        self.tests: list[list[Tested]] = []
        self.before: list[float | None] = []
        self.retention: list[float | None] = []
        self.first_answers: torch.Tensor | None = None
        self._broken = False

    def __repr__(self) -> str:
        settings, graph = self.settings, self.run.graph
        links = isinstance(self.run, LinkTrainer)
        known = {"seed": self.seed, "parts": self.num_parts} | {
            kind: 0 if graph is None else len(getattr(graph, kind))
            for kind in (("entities", "relations") if links else ("nodes", "classes"))
        }
        listed = ", ".join(f"{name}={value}" for name, value in known.items())
        return f"Learner({settings.model}, {settings.strategy}, {listed})"

    @property
    def task(self) -> Task:
        """What it learns."""
        links = isinstance(self.run, LinkTrainer)
        return Task.LINK_PREDICTION if links else Task.NODE_CLASSIFICATION

    @property
    def names(self) -> Names:
        """Readable names by label; they may be changed at any time."""
        return self._names

    @names.setter
    def names(self, names: Mapping[str, str]) -> None:
        self._names = Names(names)

    @property
    def num_parts(self) -> int:
        """Parts learned so far."""
        return self.run.num_parts

    def learn(
        self,
        part: Part | Triples | NetworkFacts | str | Path,
        *,
        names: Mapping[str, str] | None = None,
        probe: bool = False,
        monitor: Monitor | None = None,
    ) -> PartReport:
        """Learn what arrived.

        Args:
            part: A part of a stream; or what arrived by its labels: triples as a list, an array, a
                data frame of three columns or a file, new nodes and edges of a network as
                `NetworkFacts` or files. Labels are text or whole numbers. Entities, relations and
                classes may be new, and edges may name old nodes.
            names: Readable names of what arrived, besides those in a `labels.tsv` beside the files.
            probe: Measure the part's test set before it is learned, for the forward transfer.
            monitor: Told about every epoch.

        Facts that are known already are left out; where nothing else is given, there is no new
        part and the report is empty. When learning fails (it diverges, or is interrupted), the
        learner is of no further use: go on with the one that was saved before.
        """
        given = isinstance(part, KnowledgePart | NetworkPart)
        part, found = self.as_part(part)
        named = Names(found) | Names(names)
        self.check_usable()
        run = self.run
        if given:
            part = checked(part)
            if run.num_parts and self._is_stale(part):
                known = DataWarning(f"part {run.num_parts}", "learned before: nothing in it is new")
                warnings.warn(known, stacklevel=2)
        else:
            part, _ = self.news(part)
            if not self.brings_something(part):
                self.names.update(named)
                return PartReport(run.newest, 0.0, 0)
            alike = self.named_alike(part)
            if alike:
                some = ", ".join(map(shown, alike[:3])) + (", ..." if len(alike) > 3 else "")
                warnings.warn(f"new, though they are the names of others: {some}", stacklevel=2)
        if not run.num_parts and not len(part.train):  # it would use up how a first part is learned
            raise UserError("the first part holds no training examples: there is nothing to learn")
        started = time.perf_counter()
        self._broken = True
        try:
            run.take(part)
        except UserError:  # refused before anything changed
            self._broken = False
            raise
        self.names.update(named)
        took = time.perf_counter() - started
        before = self._probe() if probe and run.newest else None
        started = time.perf_counter()
        learned = self.strategy.learn(run, monitor)
        if run.device.type == "cuda":
            torch.cuda.synchronize(run.device)
        took += time.perf_counter() - started
        self._broken = False
        self.before.append(before)
        took -= sum(fit.validate_seconds for fit in learned.fits)
        bests = [fit.best for fit in learned.fits if fit.best is not None]
        report = PartReport(
            run.newest,
            took,
            run.count("train", run.newest),
            learned.replayed,
            learned.candidates,
            learned.activated,
            sum(fit.epochs for fit in learned.fits),
            validation=bests[-1] if bests else None,
            best_epoch=learned.fits[-1].best_epoch if learned.fits else 0,
            details=learned.details | {"arrived": self._arrived()},
        )
        self.reports.append(report)
        self.tests.append([])
        self.retention.append(None)
        return report

    def evaluate(self) -> Evaluation:
        """Measure on the test sets of all parts so far."""
        run = self.run
        self.check_learned()
        started = time.perf_counter()
        tests: list[Tested] = []
        sets = {part: run.examples("test", part, part + 1) for part in range(run.num_parts)}
        sets = {part: examples for part, examples in sets.items() if len(examples)}
        outcomes = run.outcomes(list(sets.values())) if sets else []
        for (part, examples), (metrics, answered) in zip(sets.items(), outcomes, strict=True):
            metrics.pop("loss", None)
            tests.append({"part": part, "count": len(examples), **metrics})
            if part == 0:
                if run.num_parts == 1:
                    self.first_answers = answered.cpu()
                self.retention[-1] = self._retained(answered.cpu())
        self.tests[-1] = tests
        self.reports[-1].evaluate_seconds = time.perf_counter() - started
        return self.evaluation()

    def evaluation(self, parts: int | None = None) -> Evaluation:
        """What `evaluate` found after that many parts; after all of them unless given.

        Raises:
            UserError: So many parts were not learned.
        """
        self.check_learned()
        most = len(self.reports)
        parts = most if parts is None else _whole_number("parts", parts, 1, most)
        return evaluation(
            self.run.metric, self.tests[:parts], self.before[:parts], self.retention[parts - 1]
        )

    def evaluations(self) -> list[Evaluation]:
        """What `evaluate` found after each part, the first one first."""
        self.check_learned()
        return list(evaluations(self.run.metric, self.tests, self.before, self.retention))

    def predict(
        self,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        *,
        node: str | None = None,
        k: int = 10,
        new: bool = False,
    ) -> list[Prediction]:
        """Answer a question, best first.

        Exactly one of head, relation and tail is left out and asked for; for a network, `node` asks
        for its class. Labels and readable names are understood. The entity of the question is an
        answer only where some entity is known to have the relation to itself.

        Args:
            head: The head.
            relation: The relation.
            tail: The tail.
            node: A node of a network.
            k: How many answers, at most.
            new: Leave out facts that are known, learned or set aside.
        """
        k = _whole_number("k", k, 1)
        self.check_learned()
        if isinstance(self.run, NodeTrainer):
            if node is None or (head, relation, tail) != (None, None, None) or new:
                raise UserError("a network answers what class a node has: give node alone")
            return self._predict_classes(self.run, [as_label(node)], k)[0]
        if node is not None:
            raise UserError("node is for networks; ask a knowledge graph by head, relation, tail")
        return self.predict_links([(head, relation, tail)], k=k, new=new)[0]

    def predict_links(
        self, questions: Iterable[Question], *, k: int = 10, new: bool = False
    ) -> list[list[Prediction]]:
        """Answer many questions about a knowledge graph, as `predict` does one.

        Args:
            questions: Head, relation and tail, with None in place of what is asked for.
            k: How many answers to each, at most.
            new: Leave out facts that are known, learned or set aside.

        Example:
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> _ = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
            >>> asked = [("Alien", "genre", None), (None, "genre", "satire")]
            >>> [answers[0].label for answers in learner.predict_links(asked, k=1)]
            ['horror', 'Brazil']
        """
        self.check_learned()
        rows = [self.question_ids(question) for question in questions]
        return self.answer_rows(as_triples(rows), k=k, new=new)

    def question_ids(self, question: Question) -> list[int]:
        """The ids of a question's labels or names, with `answers.ASKED` for what is asked for.

        Raises:
            UserError: It does not ask for one thing, or names something unknown or ambiguous.
        """
        graph = self._links("a question of head, relation and tail").graph
        if isinstance(question, str) or not isinstance(question, Sequence):
            raise UserError(f"{question!r}: expected a question, such as (head, relation, None)")
        if len(question) != 3 or sum(text is None for text in question) != 1:
            raise UserError(f"{question!r}: leave out exactly one of head, relation and tail")
        vocabularies = (graph.entities, graph.relations, graph.entities)
        return [
            ASKED if text is None else self.label_id(as_label(text), vocabulary)
            for text, vocabulary in zip(question, vocabularies, strict=True)
        ]

    def answer_rows(
        self, questions: IntArray, *, k: int = 10, new: bool = False
    ) -> list[list[Prediction]]:
        """What `predict_links` says to questions by ids, [q, 3]."""
        k = _whole_number("k", k, 1)
        self.check_learned()
        run = self._links("a question of head, relation and tail")
        answered = best_answers(run, questions, k, new=new)
        is_relation = (questions[:, 1] == ASKED).tolist()
        entities, relations = run.graph.entities, run.graph.relations
        return [
            [
                Prediction(label, self.names.of(label), score, known, aside)
                for label, score, known, aside in zip(
                    (relations if of_relation else entities).labels(found.ids),
                    found.scores.tolist(),
                    found.known.tolist(),
                    found.aside.tolist(),
                    strict=True,
                )
            ]
            for found, of_relation in zip(answered, is_relation, strict=True)
        ]

    def score(self, triples: Triples) -> list[float]:
        """Scores of labelled triples, as `learn` takes them; higher means more likely."""
        self.check_learned()
        return self.score_rows(self._ids(self._links("score"), as_labels(triples)))

    def measure(self, triples: Triples, *, by_relation: bool = False) -> dict[str, Any]:
        """How well the answers of labelled triples are found; nothing is learned.

        Ranks are filtered by all that is known and by each other.

        Args:
            triples: Triples as `learn` takes them; their labels must be known.
            by_relation: Measure the questions of each relation for heads and for tails, too.

        Returns:
            Metrics as shares, `count`, and how many of the triples are `known`; with `by_relation`
            those of `relations`, the ones with most triples first.
        """
        self.check_learned()
        return self.measure_rows(
            self._ids(self._links("measure"), as_labels(triples)), by_relation=by_relation
        )

    def measure_rows(self, rows: IntArray, *, by_relation: bool = False) -> dict[str, Any]:
        """What `measure` says of triples by ids, [n, 3]."""
        self.check_learned()
        run = self._links("measure")
        if not len(rows):
            raise UserError("there is no triple to measure with")
        triples = torch.from_numpy(rows).to(run.device)
        ranks = run.ranks(triples, besides=triples)
        found: dict[str, Any] = {
            "count": len(rows),
            "known": int(run.graph.contains(rows).sum()),
            **ranking_metrics(ranks),
        }
        if by_relation:
            relations, count = np.unique(rows[:, 1], return_counts=True)
            order = np.argsort(-count, kind="stable")
            labels = run.graph.relations.labels(relations[order])
            found["relations"] = [
                {
                    "relation": self.names.of(label),
                    "asked": name,
                    "count": int(count[at]),
                    **ranking_metrics(ranks.of(side, triples[:, 1] == int(relations[at]))),
                }
                for at, label in zip(order, labels, strict=True)
                for side, name in enumerate(("head", "tail"))
            ]
        return found

    def explain(self, head: str, relation: str, tail: str, *, k: int = 10) -> Explanation:
        """Why a triple matters: its components and what it would activate; see `explain`.

        Args:
            head: Label or name of the head.
            relation: Label or name of the relation.
            tail: Label or name of the tail.
            k: How many old triples to list.
        """
        self.check_learned()
        run = self._links("explain")
        (row,) = self._ids(run, as_labels([(head, relation, tail)]))
        return explain(run, self.names, row, _whole_number("k", k, 0))

    def export(self, folder: str | Path) -> list[str]:
        """Write the vectors as safetensors and NumPy arrays, the labels as TSV; see `export`.

        Args:
            folder: Where to; there must be nothing yet.

        Returns:
            Names of the files.
        """
        self.check_learned()
        return export(self.run, self.names, Path(folder))

    @torch.no_grad()
    def similar(self, label: str, *, k: int = 10, component: int | None = None) -> list[Prediction]:
        """Entities, or nodes of a network, whose vectors point in the same direction, best first.

        The score is the cosine of the angle between two vectors, 1 for the same direction.

        Args:
            label: The entity or node; its label or readable name.
            k: How many, at most.
            component: Compare that component alone, from 0; whole vectors unless given.

        Raises:
            UserError: There is no such entity or component.
        """
        k = _whole_number("k", k, 1)
        self.check_learned()
        run, count = self.run, 1
        if isinstance(run, LinkTrainer):
            vocabulary, rows = run.graph.entities, run.model.entities.rows
            count = run.model.count
            vectors = rows.view(run.model.num_entities, count, -1)
        else:
            assert run.graph is not None
            vocabulary, vectors = run.graph.nodes, run.vectors()[:, None]
        if component is not None:
            component = _whole_number("component", component, 0, count - 1)
            vectors = vectors[:, component]
        number = self.label_id(as_label(label), vocabulary)
        directions = torch.nn.functional.normalize(vectors.flatten(1), dim=1)
        cosine = directions @ directions[number]
        cosine[number] = -torch.inf  # everything is like itself
        best = cosine.topk(min(k, len(cosine) - 1))
        labels = vocabulary.labels(best.indices.cpu().numpy())
        return [
            Prediction(label, self.names.of(label), score, known=False)
            for label, score in zip(labels, best.values.tolist(), strict=True)
        ]

    def score_rows(self, rows: IntArray) -> list[float]:
        """Scores of triples by ids, [n, 3]."""
        self.check_usable()
        scores: list[float] = scores_of(self._links("score"), rows).tolist()
        return scores

    def readable(self, row: IntArray) -> tuple[str, str, str]:
        """Names of a triple by ids, [3]; labels where there are no names.

        Entities that share a name are told apart by their labels.
        """
        return self.names.triple(self._links("readable").graph, row)

    def fork(self, settings: LinkSettings | NodeSettings) -> Learner:
        """This learner after its first part, with another way to learn later ones.

        The first part is learned alike by all strategies, so that comparisons need it only once.
        This learner is given up for the new one.

        Raises:
            UserError: More than one part was learned, or a setting differs that the first part
                depends on.
        """
        self.check_learned()
        if self.num_parts != 1:
            raise UserError(f"{self.num_parts} parts were learned; only the first can be shared")
        mine, theirs = self.settings.as_dict(), settings.as_dict()
        differs = [key for key in theirs if key not in LATER and mine.get(key) != theirs[key]]
        if differs or self.strategy.keeps_state:
            raise UserError(f"the first part cannot be shared: {', '.join(differs) or 'its state'}")
        strategy = make_strategy(settings)  # before anything changes: it may refuse
        self.strategy = strategy
        self.settings = self.run.settings = settings
        self.identity = secrets.token_hex(8)
        self.stored = {}
        strategy.conclude(self.run)
        return self

    def save(
        self,
        folder: str | Path,
        *,
        keep: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the learner to a folder; see `dicgrl.store.run_folder`.

        Args:
            folder: Where to; a folder that holds this learner's earlier parts, or none.
            keep: Whose models stay in the folder: of all parts ("all"), or of the last ("last");
                unless given, as the folder was begun, and all in a new one.
            about: Further values for the configuration of a new folder, such as the dataset.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: The folder holds another learner, folders of runs or a damaged run, or is a
                file; or the last part was not learned to its end.
        """
        self.check_usable()
        place = Path(folder).resolve()
        known = self.stored.get(place, 0)
        RunFolder(folder).save(self.state(), about=about, keep=keep, known=known)
        self.stored[place] = self.num_parts

    def state(self) -> LearnerState:
        """All that there is to save, as plain values."""
        return LearnerState(
            identity=self.identity,
            model_name=self.settings.model,
            strategy_name=self.settings.strategy,
            seed=self.seed,
            settings=self.settings.as_dict(),
            protocol=self.run.describe_protocol(),
            names=self.names,
            parts=self.run.taken,
            model=self.run.model if self.num_parts else None,
            strategy=self.strategy.state(),
            reports=[asdict(report) for report in self.reports],
            tests=self.tests,
            before=self.before,
            retention=self.retention,
            first_answers=self.first_answers,
        )

    @classmethod
    def load(cls, folder: str | Path, *, device: str | torch.device = "auto") -> Learner:
        """Read back a learner that was saved.

        Raises:
            DataError: The folder is damaged or not a learner of this package.
        """
        place = pick_device(device)  # a mistake there is not the folder's
        run = RunFolder(folder)
        config = run.config()
        try:  # before anything large is read
            kind = NodeSettings if config["model"] in BACKBONES else LinkSettings
            learner = cls(settings=kind(**config["settings"]), seed=config["seed"], device=place)
            learner.identity = config["identity"]
        except (KeyError, TypeError, UserError) as error:
            raise run.misfit(error) from error
        state = run.load(place, learner.identity)
        try:
            learner._recall(state)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise run.damage(error) from error
        learner.stored[Path(folder).resolve()] = learner.num_parts
        return learner

    def _recall(self, state: LearnerState) -> None:
        """Become what was saved."""
        self.names = state.names
        if state.model is None:
            return
        self.run.recall(state.parts, state.model)
        self.reports = [PartReport(**report) for report in state.reports]
        self.tests = list(state.tests)
        self.before = list(state.before)
        self.retention = list(state.retention)
        self.first_answers = state.first_answers
        self.strategy.restore(dict(state.strategy))

    def check_usable(self) -> None:
        """Refuse to go on after a part that was learned by half.

        Raises:
            UserError: The last call of `learn` failed.
        """
        if self._broken:
            raise UserError(
                f"part {self.run.newest} was not learned to its end; load the learner that was "
                "saved before it"
            )

    def check_learned(self) -> None:
        """Refuse a learner that cannot answer: it has learned nothing, or a part not to its end.

        Raises:
            UserError: It cannot.
        """
        self.check_usable()
        if not self.reports:
            raise UserError("nothing was learned yet: call learn first")

    def label_id(self, text: str, vocabulary: Vocabulary) -> int:
        """The id of a label, or of the one label with that readable name.

        Raises:
            UserError: There is none, or more than one; the message names similar or all of them.
        """
        return self.names.find(text, vocabulary)

    def predict_classes(self, nodes: Sequence[str], *, k: int = 10) -> list[list[Prediction]]:
        """The classes of many nodes of a network, as `predict` gives those of one, in one pass."""
        k = _whole_number("k", k, 1)
        self.check_learned()
        if not isinstance(self.run, NodeTrainer):
            raise UserError("a knowledge graph has no classes: this is for networks")
        return self._predict_classes(self.run, [as_label(node) for node in nodes], k)

    def _predict_classes(
        self, run: NodeTrainer, nodes: Sequence[str], k: int
    ) -> list[list[Prediction]]:
        assert run.graph is not None
        numbers = np.array([self.label_id(node, run.graph.nodes) for node in nodes], dtype=np.int64)
        share = run.scores(torch.from_numpy(numbers).to(run.device)).softmax(1)
        best = share.topk(min(k, share.shape[1]))
        trained = np.isin(numbers, run.examples("train").cpu().numpy()).tolist()
        true = run.graph.labels[numbers].tolist()
        classes = run.graph.classes.labels(range(share.shape[1]))
        answers = zip(best.indices.tolist(), best.values.tolist(), true, trained, strict=True)
        return [
            [
                Prediction(
                    classes[i],
                    self.names.of(classes[i]),
                    p,
                    known=learned and i == right,
                    aside=not learned and i == right,
                )
                for i, p in zip(indices, shares, strict=True)
            ]
            for indices, shares, right, learned in answers
        ]

    def _arrived(self) -> dict[str, int]:
        """What was new with the newest part, by kind."""
        part = self.run.taken[-1]
        if isinstance(part, KnowledgePart):
            return {"entities": len(part.new_entities), "relations": len(part.new_relations)}
        return {"nodes": len(part.new_nodes), "classes": len(part.new_classes)}

    def _probe(self) -> float | None:
        examples = self.run.examples("test", self.run.newest)
        if not len(examples):
            return None
        return self.run.measure(examples)[self.run.metric] - self.run.chance()

    def _retained(self, answered: torch.Tensor) -> float | None:
        if self.first_answers is None or not self.first_answers.any():
            return None
        return answered[self.first_answers].double().mean().item()

    def news(self, part: Part) -> tuple[Part, tuple[int, int]]:
        """What a part of facts brings: triples that are not known, nor set aside already.

        `learn` leaves the others out where it is given facts instead of a part of a stream.

        Returns:
            The part that is left, and how many of its triples were known and set aside.
        """
        if isinstance(self.run, LinkTrainer) and isinstance(part, KnowledgePart):
            return self.run.graph.news(part)
        return part, (0, 0)

    def _is_stale(self, part: Part) -> bool:
        """Whether a part of a stream says something, all of which is known."""
        graph, says = self.run.graph, any(len(getattr(part, split)) for split in SPLITS)
        if isinstance(part, KnowledgePart):
            return says and isinstance(graph, KnowledgeGraph) and graph.is_known(part)
        return says and isinstance(graph, NetworkGraph) and graph.is_known(part)

    def brings_something(self, part: Part) -> bool:
        """Whether there is anything to learn of what `news` left; always for a first part."""
        graph = self.run.graph
        if not self.num_parts or isinstance(part, NetworkPart) != isinstance(graph, NetworkGraph):
            return True  # or nothing that this learner could learn: `learn` says so
        if isinstance(part, NetworkPart) and isinstance(graph, NetworkGraph):
            return not graph.is_known(part)
        return any(len(getattr(part, split)) for split in SPLITS)

    def named_alike(self, part: Part) -> list[str]:
        """Labels of a part that are new, and the readable names of known ones.

        They would become something new; whoever asks by that name then means it.
        """
        names = {name for label, name in self.names.items() if name != label}
        if not names:
            return []
        if isinstance(part, KnowledgePart):
            entities = part.entities.labels(part.new_entities)
            labels = [*entities, *part.relations.labels(part.new_relations)]
        else:
            labels = [*part.nodes.labels(part.new_nodes), *part.classes.labels(part.new_classes)]
        known = self._vocabularies()
        return [
            label
            for label in labels
            if label in names and not any(label in vocabulary for vocabulary in known)
        ]

    def _vocabularies(self) -> tuple[Vocabulary, ...]:
        graph = self.run.graph
        if isinstance(graph, NetworkGraph):
            return graph.nodes, graph.classes
        return () if graph is None else (graph.entities, graph.relations)

    def as_part(
        self, part: Part | Triples | NetworkFacts | str | Path
    ) -> tuple[Part, Mapping[str, str]]:
        """What `learn` makes of what it is given, and readable names beside it; nothing is learned.

        Raises:
            UserError: It is neither a part, nor triples or facts, nor a file of one part.
        """
        if isinstance(part, KnowledgePart | NetworkPart):
            return part, {}
        if isinstance(part, KnowledgeStream | NetworkStream):
            raise UserError("a stream is learned part by part: for part in stream: learn(part)")
        if (library := type(part).__module__.partition(".")[0]) in _CONVERTED:
            raise UserError(f"dicgrl.interop.{_CONVERTED[library]} makes a stream of it, to learn")
        network = self.run.graph if isinstance(self.run, NodeTrainer) else None
        if isinstance(part, NetworkFacts):
            return part.part(network), {}
        if isinstance(part, str | Path):
            return read_part(part, network)
        return KnowledgeStream.from_labels("learned", [part])[0], {}

    def _links(self, what: str) -> LinkTrainer:
        if not isinstance(self.run, LinkTrainer):
            raise UserError(f"{what} is about triples; this learner classifies nodes")
        return self.run

    def _ids(self, run: LinkTrainer, triples: list[tuple[str, str, str]]) -> IntArray:
        entity, relation = run.graph.entities, run.graph.relations
        rows = [
            (self.label_id(h, entity), self.label_id(r, relation), self.label_id(t, entity))
            for h, r, t in triples
        ]
        return as_triples(rows)


def _whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A number that was given as a whole one; no text, no fraction.

    Raises:
        UserError: It is something else, or out of range.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    number = int(value) if whole else least - 1
    if number < least or (most is not None and number > most):
        span = f"at least {least}" if most is None else f"{least} to {most}"
        raise UserError(f"{name}={value!r}: expected a whole number, {span}")
    return number


def part_results(report: PartReport, found: Evaluation) -> dict[str, Any]:
    """The entry of a part in the results."""
    took = asdict(report)
    details = took.pop("details")
    return {
        **took,
        **details,
        "tests": found.tests,
        "whole": found.whole,
        "average": found.average,
        "forgetting": found.forgetting,
        "retention": found.retention,
    }
