"""Finds the best answers to many questions about a knowledge graph, in bounded memory.

A question is a triple of ids in which one id is replaced by `ASKED_ID`; that is what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dicgrl.ask.best import Best
from dicgrl.ask.candidates import Candidates
from dicgrl.ask.filtered import known_answers, known_relations
from dicgrl.ask.probabilities import Masses
from dicgrl.evaluation.calibration import Calibration
from dicgrl.evaluation.ranks import MEMORY_BOUND, row_blocks
from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray
from dicgrl.models.knowledge import Side
from dicgrl.models.mode import evaluating
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL, KnownAnswers

ASKED_ID = -1  # in place of the id that a question asks for
_GAPS = 1.2  # entities from the first to the last candidate, for each of them
_TRIPLES = 1 << 14  # scored at a time, one by one
_FACTS = 1 << 20  # looked up at a time
_CHOOSING = 16  # bytes of a pair besides its score, for the masses and where all scores are equal


class Answers(NamedTuple):
    """Answers to one question, best first.

    Attributes:
        ids: Entities, or relations if the question asks for a relation.
        scores: Their scores.
        known: Whether each answer gives a training triple.
        held_out: Whether it gives a validation or test triple, but no training triple.
        probabilities: How often such answers are right; None without a calibration.
    """

    ids: IntArray
    scores: FloatArray
    known: BoolArray
    held_out: BoolArray
    probabilities: FloatArray | None = None

    def told(self) -> list[float | None]:
        """The probabilities, None for each where there are none."""
        if self.probabilities is None:
            return [None] * len(self.ids)
        told: list[float | None] = self.probabilities.tolist()
        return told


@torch.no_grad()
def best_answers(
    trainer: LinkTrainer,
    questions: IntArray,
    k: int,
    *,
    new: bool = False,
    candidates: Candidates | None = None,
    calibration: Calibration | None = None,
) -> list[Answers]:
    """The k best answers to each question [q, 3]; of equal scores the lower ids come first.

    The entity of a question is an answer only where its relation is reflexive
    (`KnowledgeGraph.is_reflexive`).

    Args:
        trainer: Holds the model and the graph.
        questions: Triples by ids, with `ASKED_ID` in one column each.
        k: How many answers, at most.
        new: Leave out training, validation and test triples.
        candidates: The entities that answers are taken from; all unless given.
        calibration: What makes probabilities of scores; there are none without it.
    """
    found: dict[int, Answers] = {}
    columns = (questions == ASKED_ID).argmax(1)
    with evaluating(trainer.model):
        for asked in (HEAD, RELATION, TAIL):
            of_side = np.flatnonzero(columns == asked)
            if len(of_side):
                side = _Side(trainer, questions[of_side], asked, new, candidates)
                found.update(zip(of_side.tolist(), side.answers(k, calibration), strict=True))
    return [found[row] for row in range(len(questions))]


@torch.no_grad()
def scores_of(trainer: LinkTrainer, triples: IntArray) -> Tensor:
    """Scores of triples by ids [n, 3], on the CPU."""
    if not len(triples):
        return torch.empty(0)
    height = min(max(MEMORY_BOUND // trainer.model.link_bytes(), 1), _TRIPLES)
    blocks = torch.split(torch.from_numpy(triples).long().to(trainer.device), height)
    with evaluating(trainer.model):
        return torch.cat([trainer.model.score(*block.unbind(1)) for block in blocks]).cpu()


class _Side:
    """Questions [q, 3] that ask for the same column."""

    def __init__(
        self,
        trainer: LinkTrainer,
        questions: IntArray,
        asked: int,
        new: bool,
        candidates: Candidates | None,
    ) -> None:
        self._trainer, self._asked, self._new = trainer, asked, new
        self._candidates = candidates
        self._questions = questions.copy()
        self._questions[:, asked] = 0  # any id: it is replaced
        self._triples = torch.from_numpy(self._questions).long().to(trainer.device)
        self._known: KnownAnswers | None = None
        if new and asked != RELATION:
            self._known = known_answers(trainer, self._questions, asked)

    def answers(self, k: int, calibration: Calibration | None) -> list[Answers]:
        """The best answers to each question."""
        masses: Masses | None = None
        if calibration is not None:
            masses = Masses(self._trainer, calibration, self._questions, self._asked)
        groups = list(self._groups())
        k = min(k, max(len(candidates) for _, candidates in groups))
        best = Best(len(self._questions), k, self._triples.device)
        for rows, candidates in groups:
            width, height = self._block(len(candidates))
            one_relation = self._asked != RELATION and self._trainer.model.one_relation_per_block
            for at in row_blocks(self._triples[rows], height, one_relation):
                for first in range(0, len(candidates), width):
                    some = candidates[first : first + width]
                    ids = torch.from_numpy(some).to(self._triples.device)
                    scores = self._scores(rows[at], some, ids)
                    self._leave_out(scores, rows[at], ids)
                    if masses:
                        masses.add(rows[at], scores, ids)
                    best.add(rows[at], scores, ids)
        return self._marked(best.ids.cpu().numpy(), best.scores.cpu().numpy(), masses)

    def _groups(self) -> Iterator[tuple[Tensor, IntArray]]:
        """Positions of questions, and the candidates that they share."""
        every = torch.arange(len(self._questions), device=self._triples.device)
        wanted = self._candidates
        if self._asked == RELATION:
            yield every, np.arange(self._trainer.model.num_relations)
        elif wanted is None or not wanted.by_relation:
            some = self._trainer.graph.candidates() if wanted is None else wanted.of(self._asked, 0)
            yield every, some
        else:
            for rows in row_blocks(self._triples, len(every), True):
                yield rows, wanted.of(self._asked, int(self._triples[rows[0], RELATION]))

    def _block(self, candidates: int) -> tuple[int, int]:
        """How many candidates and how many questions fit under the memory bound."""
        model = self._trainer.model
        each = model.relation_bytes() if self._asked == RELATION else model.pair_bytes()
        pairs = max(MEMORY_BOUND // (each + _CHOOSING), 1)
        if self._asked == RELATION:  # each may be looked up
            pairs = min(pairs, _FACTS)
        width = max(min(candidates, pairs), 1)
        return width, max(pairs // width, 1)

    def _scores(self, rows: Tensor, some: IntArray, ids: Tensor) -> Tensor:
        """Scores of candidates that could stand in the asked column, [b, c]."""
        model, triples = self._trainer.model, self._triples[rows]
        start, stop = int(some[0]), int(some[-1]) + 1
        if self._asked == RELATION:
            return model.relation_scores(triples[:, HEAD], triples[:, TAIL], start, stop)
        side: Side = "tail" if self._asked == TAIL else "head"
        if stop - start == len(some):  # side by side
            return model.candidate_scores(triples, side, start, stop)
        if stop - start < _GAPS * len(some):  # what is retired between them is scored in vain
            return model.candidate_scores(triples, side, start, stop)[:, ids - start]
        return model.scores_among(triples, side, ids)

    def _leave_out(self, scores: Tensor, rows: Tensor, ids: Tensor) -> None:
        """Give what is no answer the lowest of all scores."""
        graph = self._trainer.graph
        at = rows.cpu().numpy()
        if self._asked == RELATION:
            retired = torch.from_numpy(graph.retired("relations")).to(ids.device)
            scores[:, torch.isin(ids, retired)] = -torch.inf
            if self._new:
                between = known_relations(self._trainer, self._questions[at], ids.cpu().numpy())
                scores.masked_fill_(torch.from_numpy(between).to(scores.device), -torch.inf)
            return
        given = HEAD if self._asked == TAIL else TAIL
        elsewhere = torch.from_numpy(~graph.is_reflexive(self._questions[at, RELATION]))
        row = elsewhere.nonzero()[:, 0].to(scores.device)
        entity = self._triples[rows[row], given]
        if self._known is not None:
            known_row, known = self._known.expand(self._triples[rows])
            row, entity = torch.cat([row, known_row]), torch.cat([entity, known])
        place = torch.searchsorted(ids, entity).clamp_(max=len(ids) - 1)
        here = ids[place] == entity
        scores[row[here], place[here]] = -torch.inf

    def _marked(self, ids: IntArray, scores: FloatArray, masses: Masses | None) -> list[Answers]:
        """Answers [q, k] with what is known of them; those without a score are left out."""
        graph = self._trainer.graph
        known, held_out = np.empty(ids.shape, np.bool_), np.empty(ids.shape, np.bool_)
        height = max(_FACTS // max(ids.shape[1], 1), 1)
        for first in range(0, len(ids), height):
            some = slice(first, first + height)
            triples = self._with(some, ids[some])
            known[some] = graph.contains(triples).reshape(ids[some].shape)
            held_out[some] = graph.holds_out(triples).reshape(ids[some].shape)
        columns: list[Any] = [ids, scores, known, held_out]
        if masses:
            columns.append(masses.probabilities(scores, known | held_out))
        there = scores > -np.inf
        return [
            Answers(*(column[row, left] for column in columns)) for row, left in enumerate(there)
        ]

    def _with(self, rows: slice, ids: IntArray) -> IntArray:
        """Questions with each of their answers [b, k], [b * k, 3]."""
        triples = np.repeat(self._questions[rows], ids.shape[1], axis=0)
        triples[:, self._asked] = ids.reshape(-1)
        return triples
