"""A knowledge graph embedding: tables of entities and relations, a scorer, and its routing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor, nn

from dicgrl.errors import UserError
from dicgrl.kernels.batch import Batch
from dicgrl.models.components import Components, Route
from dicgrl.models.fast import FastBatch, FastCounts, Side, fast_scores
from dicgrl.models.reciprocal import formed
from dicgrl.models.rows import all_rows_of, in_blocks
from dicgrl.models.scorer import Scorer, check_multiple, scorer
from dicgrl.models.table import Table

__all__ = ["KnowledgeModel", "Side"]


_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class KnowledgeModel(nn.Module):
    """Scores triples; the number of entities and relations may grow.

    The entity table has a row for every component of every entity (K = 1 if plain). Gradients,
    optimiser state and updates therefore exist per component, and components that no triple uses
    cannot move.

    Args:
        name: The scoring function, such as `transe`.
        length: Length of an entity's whole vector, the paper's d. A triple uses `active` numbers of
            it, which is the setting `dim`.
        components: How vectors are divided; None for a plain model.
        options: Further arguments of the scoring function.
        seed: Seed of all initial values.
        device: Device of the model.
        normalise: Whether vectors are scaled to length 1 for scoring.
        inverses: Whether relations have separate vectors for questions about heads; only for plain
            models.
        precision: Type of the entities' rows, float32 or bfloat16. Everything else, and all
            arithmetic, is float32.

    Example:
        >>> model = KnowledgeModel("transe", length=8, components=Components(count=4, top=2))
        >>> model.grow(entities=5, relations=2)
        >>> model.score(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([2, 3])).shape
        torch.Size([2])
    """

    def __init__(
        self,
        name: str,
        length: int,
        components: Components | None = None,
        options: dict[str, Any] | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        precision: str = "float32",
        *,
        normalise: bool = False,
        inverses: bool = False,
    ) -> None:
        super().__init__()
        self.name = name
        self.length = length
        self.options = dict(options or {})
        self.seed = seed
        self.components = components
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(seed)
        self.count = components.count if components else 1
        if length % self.count:
            raise UserError(f"length={length}: expected a multiple of components={self.count}")
        self.size = length // self.count
        used = components.top if components else 1
        self.active = self.size * used  # the paper's l
        check_multiple(name, self.size, used)
        self.scorer: Scorer = scorer(name)(self.active, **self.options)
        self.normalise, self.inverses = normalise, inverses
        self.scorer = formed(self.scorer, components, normalise=normalise, inverses=inverses)
        self.scorer.initialise(self.generator)
        self.precision = precision
        self.entities = Table(self.size, device, _TYPES[precision])
        relation_parts = components is not None and components.learned
        self.relation_count = self.count if relation_parts else 1
        width = self.scorer.relation_width(self.size if relation_parts else self.active)
        self.relations = Table(width, device, dense=True)  # few, and all in use
        self.attention: Table | None = None  # logits for attention="relation", a row per relation
        self.attention_weight: nn.Parameter | None = None  # W2 for the other kinds
        if components is not None and components.attention == "relation":
            self.attention = Table(components.count, device, dense=True)
        elif components is not None:
            width = 2 * self.size + (components.attention == "triple") * self.relations.width
            start = torch.empty(width).normal_(generator=self.generator)
            self.attention_weight = nn.Parameter(start)
        self._kept: Tensor | None = None
        self.to(self.device)

    def configuration(self) -> dict[str, Any]:
        """The arguments that make an empty model like this one, ready for JSON."""
        return {
            "name": self.name,
            "length": self.length,
            "components": asdict(self.components) if self.components else None,
            "options": self.options,
            "seed": self.seed,
            **{name: True for name in ("normalise", "inverses") if getattr(self, name)},
            **({} if self.precision == "float32" else {"precision": self.precision}),
        }

    def grow(self, entities: int, relations: int) -> None:
        """Add rows for new entities and relations; old rows stay the same bit for bit."""
        for table, initial, count in (
            (self.entities, self.scorer.initial, entities * self.count),
            (self.relations, self.scorer.initial_relations, relations * self.relation_count),
        ):
            table.reserve(count)
            for some in in_blocks(count, table.width):
                table.grow(initial(some, table.width, self.generator).to(self.device))
        if self.attention is not None:
            # Nearly equal weights, which the task can still move; the paper starts with a choice.
            spread = 0.1 if self.components and self.components.learned else 1.0
            start = torch.empty(relations, self.count).normal_(0, spread, generator=self.generator)
            self.attention.grow(start.to(self.device))

    @property
    def num_entities(self) -> int:
        """Entities so far."""
        return len(self.entities) // self.count

    @property
    def num_relations(self) -> int:
        """Relations so far."""
        return len(self.relations) // self.relation_count

    def vectors(self) -> Tensor:
        """Vectors of all entities, [N, K, size], float32; a view if the rows are float32."""
        rows = self.entities.rows.view(self.num_entities, self.count, self.size)
        return rows.to(self.entities.learned)

    def tables(self) -> dict[str, Table]:
        """The tables by name; with `named_parameters`, everything that is trained."""
        named = {"entities": self.entities, "relations": self.relations}
        return named | ({"attention": self.attention} if self.attention is not None else {})

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Scores of triples given by ids whose shapes broadcast; higher means more likely."""
        return self._routed_score(heads, relations, tails, self.route(heads, relations, tails))

    def score_links(
        self, triples: Tensor, other_heads: Tensor, other_tails: Tensor, *, share: int = 1
    ) -> tuple[Tensor, Tensor, Route | None]:
        """Scores of triples and of the same triples with another head or another tail.

        Args:
            triples: [b, 3].
            other_heads: Entities, [b, m].
            other_tails: Entities, [b, k].
            share: How many consecutive triples have the same others, which are then
                [b / share, m] and [b / share, k], rounded up.

        Returns:
            Scores [b] of the triples, [b, m + k] of the others, heads first, and the components
            that the triples use.
        """
        heads, relations, tails = triples.unbind(1)
        route = self.route(heads, relations, tails)
        path = self.fast_batch()
        if share > 1 and not self.shares_negatives:
            other_heads, other_tails = (
                others.repeat_interleave(share, 0)[: len(triples)]
                for others in (other_heads, other_tails)
            )
            share = 1
        if path is not None:
            batch = Batch(
                self.entities.rows,
                self.relations.rows,
                triples,
                torch.cat([other_heads, other_tails], 1),
                other_heads.shape[1],
                None if route is None else route.chosen,
                self.count,
                self.relation_count > 1,
                share=share,
            )
            gate = None if route is None else route.gate
            scores = fast_scores(path, batch, self.entities, self.relations, self.attention, gate)
            return *scores, route
        # With attention of relations a negative has the route of its triple, otherwise its own.
        wide = None if route is None or self.attention is None else route.unsqueeze(1)
        negative = [
            self._routed_score(*ids, wide or self.route(*ids))
            for ids in (
                (other_heads, relations[:, None], tails[:, None]),
                (heads[:, None], relations[:, None], other_tails),
            )
        ]
        positive = self._routed_score(heads, relations, tails, route)
        return positive, torch.cat(negative, 1), route

    def fast_batch(self) -> FastBatch | None:
        """The scorer's fast path for `score_links`; None if it has none for this model."""
        # Gradients have the type that rows are read in, and the device of the rows.
        path = self.scorer.fast_batch(self.entities.gradient)
        if path is None or not self._suits(path):
            return None
        copied = self.entities.sparse and not path.handles_places
        return None if copied and self.components is not None else path

    @property
    def shares_negatives(self) -> bool:
        """Whether it is faster if triples share their negatives."""
        path = self.fast_batch()
        return self.components is None and path is not None and path.shares

    def fast_counts(self) -> FastCounts | None:
        """The scorer's fast path to ranks; None if it has none for this model."""
        path = self.scorer.fast_counts(self.entities.gradient)
        if path is None or not (path.reads_short or self.precision == "float32"):
            return None
        return path if self._suits(path) else None

    def _suits(self, path: FastBatch | FastCounts) -> bool:
        """Whether a fast path supports this model."""
        if self.attention_weight is not None:  # a negative has its own route
            return False
        return self.components is None or path.handles_components

    def regularisation(self, triples: Tensor, route: Route | None) -> Tensor | None:
        """Regularisation term of triples [b, 3], [b]; None if the scorer has no regulariser.

        It does not influence which components a relation uses.
        """
        regulariser = self.scorer.regulariser()
        if regulariser is None:
            return None
        route = None if route is None else replace(route, gate=None)
        heads, relations, tails = triples.unbind(1)
        return regulariser(
            self.entity_vectors(heads, route),
            self.relation_vectors(relations, route),
            self.entity_vectors(tails, route),
        )

    def route(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Route | None:
        """The components that triples use; None for a plain model.

        With `attention="relation"` it has the shape of `relations`, otherwise the broadcast shape.
        """
        if self.components is None:
            return None
        if self.attention is not None:
            if self._kept is not None:
                return self.components.route(self._kept[relations])
            if self.attention.frozen:  # nothing to learn
                return self.components.route(self.attention.rows[relations])
            return self.components.route(self.attention.gather(relations))
        kept = self.attention_weight if self._kept is None else self._kept
        assert kept is not None
        weight = torch.split(kept, self.size)
        logits = self._all_parts(heads) @ weight[0] + self._all_parts(tails) @ weight[1]  # [..., K]
        if self.components.attention == "triple":
            rows = self.relations.rows.view(self.num_relations, self.relation_count, -1)
            logits = logits + rows[relations] @ torch.cat(weight[2:])
        return self.components.route(logits.relu(), before=logits)

    def attention_now(self) -> Tensor | None:
        """A copy of the attention parameters, for `attending`; None for a plain model."""
        if self.attention is not None:
            return self.attention.rows.clone()
        return None if self.attention_weight is None else self.attention_weight.detach().clone()

    @contextmanager
    def attending(self, kept: Tensor | None) -> Iterator[None]:
        """Route by a copy from `attention_now`, which does not learn; None for usual routing."""
        before, self._kept = self._kept, kept
        try:
            yield
        finally:
            self._kept = before

    def candidate_scores(self, triples: Tensor, side: Side, start: int, stop: int) -> Tensor:
        """Scores [q, stop - start] with the head or tail replaced by each entity of a range.

        With `attention="relation"` all triples must have the same relation, so that the entities'
        vectors are gathered only once.
        """
        return self._scores_with(triples, side, range(start, stop))

    def scores_among(self, triples: Tensor, side: Side, candidates: Tensor) -> Tensor:
        """Like `candidate_scores`, with each of the given entities [c]."""
        return self._scores_with(triples, side, candidates)

    def _scores_with(self, triples: Tensor, side: Side, entities: range | Tensor) -> Tensor:
        heads, relations, tails = triples.unbind(1)
        candidates = entities
        if isinstance(candidates, range):
            candidates = torch.arange(candidates.start, candidates.stop, device=triples.device)
        if self.attention_weight is not None:  # every pair has its own route
            if side == "tail":
                return self.score(heads[:, None], relations[:, None], candidates[None])
            return self.score(candidates[None], relations[:, None], tails[:, None])
        route = self.route(heads[:1], relations[:1], tails[:1])  # [1, n]
        if isinstance(entities, range) and not torch.is_grad_enabled():
            vectors = self._side_by_side(entities, route)
        else:
            vectors = self.entity_vectors(candidates, route)
        relation = self.relation_vectors(relations, route)
        if side == "tail":
            return self.scorer.score_tails(self.entity_vectors(heads, route), relation, vectors)
        return self.scorer.score_heads(vectors, relation, self.entity_vectors(tails, route))

    def relation_scores(self, heads: Tensor, tails: Tensor, start: int, stop: int) -> Tensor:
        """Scores [q, stop - start] of pairs [q] with each relation of a range."""
        relations = torch.arange(start, stop, device=heads.device)
        if self.components is not None:  # every relation has its own components
            return self.score(heads[:, None], relations[None], tails[:, None])
        head, tail = self.entity_vectors(heads, None), self.entity_vectors(tails, None)
        return self.scorer.score_relations(head, self.relation_vectors(relations, None), tail)

    @property
    def one_relation_per_block(self) -> bool:
        """Whether all triples given to `candidate_scores` must have the same relation."""
        return self.attention is not None

    def pair_bytes(self) -> int:
        """Bytes of memory per pair in `candidate_scores`."""
        return self.scorer.pair_bytes() if self.attention_weight is None else self.link_bytes()

    def relation_bytes(self) -> int:
        """Bytes of memory per pair in `relation_scores`."""
        if self.components is not None:
            return self.link_bytes()
        inherited = type(self.scorer).score_relations is Scorer.score_relations
        return Scorer.pair_bytes(self.scorer) if inherited else self.scorer.pair_bytes()

    def link_bytes(self) -> int:
        """Bytes of memory per negative in `score_links`."""
        path = self.fast_batch()
        if path is not None and path.negative_bytes is not None:
            return path.negative_bytes
        scored = max(Scorer.pair_bytes(self.scorer), self.scorer.pair_bytes())
        return 4 * (3 * self.active + 4 * self.count) + scored

    def _routed_score(
        self, heads: Tensor, relations: Tensor, tails: Tensor, route: Route | None
    ) -> Tensor:
        return self.scorer.score(
            self.entity_vectors(heads, route),
            self.relation_vectors(relations, route),
            self.entity_vectors(tails, route),
        )

    def entity_rows(self, ids: Tensor, route: Route | None) -> Tensor:
        """Rows of `entities` that make up entities' vectors, [...], or [..., n] if routed."""
        return ids if route is None else ids[..., None] * self.count + route.chosen

    def relation_rows(self, ids: Tensor, route: Route | None) -> Tensor:
        """Rows of `relations` that make up relations' vectors."""
        if route is None or self.relation_count == 1:
            return ids
        return ids[..., None] * self.count + route.chosen

    def entity_rows_of(self, ids: Tensor) -> Tensor:
        """All rows in `entities` of entities [n], [n * K]."""
        return all_rows_of(ids, self.count)

    def relation_rows_of(self, ids: Tensor) -> Tensor:
        """All rows in `relations` of relations [n]."""
        return all_rows_of(ids, self.relation_count)

    def entity_vectors(self, ids: Tensor, route: Route | None) -> Tensor:
        """Vectors of entities as routed triples use them, [..., active]."""
        parts = self.entities.gather(self.entity_rows(ids, route))
        return parts if route is None else route.apply(parts)

    def _side_by_side(self, entities: range, route: Route | None) -> Tensor:
        """Like `entity_vectors`, for a range of entities and one route [1, n], without look-up."""
        parts = self.entities.rows.view(self.num_entities, self.count, self.size)
        parts = parts[entities.start : entities.stop].to(self.entities.learned)
        if route is not None:  # gates are 1, so they need not be multiplied
            parts = parts.index_select(1, route.chosen[0])
        return parts.flatten(1)  # does not copy plain vectors

    def relation_vectors(self, ids: Tensor, route: Route | None) -> Tensor:
        """Vectors of relations as routed triples use them, [..., w]; w is usually `active`."""
        parts = self.relations.gather(self.relation_rows(ids, route))
        return parts if route is None or self.relation_count == 1 else route.apply(parts)

    def _all_parts(self, ids: Tensor) -> Tensor:
        # Without a gradient: attention reads the vectors and does not move them.
        rows = self.entities.rows.view(self.num_entities, self.count, self.size)[ids]
        return rows.to(self.entities.learned)
