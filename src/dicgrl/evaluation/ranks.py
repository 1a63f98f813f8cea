"""Filtered ranks of the true answers among all candidate entities, on both sides.

For a test triple, every candidate takes the place of the tail (then of the head) and the true
answer is ranked among them by score. Candidates that form another known true triple are left out
(the filtered setting). With g candidates that score higher and e others that score the same:

- optimistic rank:  1 + g, the true answer before its ties;
- pessimistic rank: 1 + g + e, the true answer after its ties;
- realistic rank:   their mean, the expected rank with random tie-breaking.

A scorer that gives every candidate the same score thus gets the middle rank, not the first.

The entity that a question is about competes like any other, as everywhere in the literature. How it
compares is stored with the counts, so that `Ranks.among_others` can leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dicgrl.models.fast import FastCounts, Questions
from dicgrl.models.knowledge import KnowledgeModel, Side
from dicgrl.models.mode import evaluating
from dicgrl.training.known import HEAD, RELATION, TAIL, KnownAnswers

MEMORY_BOUND = 1 << 30  # bytes for scores at a time, whatever the number of entities
#: Bytes of a pair besides its score: two masks, and the copy that a CPU makes of one to count it.
BESIDE_SCORE = 2 + 8

# How the entity of a question does as an answer: it does not compete, it scores lower than the true
# answer, the same or higher, or it is the true answer itself.
OWN_ABSENT, OWN_LOWER, OWN_EQUAL, OWN_HIGHER, OWN_TRUE = range(5)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of true answers; head side first, then tail side.

    Attributes:
        higher: Number of candidates that score higher, filtered, [2, n].
        equal: Number of other candidates that score the same, filtered, [2, n].
        candidates: Number of candidates after filtering, including the true answer, [2, n].
        own: How the entity of the question does (`OWN_LOWER` and so on), [2, n]; None if not
            computed.
    """

    higher: Tensor
    equal: Tensor
    candidates: Tensor
    own: Tensor | None = None

    @property
    def optimistic(self) -> Tensor:
        """The true answer before all with the same score, [2, n]."""
        return 1.0 + self.higher

    @property
    def pessimistic(self) -> Tensor:
        """The true answer after all with the same score, [2, n]."""
        return 1.0 + self.higher + self.equal

    @property
    def realistic(self) -> Tensor:
        """The mean of the two, used for all metrics, [2, n]."""
        return 1.0 + self.higher + self.equal / 2

    def of(self, side: int, chosen: Tensor) -> Ranks:
        """Ranks of one side (0 for heads), for some triples."""
        return Ranks(*(values[side : side + 1, chosen] for values in self._every()))

    def split(self, sizes: list[int]) -> list[Ranks]:
        """Split the ranks by numbers of consecutive triples."""
        pieces = (torch.split(values, sizes, dim=1) for values in self._every())
        return [Ranks(*values) for values in zip(*pieces, strict=True)]

    def among_others(self, where: Tensor) -> Ranks:
        """The ranks if the entity of a question is not a candidate.

        If it is the true answer nonetheless, this ranks last, as it would never be returned.
        """
        assert self.own is not None
        own = torch.where(where, self.own, OWN_ABSENT)  # [2, n]
        left = self.candidates - ((own >= OWN_LOWER) & (own <= OWN_HIGHER)).long()
        lost = own == OWN_TRUE
        higher = torch.where(lost, left - 1, self.higher - (own == OWN_HIGHER).long())
        equal = (self.equal - (own == OWN_EQUAL).long()).masked_fill(lost, 0)
        return Ranks(higher, equal, left)

    def _every(self) -> list[Tensor]:
        every = (self.higher, self.equal, self.candidates, self.own)
        return [values for values in every if values is not None]


class Ranker:
    """Ranks triples against everything that is known to be true.

    Args:
        known: Known true triples of every split so far, [m, 3].
        num_relations: Number of relations so far.
        memory_bound: Bytes that scores may take at a time.
        retired: Entities that are not candidates, sorted; no known triple mentions one.
    """

    def __init__(
        self,
        known: Tensor,
        num_relations: int,
        memory_bound: int = MEMORY_BOUND,
        retired: Tensor | None = None,
    ) -> None:
        known = known.long()  # parts have 32 bits, in which keys would overflow
        self.memory_bound = memory_bound
        self._retired = known.new_empty(0) if retired is None else retired
        self._known: dict[Side, KnownAnswers] = {
            "head": KnownAnswers.of(known, HEAD, num_relations),
            "tail": KnownAnswers.of(known, TAIL, num_relations),
        }
        self._num_relations = num_relations
        self._loops = self._loop_keys(known[known[:, HEAD] == known[:, TAIL]], TAIL)

    @torch.no_grad()
    def rank(self, model: KnowledgeModel, triples: Tensor, candidates: range) -> Ranks:
        """Rank the true head and tail of triples [n, 3] among a range of entities.

        True answers that are not among the candidates are ranked as if they were.
        """
        asked = triples.long()
        with evaluating(model):
            sides = [self._rank_side(model, asked, side, candidates) for side in ("head", "tail")]
        return Ranks(*(torch.stack(values) for values in zip(*sides, strict=True)))

    def _rank_side(
        self, model: KnowledgeModel, triples: Tensor, side: Side, candidates: range
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        path = model.fast_counts()
        if path is not None:
            return self._count_fast(path, model, triples, side, candidates)
        column, given = (TAIL, HEAD) if side == "tail" else (HEAD, TAIL)
        higher = torch.zeros(len(triples), dtype=torch.long, device=triples.device)
        equal = torch.zeros_like(higher)
        own_fares = torch.full_like(higher, OWN_LOWER)
        width, height = self._block(model, len(candidates))
        answers = triples[:, column]
        among = (answers >= candidates.start) & (answers < candidates.stop)
        left = (~among).long()
        fits = len(candidates) <= width and bool(among.all())
        for rows in row_blocks(triples, height, model.one_relation_per_block):
            block, answer, asked = triples[rows], answers[rows], triples[rows, given]
            if fits:  # a block holds all candidates including the true answer: score only once
                blocks = {candidates.start: self._scores(model, block, side, candidates)}
                at = (answer - candidates.start)[:, None]
                truth = blocks[candidates.start].gather(1, at)[:, 0]
            else:
                blocks = {}
                truth = self._true_scores(model, block, side, answer, width)
            row, entity = self._known[side].expand(block)
            other = entity != answer[row]
            row, entity = row[other], entity[other]
            for start in range(candidates.start, candidates.stop, width):
                stop = min(start + width, candidates.stop)
                scores = blocks.pop(start, None)
                if scores is None:
                    scores = self._scores(model, block, side, range(start, stop))
                # Not `>`: a NaN must not make the true answer look good.
                above = (scores <= truth[:, None]).logical_not_()
                same = scores == truth[:, None]
                # Neither known answers nor the true one compete.
                inside = (entity >= start) & (entity < stop)
                own = (answer >= start) & (answer < stop)
                gone = self._retired[(self._retired >= start) & (self._retired < stop)] - start
                above[:, gone] = False
                same[:, gone] = False
                out_row = torch.cat([row[inside], own.nonzero()[:, 0]])
                out_column = torch.cat([entity[inside], answer[own]]) - start
                above[out_row, out_column] = False
                same[out_row, out_column] = False
                higher[rows] += above.sum(1)
                equal[rows] += same.sum(1)
                left[rows] += stop - start - torch.bincount(row[inside], minlength=len(block))
                left[rows] -= len(gone) - (own & self._is_retired(answer)).long()
                at = (asked - start).clamp(0, stop - start - 1)[:, None]
                fares = same.gather(1, at)[:, 0] + 2 * above.gather(1, at)[:, 0].long()
                own_fares[rows] += fares * ((asked >= start) & (asked < stop))
        return higher, equal, left, self._own(triples, side, candidates, own_fares)

    def _own(self, triples: Tensor, side: Side, candidates: range, fares: Tensor) -> Tensor:
        """How the entities of questions do, given how those that compete do, [n]."""
        given = HEAD if side == "tail" else TAIL
        own = triples[:, given]
        competes = (own >= candidates.start) & (own < candidates.stop)
        competes &= ~self._is_retired(own)
        competes &= ~torch.isin(self._loop_keys(triples, given), self._loops)
        is_true = triples[:, HEAD] == triples[:, TAIL]
        return torch.where(competes, fares, OWN_ABSENT).masked_fill_(is_true, OWN_TRUE)

    def _loop_keys(self, triples: Tensor, given: int) -> Tensor:
        """Keys of the triples' relations between the given entity and itself."""
        return triples[:, given] * self._num_relations + triples[:, RELATION]

    def _count_fast(
        self,
        path: FastCounts,
        model: KnowledgeModel,
        triples: Tensor,
        side: Side,
        candidates: range,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Like `_rank_side`, by the scorer's fast path, without waiting for the device."""
        outcome = torch.zeros(4, len(triples), dtype=torch.long, device=triples.device)
        if len(triples) and len(candidates):
            given = HEAD if side == "tail" else TAIL
            order = torch.arange(len(triples), device=triples.device)
            if model.attention is not None:  # so that neighbours have the same components
                order = triples[:, RELATION].argsort()
            height = max(8 * self.memory_bound // (path.pair_bits * (len(candidates) + 31)), 1)
            width = max(self.memory_bound // (4 * model.length), 1)  # candidates to copy at a time
            some = [
                range(start, min(start + width, run.stop))
                for run in self._runs(candidates)
                for start in range(run.start, run.stop, width)
            ]
            for rows in torch.split(order, height):
                questions = self._questions(model, triples[rows], side)
                counts = path.count(questions, some)
                both = torch.stack([triples[rows, given], questions.answers])
                own, truth = path.scores(questions, both)
                fares = OWN_LOWER + (own == truth) + 2 * (own <= truth).logical_not()
                outcome[:, rows] = torch.stack([*(count.long() for count in counts), fares])
        higher, equal, filtered, fares = outcome
        answers = triples[:, TAIL if side == "tail" else HEAD]
        among = (answers >= candidates.start) & (answers < candidates.stop)
        among &= ~self._is_retired(answers)
        count = sum(map(len, self._runs(candidates)))
        left = count - filtered + (~among).long()
        return higher, equal, left, self._own(triples, side, candidates, fares)

    def _is_retired(self, entities: Tensor) -> Tensor:
        return torch.isin(entities, self._retired)

    def _runs(self, candidates: range) -> list[range]:
        """Ranges of the candidates that are not retired."""
        inside = (self._retired >= candidates.start) & (self._retired < candidates.stop)
        gone = self._retired[inside].tolist()
        pairs = zip(
            [candidates.start, *(g + 1 for g in gone)], [*gone, candidates.stop], strict=True
        )
        return [range(start, stop) for start, stop in pairs if start < stop]

    def _questions(self, model: KnowledgeModel, triples: Tensor, side: Side) -> Questions:
        heads, relations, tails = triples.unbind(1)
        given, answers = (heads, tails) if side == "tail" else (tails, heads)
        route = model.route(heads, relations, tails)
        known = self._known[side]
        return Questions(
            side=side,
            given=model.entity_vectors(given, route),
            relations=model.relation_vectors(relations, route),
            answers=answers.contiguous(),
            known=(*known.find(triples), known.answers),
            entities=model.entities.rows.view(model.num_entities, -1),
            chosen=None if route is None else route.chosen.contiguous(),
            size=model.size,
            relation_ids=relations.contiguous(),
            num_relations=model.num_relations,
        )

    def _true_scores(
        self, model: KnowledgeModel, block: Tensor, side: Side, answer: Tensor, width: int
    ) -> Tensor:
        """Scores of the true answers, computed by the same operation as those of the candidates.

        Another operation could round differently, and break or create ties.
        """
        truth = torch.empty(len(block), device=block.device, dtype=model.entities.learned)
        order = answer.argsort()
        home = answer[order] // width
        for number in torch.unique_consecutive(home).tolist():
            rows = order[home == number]
            around = range(number * width, min((number + 1) * width, model.num_entities))
            scores = self._scores(model, block[rows], side, around)
            truth[rows] = scores.gather(1, (answer[rows] - around.start)[:, None])[:, 0]
        return truth

    @staticmethod
    def _scores(model: KnowledgeModel, block: Tensor, side: Side, candidates: range) -> Tensor:
        return model.candidate_scores(block, side, candidates.start, candidates.stop)

    def _block(self, model: KnowledgeModel, candidates: int) -> tuple[int, int]:
        """How many candidates and how many triples fit under the memory bound."""
        pairs = max(self.memory_bound // (model.pair_bytes() + BESIDE_SCORE), 1)
        width = max(min(candidates, pairs), 1)
        if model.precision != "float32":  # candidates are copied
            width = min(width, max(self.memory_bound // (4 * model.length), 1))
        return width, max(pairs // width, 1)


def row_blocks(triples: Tensor, height: int, one_relation: bool) -> Iterator[Tensor]:
    """Positions of triples in blocks of at most `height`, with one relation each if requested."""
    order = torch.arange(len(triples), device=triples.device)
    sizes = [len(triples)]
    if one_relation and len(triples):
        order = triples[:, RELATION].argsort(stable=True)
        counts = torch.unique_consecutive(triples[order, RELATION], return_counts=True)[1]
        sizes = counts.tolist()
    for group in torch.split(order, sizes):
        yield from torch.split(group, height) if len(group) else ()
