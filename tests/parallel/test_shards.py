"""Who owns what: a rule that nobody has to store, and that growth does not change."""

from __future__ import annotations

import pytest
import torch

from dicgrl.parallel.objective import ShardedObjective
from dicgrl.parallel.sampling import OwnSampler
from dicgrl.parallel.shards import Shards
from dicgrl.training.known import HEAD, TAIL
from tests.parallel import cases


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 64, 1001])
def test_every_entity_has_one_owner_and_one_place(size: int, count: int) -> None:
    shards, every = Shards(size), torch.arange(count)
    dealt = [shards.entities(count, rank) for rank in range(size)]
    assert torch.equal(torch.cat(dealt).sort().values, every)
    for rank, mine in enumerate(dealt):
        assert shards.length(count, rank) == len(mine)
        assert (shards.owners(mine) == rank).all()
        assert torch.equal(shards.places(mine), torch.arange(len(mine)))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_what_was_dealt_stays_when_the_graph_grows() -> None:
    before, after = (Shards(4).entities(count, 2) for count in (101, 1000))
    assert torch.equal(after[: len(before)], before)


@pytest.mark.parametrize("size", [2, 4, 16])
def test_kinds_that_take_turns_are_spread(size: int) -> None:
    """Heads and tails in turn, or groups as long as a round: no rank has one kind alone."""
    shards = Shards(size)
    for period in (2, size, 2 * size):
        kind = torch.arange(0, 64_000, period)
        counts = torch.bincount(shards.owners(kind), minlength=size).double()
        expected = len(kind) / size
        assert (counts - expected).abs().max() < 6 * expected**0.5


def test_own_negatives_are_even_and_never_known() -> None:
    """On each rank exactly its own entities that do not answer, each as often."""
    shards = Shards(3)
    triples = cases.KNOWN[:4]
    for rank in range(3):
        own = shards.entities(cases.ENTITIES, rank)
        sampler = OwnSampler(
            cases.KNOWN, shards, rank, cases.ENTITIES, cases.RELATIONS,
            torch.Generator().manual_seed(rank), cases.RETIRED,
        )  # fmt: skip
        for asked, given in ((HEAD, TAIL), (TAIL, HEAD)):
            drawn = own[sampler.draw(triples, asked, 3000)]
            for triple, found in zip(triples, drawn, strict=True):
                same = (cases.KNOWN[:, [given, 1]] == triple[[given, 1]]).all(1)
                wrong = torch.cat([cases.KNOWN[same, asked], cases.RETIRED])
                allowed = own[~torch.isin(own, wrong)]
                values, counts = found.unique(return_counts=True)
                assert torch.equal(values, allowed)
                expected = 3000 / len(allowed)
                assert (counts - expected).abs().max() < 6 * expected**0.5


@pytest.mark.parametrize("share", cases.SHARES)
def test_a_rank_all_of_whose_entities_are_retired_compares_with_none(share: int) -> None:
    """A triple has no other then, and loses nothing by it."""
    shards, model = Shards(2), cases.model_of("transe")
    gone = shards.entities(cases.ENTITIES, 1)
    sampler = OwnSampler(
        cases.KNOWN[:0], shards, 1, cases.ENTITIES, cases.RELATIONS, torch.Generator(), gone
    )
    objective = ShardedObjective(cases.objective_of(share), sampler, lambda _: None)
    drawn = objective._drawn(cases.BATCH, objective.share)
    assert drawn[2] is not None and not drawn[2].any()
    assert drawn[0].max() < len(gone) and drawn[1].max() < len(gone)
    assert objective.compare(model, cases.BATCH, cases.WEIGHT, [drawn]).isfinite()
