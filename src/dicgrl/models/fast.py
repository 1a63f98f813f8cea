"""Fast paths that a scorer may have: a training batch with its gradient, and counts for ranks.

A scorer returns them from `Scorer.fast_batch` and `Scorer.fast_counts`. A fast path only knows the
formula. Which rows a triple uses, autograd, frozen rows, filters and memory are handled here, by
`KnowledgeModel` and by `Ranker`. A fast path may be a kernel, PyTorch code, or both;
`dicgrl.models.transe` is a complete example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from dicgrl.kernels.batch import Batch, Pace
from dicgrl.models.gradients import places_of
from dicgrl.models.table import Table

if TYPE_CHECKING:
    from dicgrl.models.queries.likeness import Likeness

Side = Literal["head", "tail"]


class Queries(NamedTuple):
    """How a scorer compares entities with a question.

    Attributes:
        query: Function of the known ends, the relations and the side that is asked for, which
            returns the vectors that answers are compared with, [..., l]; differentiable.
        likeness: How well an entity fits a query.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    likeness: Likeness


class FastBatch(ABC):
    """Scores triples and their negatives, and adds the gradients directly to the tables.

    Attributes:
        handles_components: Whether it works with divided vectors; if not, they take the generic
            path.
        handles_places: Whether it works with large tables as they are: with rows of 16 bits, and
            with gradients at the places that `Batch.claims` says. If not, it gets copies of plain
            rows, and large divided tables take the generic path.
    """

    handles_components: ClassVar[bool] = True
    handles_places: ClassVar[bool] = False

    @property
    def leaves_out(self) -> bool:
        """Whether, on a CPU, it adds no gradient to rows of negatives that must not change.

        They need not be cleared then.
        """
        return False

    @property
    @abstractmethod
    def negative_bytes(self) -> int | None:
        """Bytes of memory per negative; None for as many as the generic path."""

    @property
    def shares(self) -> bool:
        """Whether it is faster if plain triples share their negatives."""
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

        Rows that must not change (`batch.pace`) may be left out, as their gradient is not used.

        Args:
            batch: As in the forward pass.
            scores: What `scores` returned.
            upstream: Gradients of these scores, [b] and [b, m].
            into: Gradients of the rows of entities, and of relations, added to; None if no
                relation may change.
            gated: Whether the components' gates need a gradient.

        Returns:
            Gradient of the gates, [b, n]; None if not needed. A gate is a 1 that the component of
            every vector is multiplied by before scoring. Its gradient is the sum, over the
            component, of vector times gradient, for head, tail, replacements and, if
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
        attention: The table that the gates depend on; None for plain vectors.
        gate: The components' gates, [b, n]; None if they do not learn.
    """
    if torch.is_grad_enabled():
        tables = [entities, relations]
        if gate is not None and gate.requires_grad:
            assert attention is not None
            tables.append(attention)
        batch = replace(batch, pace=_pace(*tables))
    if entities.sparse and not path.handles_places:
        batch = _staged(batch, entities)
    scores: tuple[Tensor, Tensor] = _Scores.apply(  # type: ignore[no-untyped-call]
        entities.anchor, gate, entities, relations, path, batch
    )
    return scores


def _pace(*tables: Table) -> Pace | None:
    """How fast rows may change; None unless each of the tables is restricted."""
    restricted = [table for table in tables if table.movable is not None]
    paces = [pace for pace in (table.pace() for table in restricted) if pace is not None]
    return Pace(*paces) if len(paces) == len(tables) else None


@dataclass(frozen=True, slots=True)
class _Staged(Batch):
    """A batch whose entities were copied from a large table, and are referred to by their place.

    For fast paths that only know small tables of float32.

    Attributes:
        ids: The entity at each place, [2 b + m b]: heads, tails, others.
    """

    ids: Tensor = field(kw_only=True)

    def at(self, places: Tensor) -> Self:
        """The same batch with its entities at other places, in the order of `ids`."""
        b = len(self.triples)
        ends, others = places[: 2 * b].view(2, b), places[2 * b :].view(self.others.shape)
        triples = torch.stack([ends[0], self.triples[:, 1], ends[1]], 1)
        return replace(self, triples=triples, others=others)

    def of(self, table: Table, ids: Tensor) -> Self:
        """The same batch with copies of other rows, and with their paces."""
        pace = table.pace(ids) if self.pace is not None else None
        return replace(
            self,
            entities=table.rows.index_select(0, ids).to(table.learned),
            pace=None if self.pace is None or pace is None else self.pace._replace(entities=pace),
        )


def _staged(batch: Batch, table: Table) -> _Staged:
    """A plain batch in which each mention of an entity has its own place."""
    heads, _, tails = batch.triples.unbind(1)
    ids = torch.cat([heads, tails, batch.others.reshape(-1)])
    named = {item.name: getattr(batch, item.name) for item in fields(batch)}
    places = torch.arange(len(ids), device=ids.device)
    return _Staged(**named, ids=ids).of(table, ids).at(places)


def _claimed(batch: _Staged, table: Table) -> _Staged:
    """The same batch with the places of the gradients of the table's rows."""
    fresh = table.touched() is None
    places = places_of(batch.ids, table.claim(batch.ids))
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
        elif entities.sparse:
            batch = replace(batch, claims=entities.claim(_rows_with_gradient(batch, ctx.path)))
        into = (entities.gradient, None if relations.frozen else relations.gradient)
        d_gate = ctx.path.add_gradients(
            batch, ctx.saved_tensors, (d_positive, d_negative), into, ctx.gated
        )
        if not entities.sparse:  # otherwise they were touched when they got their places
            entities.touch(_rows_with_gradient(batch, ctx.path))
        if into[1] is not None:
            relations.touch(batch.relation_rows().reshape(-1))
        return None, d_gate, None, None, None, None


def _rows_with_gradient(batch: Batch, path: FastBatch) -> Tensor:
    """Rows of entities that a backward pass has added to, possibly repeated."""
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
        side: The end that is asked for.
        given: Vectors of the entities at the other end, [q, l].
        relations: Vectors of the relations, [q, w].
        answers: The true answers, [q].
        known: All known answers: where those of each question begin, [q], where they end, [q], and
            the entities of all questions, [k]. May include the true answer.
        entities: Vectors of all entities, [N, d], as they are stored.
        chosen: Components of an entity that a question uses, [q, n]; None for all.
        size: Length of a component; d if plain.
        relation_ids: The relations themselves, [q]. With components they are sorted, so that
            questions with the same components are consecutive.
        num_relations: Number of relations.
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
        """Vectors of some entities, converted to the type of the other vectors."""
        return self.entities[entities].to(self.given.dtype)


class FastCounts(ABC):
    """Counts the candidates that beat the true answers, without returning scores.

    Attributes:
        handles_components: Whether it works with divided vectors; if not, they take the generic
            path.
        pair_bits: Bits of memory per pair of question and candidate.
        reads_short: Whether it reads entities through `Questions.vectors`, as they may be stored in
            16 bits; if not, such models take the generic path.
    """

    handles_components: ClassVar[bool] = True
    pair_bits: ClassVar[int] = 1
    reads_short: ClassVar[bool] = False

    @abstractmethod
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Count candidates that score higher, the same, or are left out as known, [q] each.

        Neither the true answer nor known ones compete, and the true answer is not counted. It must
        be scored by the same operations as the candidates, so that ties are exact. A candidate
        whose score is NaN counts as higher.

        Args:
            questions: The questions.
            candidates: A block of candidates, small enough that a copy of their vectors fits.
        """

    @abstractmethod
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        """Scores of m entities for each question, [m, q], by the same operations as in `count`.

        Any increasing function of the score will do, as long as equal scores stay equal.

        Args:
            questions: The questions.
            entities: m entities for each question, [m, q].
        """
