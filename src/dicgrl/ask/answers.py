"""The best answers to many questions about a knowledge graph; scores in blocks of bounded memory.

A question is a triple of ids, one of which is `ASKED_ID`: what stands there is what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dicgrl.evaluation.ranks import MEMORY_BOUND, row_blocks
from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray
from dicgrl.models.knowledge import Side
from dicgrl.models.mode import evaluating
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL, KnownAnswers

ASKED_ID = -1  # in place of the id that a question asks for
_TRIPLES = 1 << 14  # scored at a time, one by one
_FACTS = 1 << 20  # looked up at a time


class Answers(NamedTuple):
    """Answers to one question, best first.

    Attributes:
        ids: Entities, or relations where these are asked for.
        scores: Their scores.
        known: Which make a training triple.
        held_out: Which make a validation or test triple, and no training triple.
    """

    ids: IntArray
    scores: FloatArray
    known: BoolArray
    held_out: BoolArray


@torch.no_grad()
def best_answers(
    trainer: LinkTrainer, questions: IntArray, k: int, *, new: bool = False
) -> list[Answers]:
    """The k best answers to each question [q, 3].

    The entity of a question is an answer only where its relation is reflexive: where some training
    triple has the same entity at both ends.

    Args:
        trainer: Holds the model and the graph.
        questions: Triples by ids, with `ASKED_ID` in one column each.
        k: How many answers, at most.
        new: Leave out training, validation and test triples.
    """
    found: dict[int, Answers] = {}
    columns = (questions == ASKED_ID).argmax(1)
    with evaluating(trainer.model):
        for asked in (HEAD, RELATION, TAIL):
            of_side = np.flatnonzero(columns == asked)
            if len(of_side):
                answers = _Side(trainer, questions[of_side], asked, new).answers(k)
                found.update(zip(of_side.tolist(), answers, strict=True))
    return [found[row] for row in range(len(questions))]


@torch.no_grad()
def scores_of(trainer: LinkTrainer, triples: IntArray) -> Tensor:
    """Scores of triples by ids [n, 3], on the CPU."""
    if not len(triples):
        return torch.empty(0)
    height = min(max(MEMORY_BOUND // trainer.model.link_bytes(), 1), _TRIPLES)
    blocks = torch.split(torch.from_numpy(triples).to(trainer.device), height)
    with evaluating(trainer.model):
        return torch.cat([trainer.model.score(*block.unbind(1)) for block in blocks]).cpu()


class _Side:
    """Questions [q, 3] that ask for the same column."""

    def __init__(self, trainer: LinkTrainer, questions: IntArray, asked: int, new: bool) -> None:
        self._trainer, self._asked, self._new = trainer, asked, new
        self._questions = questions.copy()
        self._questions[:, asked] = 0  # any id: it is replaced
        self._triples = torch.from_numpy(self._questions).to(trainer.device)
        self._known: KnownAnswers | None = None
        if new and asked != RELATION:
            graph = trainer.graph
            facts = graph.train[graph.same_questions(self._questions)]
            facts = np.concatenate([facts, graph.valid, graph.test])
            known = torch.from_numpy(facts).to(trainer.device)
            self._known = KnownAnswers.of(known, asked, trainer.model.num_relations)

    def answers(self, k: int) -> list[Answers]:
        """The best answers to each question."""
        model, graph = self._trainer.model, self._trainer.graph
        among = model.num_relations if self._asked == RELATION else model.num_entities
        k = min(k, among)
        ids = np.empty((len(self._questions), k), dtype=np.int64)
        scores = np.empty(ids.shape, dtype=np.float32)
        for rows in self._blocks(among):
            found = self._scores(rows)
            self._leave_out(found, rows)
            found.masked_fill_(found.isnan(), -torch.inf)
            best = found.topk(k)
            at = rows.cpu().numpy()
            ids[at], scores[at] = best.indices.cpu().numpy(), best.values.cpu().numpy()
        known, held_out = np.empty(ids.shape, np.bool_), np.empty(ids.shape, np.bool_)
        height = max(_FACTS // max(k, 1), 1)
        for first in range(0, len(ids), height):
            some = slice(first, first + height)
            triples = self._with(some, ids[some])
            known[some] = graph.contains(triples).reshape(ids[some].shape)
            held_out[some] = graph.holds_out(triples).reshape(ids[some].shape)
        columns = (ids, scores, known, held_out)
        there = scores > -np.inf
        return [
            Answers(*(column[row, left] for column in columns)) for row, left in enumerate(there)
        ]

    def _blocks(self, among: int) -> Iterator[Tensor]:
        """Positions of questions whose scores fit into memory."""
        model = self._trainer.model
        if self._asked == RELATION:
            return row_blocks(self._triples, max(_TRIPLES // max(among, 1), 1), False)
        height = max(MEMORY_BOUND // (max(among, 1) * (model.pair_bytes() + 4)), 1)
        return row_blocks(self._triples, height, model.one_relation_per_block)

    def _scores(self, rows: Tensor) -> Tensor:
        """Scores of all that could stand in the asked column, [b, E] or [b, R]."""
        model = self._trainer.model
        if self._asked == RELATION:
            every = self._with(rows.cpu().numpy(), np.arange(model.num_relations)[None])
            return scores_of(self._trainer, every).view(len(rows), -1)
        side: Side = "tail" if self._asked == TAIL else "head"
        return model.candidate_scores(self._triples[rows], side, 0, model.num_entities)

    def _leave_out(self, scores: Tensor, rows: Tensor) -> None:
        graph, at = self._trainer.graph, rows.cpu().numpy()
        kind = "relations" if self._asked == RELATION else "entities"
        scores[:, torch.from_numpy(graph.retired(kind)).to(scores.device)] = -torch.inf
        if self._asked == RELATION:
            if self._new:
                every = self._with(at, np.arange(scores.shape[1])[None])
                is_known = graph.contains(every) | graph.holds_out(every)
                scores.masked_fill_(torch.from_numpy(is_known).view_as(scores), -torch.inf)
            return
        given = HEAD if self._asked == TAIL else TAIL
        alone = torch.from_numpy(~graph.is_reflexive(self._questions[at, RELATION]))
        alone = alone.nonzero()[:, 0].to(scores.device)
        scores[alone, self._triples[rows[alone], given]] = -torch.inf
        if self._known is not None:
            row, entity = self._known.expand(self._triples[rows])
            scores[row, entity] = -torch.inf

    def _with(self, rows: IntArray | slice, ids: IntArray) -> IntArray:
        """Questions with each of their answers, [b, k] or the same [1, k] for all: [b * k, 3]."""
        questions = self._questions[rows]
        ids = np.broadcast_to(ids, (len(questions), ids.shape[1]))
        triples = np.repeat(questions, ids.shape[1], axis=0)
        triples[:, self._asked] = ids.reshape(-1)
        return triples
