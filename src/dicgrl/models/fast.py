"""Fast paths that a scorer may have: a training batch with its gradient, and counts for ranks.

A scorer that has one returns it from `Scorer.fast_batch` or `Scorer.fast_counts`. A fast path knows
the formula and nothing else: which rows a triple uses, autograd, rows that must not change, filters
and memory are taken care of here, by `KnowledgeModel` and by `Ranker`. It may be a kernel, PyTorch,
or both; `dicgrl.models.transe` shows all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.table import Table

if TYPE_CHECKING:
    from dicgrl.models.queries.likeness import Likeness

Side = Literal["head", "tail"]


class Queries(NamedTuple):
    """How a scorer compares entities with what a question asks for.

    Attributes:
        query: What the answers are compared with, [..., l], of the ends that are known, of the
            relations and of the side that is asked for; differentiable.
        likeness: How well an entity fits it.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    likeness: Likeness


class FastBatch(ABC):
    """Scores triples and their negatives, and adds the gradients straight to the tables.

    Attributes:
        handles_components: Whether it can work with vectors that are divided into components; if
            not, they take the generic path.
        leaves_out: Whether on a CPU it adds no gradient to rows of negatives that must not change:
            then nobody has to clear these.
    """

    handles_components: ClassVar[bool] = True
    leaves_out: ClassVar[bool] = False

    @property
    @abstractmethod
    def negative_bytes(self) -> int | None:
        """Bytes that one negative needs at a time; None for what the generic path needs."""

    @property
    def shares(self) -> bool:
        """Whether plain triples that share their negatives cost it less than others."""
        return False

    @abstractmethod
    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Scores of the triples, [b], and of their negatives, [b, m]; called without autograd."""

    @abstractmethod
    def add_gradients(
        self,
        batch: Batch,
        scores: tuple[Tensor, Tensor],
        upstream: tuple[Tensor, Tensor],
        into: tuple[Tensor, Tensor | None],
        gated: bool,
    ) -> Tensor | None:
        """Add the gradients of all vectors to those of the tables' rows.

        Rows that must not change (`batch.pace`) may be left out or not: nobody reads their
        gradient.

        Args:
            batch: As in the forward pass.
            scores: What `scores` returned.
            upstream: Gradients of these scores, [b] and [b, m].
            into: Gradients of the rows of entities, and of relations, added to; None where no
                relation may change.
            gated: Whether the components' gates want a gradient.

        Returns:
            Gradient of the gates, [b, n]; None where they want none. A gate is a 1 that every
            vector's component is multiplied by before it is scored: its gradient is the sum of
            vector times gradient over the component, of head, tail, replacements and, where
            `batch.divided`, the relation.
        """


def fast_scores(
    path: FastBatch,
    batch: Batch,
    entities: Table,
    relations: Table,
    attention: Table | None,
    gate: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Scores of a batch by a fast path, [b] and [b, m], differentiable.

    Args:
        path: The fast path.
        batch: The batch; its pace is filled in.
        entities: The table of its entities.
        relations: The table of its relations.
        attention: The table that the gates are made from; None for plain vectors.
        gate: The components' gates, [b, n]; None where they do not learn.
    """
    if torch.is_grad_enabled():
        tables = [entities, relations]
        if gate is not None and gate.requires_grad:
            assert attention is not None
            tables.append(attention)
        batch = replace(batch, pace=_pace(*tables))
    if entities.sparse:
        batch = _staged(batch, entities)
    scores: tuple[Tensor, Tensor] = _Scores.apply(  # type: ignore[no-untyped-call]
        entities.anchor, gate, entities, relations, path, batch
    )
    return scores


def _pace(*tables: Table) -> Pace | None:
    """How fast rows may change, where each of the tables lets only some of them."""
    restricted = [table for table in tables if table.movable is not None]
    paces = [pace for pace in (table.pace() for table in restricted) if pace is not None]
    return Pace(*paces) if len(paces) == len(tables) else None


@dataclass(frozen=True, slots=True)
class _Staged(Batch):
    """A batch whose entities were copied from a large table, to the places that it names.

    Attributes:
        ids: The entities at these places, [2 b + m b]: heads, tails, others.
    """

    ids: Tensor = field(kw_only=True)

    def at(self, places: Tensor) -> Self:
        """The same with its entities at other places, in the order of `ids`."""
        b = len(self.triples)
        ends, others = places[: 2 * b].view(2, b), places[2 * b :].view(self.others.shape)
        triples = torch.stack([ends[0], self.triples[:, 1], ends[1]], 1)
        return replace(self, triples=triples, others=others)

    def of(self, table: Table, ids: Tensor) -> Self:
        """The same with copies of other rows, and with their paces."""
        pace = table.pace(ids) if self.pace is not None else None
        return replace(
            self,
            entities=table.rows.index_select(0, ids).to(table.learned),
            pace=None if self.pace is None or pace is None else self.pace._replace(entities=pace),
        )


def _staged(batch: Batch, table: Table) -> _Staged:
    """A plain batch, each mention of an entity at a place of its own."""
    heads, _, tails = batch.triples.unbind(1)
    ids = torch.cat([heads, tails, batch.others.reshape(-1)])
    named = {item.name: getattr(batch, item.name) for item in fields(batch)}
    places = torch.arange(len(ids), device=ids.device)
    return _Staged(**named, ids=ids).of(table, ids).at(places)


def _claimed(batch: _Staged, table: Table) -> _Staged:
    """The same batch where the gradients of the table's rows lie."""
    fresh = table.touched() is None
    places = table.claim(batch.ids)
    ids = table.touched()
    assert ids is not None
    return (batch if fresh else batch.of(table, ids)).at(places)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        _anchor: Tensor,
        gate: Tensor | None,
        entities: Table,
        relations: Table,
        path: FastBatch,
        batch: Batch,
    ) -> tuple[Tensor, Tensor]:
        positive, negative = path.scores(batch)
        ctx.tables, ctx.path, ctx.batch = (entities, relations), path, batch
        ctx.gated = gate is not None and gate.requires_grad
        ctx.save_for_backward(positive, negative)
        return positive, negative

    @staticmethod
    def backward(
        ctx: Any, d_positive: Tensor, d_negative: Tensor
    ) -> tuple[None, Tensor | None, None, None, None, None]:
        batch: Batch = ctx.batch
        entities, relations = ctx.tables
        if isinstance(batch, _Staged):
            batch = _claimed(batch, entities)
        into = (entities.gradient, None if relations.frozen else relations.gradient)
        d_gate = ctx.path.add_gradients(
            batch, ctx.saved_tensors, (d_positive, d_negative), into, ctx.gated
        )
        if not isinstance(batch, _Staged):  # its rows were touched when they got their places
            entities.touch(_rows_with_gradient(batch, ctx.path))
        if into[1] is not None:
            relations.touch(batch.relation_rows().reshape(-1))
        return None, d_gate, None, None, None, None


def _rows_with_gradient(batch: Batch, path: FastBatch) -> Tensor:
    """Rows of entities that a backward pass has added to, with repeats."""
    heads, _, tails = batch.triples.unbind(1)
    ends = batch.entity_rows(torch.stack([heads, tails], 1)).reshape(-1)
    others = batch.entity_rows(batch.others).reshape(-1)
    if batch.pace is not None and path.leaves_out and not others.is_cuda:
        others = others[batch.pace.entities.view(-1)[others] > 0]
    return torch.cat([ends, others])


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions for the heads or for the tails of q triples, whose answers are to be ranked.

    Attributes:
        side: What is asked for.
        given: Vectors of the entities at the other end, [q, l].
        relations: Vectors of the relations, [q, w].
        answers: The true answers, [q].
        known: All known answers: where those of each question begin, [q], where they end, [q], and
            the entities of all questions, [k]. The true one may be among them.
        entities: Vectors of all entities, [N, d], as they are stored.
        chosen: Components of an entity that a question looks at, [q, n]; None for all of it.
        size: Length of a component; d where plain.
        relation_ids: The relations themselves, [q]; with components they are ascending, so that
            questions with the same components are side by side.
        num_relations: How many relations there are.
    """

    side: Side
    given: Tensor
    relations: Tensor
    answers: Tensor
    known: tuple[Tensor, Tensor, Tensor]
    entities: Tensor
    chosen: Tensor | None
    size: int
    relation_ids: Tensor
    num_relations: int

    def vectors(self, entities: slice | Tensor) -> Tensor:
        """Vectors of some entities, of the type that the others have."""
        return self.entities[entities].to(self.given.dtype)


class FastCounts(ABC):
    """Counts the candidates that beat the true answers, without handing out any score.

    Attributes:
        handles_components: Whether it can work with vectors that are divided into components; if
            not, they take the generic path.
        pair_bits: Bits of memory that a question and a candidate need.
        reads_short: Whether it reads entities by `Questions.vectors`, which may be stored in 16
            bits; if not, such models take the generic path.
    """

    handles_components: ClassVar[bool] = True
    pair_bits: ClassVar[int] = 1
    reads_short: ClassVar[bool] = False

    @abstractmethod
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Candidates scored higher, scored the same, and left out because they are known, [q] each.

        Neither the true answer nor a known one competes, and the true answer is in no count. It is
        to be scored by the same operations as the candidates: a tie must be a tie. A candidate
        whose score is not a number counts as higher.

        Args:
            questions: The questions.
            candidates: The candidates, as many entities at a time as memory allows a copy of.
        """

    @abstractmethod
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        """Scores of m entities for each question, [m, q], by the operations that `count` trusts.

        Any rising function of the score will do, and entities of equal scores must have equal ones.

        Args:
            questions: The questions.
            entities: Some for each, [m, q].
        """
