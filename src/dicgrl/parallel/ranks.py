"""Ranks and best answers of a distributed model: each rank of processes handles its own entities.

Candidates are the entities that a process owns; the entities of questions are guests. The numbers
of candidates that score higher, and the same, are added up, so that the ranks are those of a single
process, including ties. For best answers, each process contributes its k best.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.evaluation import Ranker
from dicgrl.evaluation.ranks import MEMORY_BOUND, Ranks
from dicgrl.models.knowledge import Side
from dicgrl.models.mode import evaluating
from dicgrl.parallel.model import ShardedModel
from dicgrl.training.known import RELATION


class ShardedRanker:
    """Ranks triples against everything that is known to be true, as `Ranker` does.

    Args:
        known: Known true triples of every split so far, [m, 3].
        retired: Entities that are not candidates, sorted.
        memory_bound: Bytes that scores may take at a time.
    """

    def __init__(self, known: Tensor, retired: Tensor, memory_bound: int = MEMORY_BOUND) -> None:
        self._known, self._retired = known, retired
        self._memory_bound = memory_bound

    @torch.no_grad()
    def rank(self, model: ShardedModel, triples: Tensor, candidates: range) -> Ranks:
        """Rank the true head and tail of triples [n, 3] among a range of entities.

        Every process must pass the same triples, and gets the ranks of all of them.
        """
        table, group = model.sharded, model.group
        here = model.hosting(triples)
        retired = table.shards.places(
            self._retired[table.shards.owners(self._retired) == group.rank]
        )
        relations = model.num_relations
        ranker = Ranker(here.known(self._known), relations, self._memory_bound, retired)
        first, last = (
            table.shards.length(end, group.rank) for end in (candidates.start, candidates.stop)
        )
        found = ranker.rank(here.model, here.triples(triples), range(first, last))
        assert found.own is not None
        counts = torch.stack([found.higher, found.equal, found.candidates])
        higher, equal, left = group.add(counts, "counts")
        # Each process has counted the true answer, whoever owns it.
        return Ranks(higher, equal, left - (group.size - 1), group.largest(found.own))


@torch.no_grad()
def best_answers(
    model: ShardedModel, questions: Tensor, side: Side, k: int
) -> tuple[Tensor, Tensor]:
    """The k best entities for the head or tail of triples, best first; ties by id.

    Args:
        model: The model.
        questions: The same triples [q, 3] on every rank; entities on the asked side are ignored.
        side: The end that is asked for.
        k: Number of answers, at most all entities.

    Returns:
        Entities [q, k] and their scores.
    """
    table, group = model.sharded, model.group
    here = model.hosting(questions)
    mine = table.own_entities()
    asked = here.triples(questions)
    k = min(k, model.num_entities)
    scores = questions.new_full((len(questions), k), -torch.inf, dtype=table.learned)
    ids = torch.full_like(questions[:, :1].expand(-1, k), model.num_entities)
    height = max(MEMORY_BOUND // (here.own * (here.model.pair_bytes() + 16) + 1), 1)
    order = questions[:, RELATION].argsort(stable=True)
    sizes = [len(order)]
    if here.model.one_relation_per_block:
        counts = torch.unique_consecutive(questions[order, RELATION], return_counts=True)[1]
        sizes = counts.tolist()
    with evaluating(model):
        for rows in (b for some in torch.split(order, sizes) for b in torch.split(some, height)):
            found = here.model.candidate_scores(asked[rows], side, 0, here.own)
            # A stable sort keeps own entities, which are sorted, in order if scores are equal.
            found, at = found.nan_to_num(nan=-torch.inf).sort(dim=1, descending=True, stable=True)
            few = min(k, here.own)
            scores[rows, :few], ids[rows, :few] = found[:, :few], mine[at[:, :few]]
    every = [torch.cat(group.gathered(best, "best"), 1) for best in (ids, scores)]
    by_id = every[0].argsort(1)
    ids, scores = (values.gather(1, by_id) for values in every)
    best = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    return ids.gather(1, best), scores.gather(1, best)
