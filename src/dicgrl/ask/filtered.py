"""Scores the candidates for the questions of facts, leaving out all other known answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from dicgrl.evaluation.ranks import MEMORY_BOUND, row_blocks
from dicgrl.graph import KnowledgeGraph
from dicgrl.graph.arrays import BoolArray, IntArray, distinct
from dicgrl.graph.knowledge.keys import question_keys
from dicgrl.models.knowledge import Side
from dicgrl.models.mode import evaluating
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL, KnownAnswers

_TRIPLES = 1 << 14  # scored at a time, one by one
_ENDS: tuple[Literal["left", "right"], ...] = ("left", "right")
_SHARE = 4  # of the memory bound; some copies of the scores are made


class Block(NamedTuple):
    """Some questions with the scores of all candidates.

    Attributes:
        rows: Positions of the facts, [b].
        scores: Scores of all candidates, [b, c]; -inf for those that are left out.
        answers: The candidates that give the facts themselves, [b].
    """

    rows: Tensor
    scores: Tensor
    answers: Tensor


@torch.no_grad()
def filtered_scores(trainer: LinkTrainer, facts: IntArray, asked: int) -> Iterator[Block]:
    """Ask for a column of facts [n, 3]; what makes another known fact is left out.

    So is the entity of the question, where it is no answer (`KnowledgeGraph.is_reflexive`).

    Args:
        trainer: Holds the model and the graph.
        facts: The facts, known or not.
        asked: What is asked for: the column of the head, the relation or the tail.
    """
    model = trainer.model
    triples = torch.from_numpy(facts).long().to(trainer.device)
    known = None if asked == RELATION else known_answers(trainer, facts, asked)
    among = model.num_relations if known is None else model.num_entities
    if known is None:
        height = max(_TRIPLES // max(among, 1), 1)
    else:
        height = max(MEMORY_BOUND // _SHARE // (max(among, 1) * (model.pair_bytes() + 4)), 1)
    one_relation = model.one_relation_per_block and known is not None
    retired = trainer.graph.retired("relations" if known is None else "entities")
    gone = torch.from_numpy(retired).to(trainer.device)
    for rows in row_blocks(triples, height, one_relation):
        block = triples[rows]
        answers = block[:, asked]
        with evaluating(model):
            scores = _scores(trainer, block, asked)
        scores.masked_fill_(scores.isnan(), -torch.inf)
        truth = scores.gather(1, answers[:, None])
        scores[:, gone] = -torch.inf
        if known is None:
            out = known_relations(trainer, facts[rows.cpu().numpy()], np.arange(among))
            scores[torch.from_numpy(out).to(scores.device)] = -torch.inf
        else:
            leave_out_own(trainer, block, asked, scores)
            scores[known.expand(block)] = -torch.inf
        yield Block(rows, scores.scatter_(1, answers[:, None], truth), answers)


def known_answers(trainer: LinkTrainer, facts: IntArray, asked: int) -> KnownAnswers:
    """All answers to the questions of facts that are known, learned or held out."""
    graph = trainer.graph
    known = [graph.train[graph.same_questions(facts)], _held_out_of(graph).alike(facts, asked)]
    triples = torch.from_numpy(np.concatenate(known)).long().to(trainer.device)
    return KnownAnswers.of(triples, asked, trainer.model.num_relations)


class _HeldOut:
    """Validation and test triples in the order of their questions."""

    def __init__(self, valid: IntArray, test: IntArray) -> None:
        self._of = valid, test  # views, which keep their memory from being used for others
        self._sorted = {}
        triples = np.concatenate(self._of)
        for asked, side in ((HEAD, "head"), (TAIL, "tail")):
            keys = question_keys(triples, side)
            order = np.argsort(keys, kind="stable")
            self._sorted[asked] = side, keys[order], triples[order]

    def is_of(self, *sets: IntArray) -> bool:
        """Whether these are the triples, which nobody changes in place."""
        return all(
            mine.ctypes.data == theirs.ctypes.data and len(mine) == len(theirs)
            for mine, theirs in zip(self._of, sets, strict=True)
        )

    def alike(self, facts: IntArray, asked: int) -> IntArray:
        """Those that answer the questions of facts."""
        side, keys, triples = self._sorted[asked]
        wanted = distinct(question_keys(facts, side))
        first, last = (np.searchsorted(keys, wanted, at) for at in _ENDS)
        rows = [triples[begin:end] for begin, end in zip(first, last, strict=True) if begin < end]
        return np.concatenate(rows) if rows else triples[:0]


# Sorted once for a graph as it is: whoever asks one question at a time need not sort them again.
_held_out: WeakKeyDictionary[KnowledgeGraph, _HeldOut] = WeakKeyDictionary()


def _held_out_of(graph: KnowledgeGraph) -> _HeldOut:
    found = _held_out.get(graph)
    sets = graph.valid, graph.test
    if found is None or not found.is_of(*sets):
        # A fork has the sets of the graph that it was forked from.
        same = (known for known in list(_held_out.values()) if known.is_of(*sets))
        found = _held_out[graph] = next(same, None) or _HeldOut(*sets)
    return found


def known_relations(trainer: LinkTrainer, facts: IntArray, relations: IntArray) -> BoolArray:
    """Which relations [r] between the ends of facts [n, 3] make a known fact, [n, r]."""
    every = np.repeat(facts, len(relations), axis=0)
    every[:, RELATION] = np.tile(relations, len(facts))
    known = trainer.graph.contains(every) | trainer.graph.holds_out(every)
    return known.reshape(len(facts), len(relations))


def leave_out_own(trainer: LinkTrainer, block: Tensor, asked: int, scores: Tensor) -> None:
    """No entity answers a question about itself, unless its relation is reflexive.

    Args:
        trainer: Holds the graph.
        block: The questions, [b, 3].
        asked: The column that is asked for, head or tail.
        scores: Of all entities, [b, E]; written to.
    """
    given = HEAD if asked == TAIL else TAIL
    alone = ~trainer.graph.is_reflexive(block[:, RELATION].cpu().numpy())
    rows = torch.from_numpy(alone).nonzero()[:, 0].to(scores.device)
    scores[rows, block[rows, given]] = -torch.inf


def _scores(trainer: LinkTrainer, block: Tensor, asked: int) -> Tensor:
    """Scores of all that could stand in the asked column, [b, E] or [b, R]."""
    model = trainer.model
    if asked == RELATION:
        every = torch.arange(model.num_relations, device=block.device)[None]
        return model.score(block[:, :1], every.expand(len(block), -1), block[:, 2:])
    side: Side = "tail" if asked == TAIL else "head"
    return model.candidate_scores(block, side, 0, model.num_entities)
