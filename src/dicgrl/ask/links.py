"""Questions about a knowledge graph: head, relation and tail, one of which is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.ask.answers import ASKED_ID, best_answers, scores_of
from dicgrl.ask.asking import Answered, Asking, Prediction
from dicgrl.ask.candidates import Among, Candidates
from dicgrl.ask.explain import Explanation, explain
from dicgrl.ask.names import Names
from dicgrl.ask.probabilities import (
    NO_PROBABILITIES,
    examine_links,
    fact_probabilities,
    foresee_links,
    measure_links,
)
from dicgrl.common.numbers import whole_number
from dicgrl.errors import DataError, UnknownLabelError, UserError, shown_value
from dicgrl.evaluation import ranking_metrics
from dicgrl.evaluation.calibration import Calibration
from dicgrl.graph import KnowledgeGraph, Vocabulary
from dicgrl.graph.arrays import IntArray, as_triples
from dicgrl.graph.frames import frame_rows, listed
from dicgrl.graph.labelled import Triples, as_labels
from dicgrl.graph.labels import as_label, is_missing, role_of
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.triples import triple_rows
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import RELATION

Question = Sequence[str | None]
"""Head, relation and tail, one of which is None: that is asked for."""

ASKED_TEXT = "?"  # stands for what a line of a file asks for
_ANSWERS = 1 << 17  # that are there at a time

_A_QUESTION = "a head, a relation and a tail, one of which is None"


class LinkAsking(Asking):
    """Answers which triples are likely.

    The entity of a question can itself be an answer only if the relation is reflexive, that is, if
    significantly more than one in twenty of the relation's facts are self loops.
    """

    fields = ("head", "relation", "tail")
    how_to_ask = "node is for networks; ask a knowledge graph by head, relation, tail"

    def __init__(self, trainer: LinkTrainer, names: Names) -> None:
        super().__init__(trainer, names)
        self.trainer = trainer
        self._candidates: Candidates | None = None  # all

    @override
    def among(self, candidates: Among) -> Self:
        asking = copy(self)
        asking._candidates = Candidates(self.graph, self.names, candidates)
        return asking

    @property
    def graph(self) -> KnowledgeGraph:
        """The knowledge graph."""
        return self.trainer.graph

    @override
    def answer(self, question: list[str | None], k: int, new: bool) -> list[Prediction]:
        return self.predict_links([question], k=k, new=new)[0]

    def predict_links(
        self, questions: Iterable[Question], *, k: int = 10, new: bool = False
    ) -> list[list[Prediction]]:
        """Answer many questions.

        Args:
            questions: Head, relation and tail, with None in place of what is asked for.
            k: How many answers to each, at most.
            new: Leave out facts that are known, learned or held out.
        """
        rows = [self.question_ids(question) for question in as_questions(questions)]
        return self.answer_rows(as_triples(rows), k=k, new=new)

    def predict_relations(
        self, pairs: Iterable[Sequence[str]], *, k: int = 10, new: bool = False
    ) -> list[list[Prediction]]:
        """Which relations hold between the heads and tails of pairs, best first.

        Args:
            pairs: Head and tail of each.
            k: How many relations of each, at most.
            new: Leave out facts that are known, learned or held out.
        """
        return self.predict_links([_relation_of(pair) for pair in pairs], k=k, new=new)

    def question_ids(self, question: Question) -> list[int]:
        """The ids of a question's labels or names, with `ASKED_ID` for what is asked for.

        Raises:
            UserError: It does not ask for one thing, or names something unknown or ambiguous.
        """
        if isinstance(question, str) or not isinstance(question, Sequence):
            raise UserError(
                f"{shown_value(question)}: expected a question, such as (head, relation, None)"
            )
        if len(question) != 3 or sum(text is None for text in question) != 1:
            raise UserError(
                f"{tuple(question)!r}: leave out exactly one of head, relation and tail"
            )
        ids = [
            ASKED_ID if text is None else self.names.find(as_label(text), vocabulary)
            for text, vocabulary in zip(question, self._columns, strict=True)
        ]
        if self._candidates is not None:
            self._candidates.of(ids.index(ASKED_ID), ids[RELATION])  # there are some
        return ids

    @cached_property
    def calibration(self) -> Calibration | None:
        """What makes probabilities of scores; None where nothing was held out to fit it."""
        fit = self.examined().get("fit")
        return Calibration.from_dict(fit) if fit else None

    @override
    def examine(self) -> dict[str, Any]:
        return examine_links(self.trainer, self.unseen, self.unseen_change)

    @override
    def foresee(self) -> dict[str, Any]:
        return foresee_links(self.trainer)

    @override
    def measure_reliability(self) -> dict[str, Any]:
        calibration = self.calibration
        return measure_links(self.trainer, calibration) if calibration else {}

    @property
    def _columns(self) -> tuple[Vocabulary, Vocabulary, Vocabulary]:
        graph = self.graph
        return graph.entities, graph.relations, graph.entities

    def answer_rows(
        self, questions: IntArray, *, k: int = 10, new: bool = False
    ) -> list[list[Prediction]]:
        """What `predict_links` says to questions by ids, [q, 3]."""
        k = whole_number("k", k, 1)
        answered = best_answers(
            self.trainer,
            questions,
            k,
            new=new,
            candidates=self._candidates,
            calibration=self.calibration,
        )
        is_relation = (questions[:, 1] == ASKED_ID).tolist()
        entities, relations = self.graph.entities, self.graph.relations
        return [
            [
                Prediction(label, self.names.of(label), *values)
                for label, *values in zip(
                    (relations if of_relation else entities).labels(found.ids),
                    found.scores.tolist(),
                    found.known.tolist(),
                    found.held_out.tolist(),
                    found.told(),
                    strict=True,
                )
            ]
            for found, of_relation in zip(answered, is_relation, strict=True)
        ]

    @override
    def answer_lines(
        self, file: SourceFile, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        for rows in triple_rows(file):
            lines = [tuple(x or ASKED_TEXT for x in row) for row in zip(*rows.columns, strict=True)]
            yield from self._answer_lines(file.label, rows.first_line, lines, k, new, on_unknown)

    @override
    def answer_given(
        self, questions: Any, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        lines = [
            tuple(ASKED_TEXT if x is None else as_label(x) for x in listed(question, _A_QUESTION))
            for question in as_questions(questions)
        ]
        yield from self._answer_lines("questions", 1, lines, k, new, on_unknown)

    def _answer_lines(
        self,
        label: str,
        first: int,
        lines: Iterable[tuple[str, ...]],
        k: int,
        new: bool,
        on_unknown: Callable[[], None] | None,
    ) -> Iterator[Answered]:
        questions: list[tuple[str, ...]] = []
        ids = []
        for number, line in enumerate(lines, first):
            try:
                ids.append(self.question_ids([None if x == ASKED_TEXT else x for x in line]))
            except UserError as error:
                if on_unknown and isinstance(error, UnknownLabelError):
                    on_unknown()
                    continue
                raise DataError(label, str(error), number) from None
            questions.append(line)
        height = max(_ANSWERS // max(k, 1), 1)
        for start in range(0, len(ids), height):
            some = slice(start, start + height)
            answers = self.answer_rows(np.array(ids[some], dtype=np.int64), k=k, new=new)
            yield from zip(questions[some], answers, strict=True)

    @override
    def note(self, question: dict[str, str | None]) -> str:
        of_relations = question.get("relation") is None
        notes = ["scores of two relations need not be on one scale"] if of_relations else []
        return "; ".join(notes if self.calibration else [*notes, NO_PROBABILITIES])

    def ids(self, triples: Triples) -> IntArray:
        """The ids of labelled triples, [n, 3].

        Raises:
            UserError: A label is unknown or ambiguous.
        """
        rows = [
            [self.names.find(*each) for each in zip(triple, self._columns, strict=True)]
            for triple in as_labels(triples)
        ]
        return as_triples(rows)

    def score(self, triples: Triples) -> list[float]:
        """Scores of labelled triples, as `learn` takes them; higher means more likely."""
        return self.score_rows(self.ids(triples))

    def score_rows(self, rows: IntArray) -> list[float]:
        """Scores of triples by ids, [n, 3]."""
        scores: list[float] = scores_of(self.trainer, rows).tolist()
        return scores

    def probabilities(self, triples: Triples) -> list[float | None]:
        """How likely labelled triples are as answers to (head, relation, ?); None: not known.

        All candidates of each question are scored.
        """
        return self.probability_rows(self.ids(triples))

    def probability_rows(self, rows: IntArray) -> list[float | None]:
        """What `probabilities` says of triples by ids, [n, 3]."""
        if self.calibration is None or not len(rows):
            return [None] * len(rows)
        told: list[float | None] = fact_probabilities(self.trainer, self.calibration, rows).tolist()
        return told

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
        return self.measure_rows(self.ids(triples), by_relation=by_relation)

    def measure_rows(self, rows: IntArray, *, by_relation: bool = False) -> dict[str, Any]:
        """What `measure` says of triples by ids, [n, 3]."""
        if not len(rows):
            raise UserError("there is no triple to measure with")
        triples = torch.from_numpy(rows).long().to(self.device)
        ranks = self.trainer.ranks(triples, besides=triples)
        elsewhere = self.trainer.leads_elsewhere(triples)
        found: dict[str, Any] = {
            "count": len(rows),
            "known": int(self.graph.contains(rows).sum()),
            **ranking_metrics(ranks, elsewhere),
        }
        if by_relation:
            relations, count = np.unique(rows[:, 1], return_counts=True)
            order = np.argsort(-count, kind="stable")
            labels = self.graph.relations.labels(relations[order])
            found["relations"] = [
                {
                    "relation": self.names.of(label),
                    "asked": name,
                    "count": int(count[at]),
                    **ranking_metrics(ranks.of(side, of_it), elsewhere[of_it]),
                }
                for at, label in zip(order, labels, strict=True)
                for of_it in [triples[:, 1] == int(relations[at])]
                for side, name in enumerate(("head", "tail"))
            ]
        return found

    def explain(self, head: str, relation: str, tail: str, *, k: int = 10) -> Explanation:
        """Why a triple is likely; see `Questions.explain`."""
        k = whole_number("k", k, 0)
        rows = self.ids([(head, relation, tail)])
        (probability,) = self.probability_rows(rows)
        return explain(self.trainer, self.names, rows[0], k, probability)

    def readable(self, row: IntArray) -> tuple[str, str, str]:
        """Names of a triple by ids, [3]; labels where there are no names.

        Entities that share a name are told apart by their labels.
        """
        return self.names.triple(self.graph, row)

    @override
    def vectors(self) -> tuple[Vocabulary, Tensor]:
        model = self.trainer.model
        return self.graph.entities, model.vectors()

    @override
    def arrays(self) -> tuple[dict[str, Tensor], dict[str, Vocabulary]]:
        model = self.trainer.model
        arrays = {
            "entities": model.vectors(),
            "relations": model.relations.rows.view(model.num_relations, model.relation_count, -1),
        }
        if model.attention is not None:
            arrays["attention"] = model.attention.rows.softmax(-1)
        if model.attention_weight is not None:
            arrays["attention_weight"] = model.attention_weight.detach()
        return arrays, {"entities": self.graph.entities, "relations": self.graph.relations}

    @override
    def for_links(self, what: str) -> Self:
        return self

    @override
    def for_nodes(self) -> NoReturn:
        raise UserError("a knowledge graph has no classes: this is for networks")


def as_questions(given: Iterable[Question]) -> list[Question]:
    """Questions from a list, or a data frame or dicts in which what is asked for is missing.

    Example:
        >>> import pandas
        >>> as_questions(pandas.DataFrame({"head": ["a"], "relation": ["r"], "tail": [None]}))
        [('a', 'r', None)]
        >>> as_questions([{"head": "a", "relation": "r"}])
        [('a', 'r', None)]
    """
    rows = frame_rows(given)
    if rows is given:
        rows = listed(given, f"questions: {_A_QUESTION}")
        return [_of_dict(row) if isinstance(row, Mapping) else row for row in rows]
    return [tuple(None if is_missing(text) else text for text in row) for row in rows]


def _of_dict(row: Mapping[str, Any]) -> Question:
    """The question of a dict, whose keys are what columns of triples may be called."""
    found = dict.fromkeys(range(3))
    for key, value in row.items():
        if (role := role_of(key)) is not None:
            found[role] = None if is_missing(value) else value
    return tuple(found.values())


def _relation_of(pair: Sequence[str]) -> Question:
    """The question for the relation of a head and a tail."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise UserError(f"{pair!r}: expected a head and a tail")
    return pair[0], None, pair[1]
