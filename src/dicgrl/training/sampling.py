"""Negative triples: half with another head, half with another tail, none of them known.

Exact without rejection. With F known answers to a question among E entities, a number u is drawn
from [0, E - F) and stands for the u-th entity that is not an answer. If the answers a_0 < a_1 < ...
are sorted, that entity is u + #{i : a_i - i <= u}, and as a_i - i never falls, the count is one
binary search.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from dicgrl.kernels import available
from dicgrl.training.known import HEAD, TAIL, KnownAnswers


class NegativeSampler:
    """Draws entities that do not answer a triple's question, uniformly.

    Args:
        known: All triples that must not be drawn, [n, 3].
        entities: The entities to draw from, as a range, or a number for all below it.
        num_relations: Number of relations seen so far.
        generator: Source of randomness, on the device of `known`.
        retired: Entities that are never drawn, sorted; no known triple mentions one.

    Example:
        >>> known = torch.tensor([[0, 0, 1], [0, 0, 2]])
        >>> sampler = NegativeSampler(known, 4, 1, torch.Generator().manual_seed(0))
        >>> sorted(set(sampler.draw(known[:1], TAIL, 50).flatten().tolist()))
        [0, 3]
    """

    def __init__(
        self,
        known: Tensor,
        entities: int | range,
        num_relations: int,
        generator: torch.Generator,
        retired: Tensor | None = None,
    ) -> None:
        self.entities = range(entities) if isinstance(entities, int) else entities
        self.generator = generator
        self._retired: Tensor | None = None
        self._drawn = self.entities  # numbers of those that are not retired
        if retired is not None and len(retired):
            inside = (retired >= self.entities.start) & (retired < self.entities.stop)
            self._retired = retired[inside] - self.entities.start
            self._drawn = range(len(self.entities) - len(self._retired))
        known = known.long()  # parts have 32 bits, in which keys would overflow
        within = {asked: self._within(known, asked) for asked in (HEAD, TAIL)}
        self._sides = {
            asked: _Side(KnownAnswers.of(some, asked, num_relations), self._drawn)
            for asked, some in within.items()
        }
        #: Whether every entity answers some question; its negatives are marked as -1.
        self.saturated = any(side.saturated for side in self._sides.values())

    @property
    def left(self) -> int:
        """Number of entities that can be drawn, which are those that are not retired."""
        return len(self._drawn)

    def draw(self, triples: Tensor, asked: int, count: int) -> Tensor:
        """Draw entities [n, count] for the head or tail of triples [n, 3].

        -1 if every entity answers the question, so that there is nothing to draw.
        """
        return self._entities(self._sides[asked].draw(triples.long(), count, self.generator))

    def _entities(self, drawn: Tensor) -> Tensor:
        """Map drawn numbers, which count entities that are not retired, to entities."""
        if self._retired is None:
            return drawn
        gaps = self._retired - torch.arange(len(self._retired), device=drawn.device)
        found = drawn + torch.searchsorted(gaps, drawn, right=True) + self.entities.start
        return torch.where(drawn < 0, drawn, found)

    def _within(self, known: Tensor, asked: int) -> Tensor:
        """Triples whose answer can be drawn; answers are renumbered from the first such entity."""
        answers = known[:, asked]
        inside = known[(answers >= self.entities.start) & (answers < self.entities.stop)]
        inside[:, asked] -= self.entities.start
        if self._retired is not None:
            inside[:, asked] -= torch.searchsorted(self._retired, inside[:, asked].contiguous())
        return inside

    def corrupt(self, triples: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Replacements of heads [n, count // 2] and of tails [n, count - count // 2]."""
        heads = self.draw(triples, HEAD, count // 2)
        return heads, self.draw(triples, TAIL, count - count // 2)

    def shared(self, triples: Tensor, count: int, share: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draw negatives that `share` consecutive triples have in common.

        They are drawn uniformly from all entities, so that some may be known answers of a triple.
        Without these, the rest is still uniform among the entities that are not.

        Returns:
            Replacements of heads [g, count // 2] and of tails [g, count - count // 2], where g is
            n / share rounded up; and a mask of those that do not answer a triple's question,
            [n, count].
        """
        shape = (-(-len(triples) // share), count)
        span = self._drawn.start, self._drawn.stop
        drawn = torch.randint(*span, shape, generator=self.generator, device=triples.device)
        heads, tails = drawn[:, : count // 2], drawn[:, count // 2 :]
        known = [
            self._sides[asked].answered(triples, some.repeat_interleave(share, 0)[: len(triples)])
            for asked, some in ((HEAD, heads), (TAIL, tails))
        ]
        entities = self._entities(drawn)
        mask = torch.cat(known, 1).logical_not_()
        return entities[:, : count // 2], entities[:, count // 2 :], mask


class _Side:
    def __init__(self, known: KnownAnswers, entities: range) -> None:
        self.known = known
        self.entities = entities
        counts = known.start[1:] - known.start[:-1]
        self.longest = int(counts.max()) if len(counts) else 0
        self.saturated = self.longest >= len(entities)

    @cached_property
    def _group(self) -> Tensor:
        """The question of each answer, [m]; computed on demand, like the properties below."""
        return torch.repeat_interleave(self.known.start.diff())

    @cached_property
    def _shifted(self) -> Tensor:
        """a_i - i plus an offset per question, so that one search serves all questions, [m]."""
        group, known = self._group, self.known
        rank = torch.arange(len(group), device=group.device) - known.start[:-1][group]
        return group * len(self.entities) + (known.answers - rank)

    @cached_property
    def _pairs(self) -> Tensor:
        """Question and answer as one number, [m]."""
        return self._group * len(self.entities) + self.known.answers

    def draw(self, triples: Tensor, count: int, generator: torch.Generator) -> Tensor:
        shape = (len(triples), count)
        # 62 random bits: the bias of the remainder is below 2^-38 for 16 million entities.
        raw = torch.randint(1 << 62, shape, generator=generator, device=triples.device)
        return self._launch(triples, raw) if available(raw) else self._mapped(triples, raw)

    def answered(self, triples: Tensor, entities: Tensor) -> Tensor:
        """Whether entities [n, m] are known answers to the questions of triples, [n, m]."""
        if not len(self.known.answers):
            return torch.zeros_like(entities, dtype=torch.bool)
        first, last = self.known.find(triples)
        group = torch.searchsorted(self.known.start, first, right=True) - 1
        pairs = group[:, None] * len(self.entities) + (entities - self.entities.start)
        at = torch.searchsorted(self._pairs, pairs).clamp_(max=len(self._pairs) - 1)
        return (self._pairs[at] == pairs) & (last > first)[:, None]

    def _mapped(self, triples: Tensor, raw: Tensor) -> Tensor:
        first, last = self.known.find(triples)
        free = len(self.entities) - (last - first)
        number = raw % free.clamp(min=1)[:, None]
        if len(self.known.answers):
            group = torch.searchsorted(self.known.start, first, right=True) - 1
            key = group[:, None] * len(self.entities) + number
            below = torch.searchsorted(self._shifted, key, right=True) - first[:, None]
            number = torch.where((last > first)[:, None], number + below, number)
        number = number + self.entities.start
        if self.saturated:
            number = torch.where((free > 0)[:, None], number, -1)
        return number

    def _launch(self, triples: Tensor, raw: Tensor) -> Tensor:
        from dicgrl.kernels.sampling import draw  # needs Triton

        known = self.known
        return draw(
            triples,
            raw,
            known.questions,
            known.start,
            known.answers,
            self.longest,
            HEAD if known.asked == TAIL else TAIL,
            known.num_relations,
            self.entities,
        )
