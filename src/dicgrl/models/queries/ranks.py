"""Counts for the ranks of query decoders: by kernels, or by matrices of scores in PyTorch.

The query of a question is computed once, and used for the true answer and all candidates. Computed
again at another place in memory, it might be rounded differently, and ties would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.kernels.batch import Compare
from dicgrl.models.fast import FastCounts, Questions, Side
from dicgrl.models.queries.likeness import Likeness

_QUESTIONS = 64  # questions at a time on a CPU, so that a block of scores stays in its cache
_PAIRS = 1 << 16  # pairs to score again at a time


@dataclass(frozen=True, slots=True)
class QueryCounts(FastCounts):
    """Counts by `dicgrl.kernels.query_ranks`.

    All questions of a side are one launch, whatever their relations, and nothing waits for the
    device.

    Attributes:
        query: Makes queries from given ends, relations and the side that is asked for.
        compare: How candidates are compared with queries.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    compare: Compare

    reads_short: ClassVar[bool] = True

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        from dicgrl.kernels import query_ranks, ranking  # need Triton

        answers, chosen = questions.answers, questions.chosen
        queries = self.query(questions.given, questions.relations, questions.side).contiguous()
        routed = (chosen, questions.size)
        threshold = self._truth(queries, questions, answers)
        num_relations = 0 if chosen is None else questions.num_relations
        tiles = ranking.tiles(questions.relation_ids, num_relations, query_ranks.QUERIES)
        counts = torch.zeros(3, len(answers), dtype=torch.int32, device=answers.device)
        for some in candidates:
            bits, known = ranking.mask(*questions.known, answers, some)
            counts[2] += known
            vectors = questions.vectors(slice(some.start, some.stop))
            query_ranks.count(
                queries, vectors, threshold, bits, *routed, tiles, counts[0], counts[1],
                self.compare,
            )  # fmt: skip
        higher, equal, known = counts
        return higher, equal, known

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        queries = self.query(questions.given, questions.relations, questions.side).contiguous()
        return torch.stack([self._truth(queries, questions, some) for some in entities]).neg_()

    def _truth(self, queries: Tensor, questions: Questions, answers: Tensor) -> Tensor:
        from dicgrl.kernels import query_ranks  # needs Triton

        entities = questions.entities
        if entities.dtype != queries.dtype:  # convert only the candidates
            entities, answers = (
                questions.vectors(answers),
                torch.arange(len(answers), device=answers.device),
            )
        routed = (questions.chosen, questions.size)
        return query_ranks.truth(queries, entities, answers, *routed, self.compare)


@dataclass(frozen=True, slots=True)
class MatrixCounts(FastCounts):
    """Counts by matrices of scores.

    How a matrix product rounds depends on its shape and on the position of a pair. So candidates
    whose scores are very close to the true answer's are scored again, pair by pair.

    Attributes:
        query: Makes queries from given ends, relations and the side that is asked for.
        likeness: How well candidates fit queries.
    """

    query: Callable[[Tensor, Tensor, Side], Tensor]
    likeness: Likeness

    pair_bits: ClassVar[int] = 8 * 6  # a score and two masks
    reads_short: ClassVar[bool] = True

    @override
    def count(
        self, questions: Questions, candidates: Sequence[range]
    ) -> tuple[Tensor, Tensor, Tensor]:
        queries = self.query(questions.given, questions.relations, questions.side)
        counts = torch.zeros(3, len(queries), dtype=torch.long, device=queries.device)
        first, last, known = questions.known
        for group in _alike(questions):
            for some in candidates:
                vectors = _vectors(questions, slice(some.start, some.stop), group.start)
                longest = _longest(vectors)
                for block in _blocks(group, queries.is_cuda):
                    answers = questions.answers[block]
                    row, entity = _expanded(first[block], last[block], known)
                    others = (entity != answers[row]) & _among(entity, some)
                    row, entity = row[others], entity[others] - some.start
                    own = _among(answers, some).nonzero()[:, 0]
                    out = (torch.cat([row, own]), torch.cat([entity, answers[own] - some.start]))
                    truth = self.likeness.pairs(
                        queries[block], _vectors(questions, answers, group.start)
                    )
                    slack = self.likeness.slack(queries[block], longest, truth)
                    counts[:2, block] += self._compared(queries[block], vectors, truth, slack, out)
                    counts[2, block] += torch.bincount(row, minlength=len(answers))
        higher, equal, left_out = counts
        return higher, equal, left_out

    @override
    def scores(self, questions: Questions, entities: Tensor) -> Tensor:
        queries = self.query(questions.given, questions.relations, questions.side)
        vectors = questions.vectors(entities)  # [m, q, d]
        if questions.chosen is not None:
            parts = vectors.view(*entities.shape, -1, questions.size)
            chosen = questions.chosen[None, ..., None].expand(len(parts), -1, -1, questions.size)
            vectors = parts.gather(2, chosen).flatten(2)
        return torch.stack([self.likeness.pairs(queries, some) for some in vectors])

    def _compared(
        self,
        queries: Tensor,
        vectors: Tensor,
        truth: Tensor,
        slack: Tensor,
        out: tuple[Tensor, Tensor],
    ) -> Tensor:
        """How many candidates score higher than the truth [q], and how many the same, [2, q].

        Args:
            queries: [q, l].
            vectors: The candidates, [c, l].
            truth: Scores of the true answers, [q].
            slack: Scores that are farther away than this need not be computed again, [q].
            out: Rows and columns of pairs that do not compete.
        """
        scores = self.likeness.matrix(queries, vectors)
        below = scores <= (truth + slack)[:, None]
        near = (scores >= (truth - slack)[:, None]).logical_and_(below)
        # Not `>`: a NaN must not make the true answer look good.
        above = below.logical_not_()
        above[out], near[out] = False, False
        found = torch.stack([above.sum(1), torch.zeros_like(truth, dtype=torch.long)])
        for pairs in torch.split(near.nonzero(), _PAIRS):
            row, column = pairs.unbind(1)
            again = self.likeness.pairs(queries[row], vectors[column])
            for number, those in enumerate((again > truth[row], again == truth[row])):
                found[number] += torch.bincount(row[those], minlength=len(truth))
        return found


def _alike(questions: Questions) -> Iterator[range]:
    """Runs of consecutive questions that use the same components."""
    if questions.chosen is None:
        yield range(len(questions.answers))
        return
    sizes = torch.unique_consecutive(questions.relation_ids, return_counts=True)[1].tolist()
    start = 0
    for size in sizes:
        yield range(start, start + size)
        start += size


def _blocks(group: range, on_gpu: bool) -> Iterator[slice]:
    height = max(len(group), 1) if on_gpu else _QUESTIONS
    for start in range(group.start, group.stop, height):
        yield slice(start, min(start + height, group.stop))


def _vectors(questions: Questions, entities: slice | Tensor, question: int) -> Tensor:
    """The components of entities that a question uses, [c, l]."""
    vectors = questions.vectors(entities)
    if questions.chosen is None:
        return vectors
    parts = vectors.view(len(vectors), -1, questions.size)
    return parts[:, questions.chosen[question]].flatten(1)


def _longest(vectors: Tensor) -> Tensor:
    """Length of the longest of the vectors [c, l], ignoring NaN."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1).nan_to_num(0.0, 0.0)
    return torch.cat([lengths.new_zeros(1), lengths]).amax()


def _among(entities: Tensor, candidates: range) -> Tensor:
    return (entities >= candidates.start) & (entities < candidates.stop)


def _expanded(first: Tensor, last: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """One entry per known answer: the number of its question, and the entity."""
    sizes = last - first
    row = torch.repeat_interleave(sizes)
    offset = sizes.cumsum(0) - sizes
    return row, known[torch.arange(len(row), device=row.device) - offset[row] + first[row]]
