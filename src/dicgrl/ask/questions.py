"""The usual questions to a learner, as methods of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dicgrl.ask.asking import Asking
from dicgrl.ask.candidates import Among
from dicgrl.ask.explain import Explanation
from dicgrl.ask.exports import DEFAULT
from dicgrl.ask.given import Answers, ManyAnswers
from dicgrl.ask.links import Question, as_questions
from dicgrl.graph.frames import frame_rows, listed, only_column
from dicgrl.graph.labelled import Triples


class Questions(ABC):
    """Passes questions on to the `Asking` of the learner."""

    @property
    @abstractmethod
    def ask(self) -> Asking:
        """Answers all questions that the task has; the methods below are the usual ones."""

    @property
    def num_entities(self) -> int:
        """Entities of the knowledge graph so far."""
        return self.count("entities")

    @property
    def num_relations(self) -> int:
        """Relations of the knowledge graph so far."""
        return self.count("relations")

    @property
    def num_nodes(self) -> int:
        """Nodes of the network so far."""
        return self.count("nodes")

    @property
    def num_classes(self) -> int:
        """Classes of the network so far."""
        return self.count("classes")

    @abstractmethod
    def count(self, kind: str) -> int:
        """How many labels of a kind there are so far, such as entities.

        Raises:
            UserError: The task has no such kind.
        """

    def predict(
        self,
        *given: str | None,
        k: int = 10,
        new: bool = False,
        among: Among | None = None,
        **named: str | None,
    ) -> Answers:
        """Answer a question, best first.

        Exactly one of head, relation and tail is left out and asked for; for a network, `node` asks
        for its class. Labels and readable names are understood. The entity of the question is an
        answer only where its relation is reflexive, see `KnowledgeGraph.is_reflexive`.

        Args:
            *given: Head, relation and tail, or a node.
            k: How many answers, at most.
            new: Leave out facts that are known, learned or held out.
            among: Entities that answers are taken from: labels or names, or where they were seen:
                `seen`, at the asked end of the asked relation, `heads:RELATION` or
                `tails:RELATION`, at that end of another one; all unless given.
            **named: The same by name: head, relation, tail; node.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> _ = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
            >>> answers = learner.predict("Alien", "genre", among="seen")
            >>> [answer.label for answer in answers]
            ['horror', 'satire']
        """
        asking = self.ask
        question = asking.question(given, named)
        return Answers(question, asking.predict(k=k, new=new, among=among, **question))

    def predict_links(
        self,
        questions: Iterable[Question],
        *,
        k: int = 10,
        new: bool = False,
        among: Among | None = None,
    ) -> ManyAnswers:
        """Answer many questions about a knowledge graph, as `predict` does one.

        Args:
            questions: Head, relation and tail, with None in place of what is asked for; a list, or
                a data frame with these columns.
            k: How many answers to each, at most.
            new: Leave out facts that are known, learned or held out.
            among: As of `predict`.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> _ = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
            >>> asked = [("Alien", "genre", None), (None, "genre", "satire")]
            >>> [answers[0].label for answers in learner.predict_links(asked, k=1)]
            ['horror', 'Brazil']
            >>> learner.predict_links(asked, k=1).to_frame()["tail"].tolist()
            ['horror', 'satire']
        """
        questions = as_questions(questions)
        asking = self.ask.for_links("a question of head, relation and tail")
        asking = asking if among is None else asking.among(among)
        found = asking.predict_links(questions, k=k, new=new)
        return _given(asking.fields, questions, found)

    def predict_relations(
        self, pairs: Iterable[Sequence[str]], *, k: int = 10, new: bool = False
    ) -> ManyAnswers:
        """Which relations hold between the heads and tails of pairs, all in one pass.

        Args:
            pairs: Head and tail of each.
            k: How many relations of each, at most.
            new: Leave out facts that are known, learned or held out.

        Example:
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=8, epochs=50, lr=0.1, device="cpu")
            >>> _ = learner.learn([("Alien", "genre", "horror"), ("Alien", "sequel", "Aliens")])
            >>> pairs = [("Alien", "horror"), ("Alien", "Aliens")]
            >>> [answers[0].label for answers in learner.predict_relations(pairs)]
            ['genre', 'sequel']
        """
        asking = self.ask.for_links("a question for a relation")
        pairs = listed(frame_rows(pairs, 2), "pairs of a head and a tail")
        found = asking.predict_relations(pairs, k=k, new=new)
        return _given(asking.fields, [(head, None, tail) for head, tail in pairs], found)

    def predict_classes(self, nodes: Iterable[str], *, k: int = 10) -> ManyAnswers:
        """The classes of many nodes of a network, as `predict` gives those of one, in one pass.

        They may be the column `node` of a data frame.
        """
        asking = self.ask.for_nodes()
        nodes = only_column(nodes, "node")
        return _given(asking.fields, [(n,) for n in nodes], asking.predict_classes(nodes, k=k))

    def score(self, triples: Triples) -> list[float]:
        """Scores of labelled triples, as `learn` takes them; higher means more likely."""
        scores: list[float] = self.ask.for_links("score").score(triples)
        return scores

    def probabilities(self, triples: Triples) -> list[float | None]:
        """How likely labelled triples are as answers to (head, relation, ?); None: not known.

        See docs/protocol.md for what a probability means. All candidates are scored for it, so
        that it takes longer than `score`.
        """
        found: list[float | None] = self.ask.for_links("probabilities").probabilities(triples)
        return found

    def measure(self, triples: Triples, *, by_relation: bool = False) -> dict[str, Any]:
        """How well the answers of labelled triples are found; see `LinkAsking.measure`."""
        asking = self.ask.for_links("measure")
        found: dict[str, Any] = asking.measure(triples, by_relation=by_relation)
        return found

    def explain(self, head: str, relation: str, tail: str, *, k: int = 10) -> Explanation:
        """Why a triple is likely: facts that speak for it, and what it would activate.

        Args:
            head: Label or name of the head.
            relation: Label or name of the relation.
            tail: Label or name of the tail.
            k: How many facts of each kind, and old triples, to list.
        """
        found: Explanation = self.ask.for_links("explain").explain(head, relation, tail, k=k)
        return found

    def similar(self, label: str, *, k: int = 10, component: int | None = None) -> Answers:
        """Entities or nodes whose vectors point in the same direction; see `Asking.similar`."""
        found = self.ask.similar(label, k=k, component=component)
        return Answers({"similar to": label}, found)

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the learner is, for people and other programs, ready for JSON."""

    def export(
        self,
        folder: str | Path,
        *,
        format: str | Sequence[str] = DEFAULT,  # noqa: A002
        neighbours: int | None = None,
        license: str = "",  # noqa: A002
    ) -> list[str]:
        """Write vectors and labels for other programs to a new folder; see `Asking.export`.

        Args:
            folder: Where to; there must be nothing yet.
            format: Names of formats, a list or text with commas: arrays (safetensors and NumPy),
                safetensors (with a model card), npy, parquet, word2vec.
            neighbours: For parquet, how many neighbours of each row to tell; 0 for none.
            license: For the model card, such as cc0-1.0.

        Returns:
            Names of the files.
        """
        about = self.about() | {"license": license}
        return self.ask.export(folder, format=format, neighbours=neighbours, about=about)


def _given(
    fields: Sequence[str], questions: Iterable[Sequence[Any]], found: Iterable[Any]
) -> ManyAnswers:
    """Answers beside their questions."""
    return ManyAnswers(
        Answers(
            {n: None if x is None else str(x) for n, x in zip(fields, asked, strict=True)}, each
        )
        for asked, each in zip(questions, found, strict=True)
    )
