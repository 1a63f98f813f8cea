from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation import Ranks, ranking_metrics
from dicgrl.evaluation.ranks import OWN_ABSENT, OWN_EQUAL, OWN_HIGHER, OWN_LOWER, OWN_TRUE

counts = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), min_size=2, max_size=20)


@given(counts)
def test_metrics_are_those_of_the_formula(pairs: list[tuple[int, int]]) -> None:
    pairs = pairs[: len(pairs) // 2 * 2]
    higher, equal = (torch.tensor(column).view(2, -1) for column in zip(*pairs, strict=True))
    got = ranking_metrics(Ranks(higher, equal, higher + equal + 1))
    realistic = [1 + above + same / 2 for above, same in pairs]
    n = len(realistic)
    expected = {
        "mrr": sum(1 / rank for rank in realistic) / n,
        "hits@1": sum(rank <= 1 for rank in realistic) / n,
        "hits@3": sum(rank <= 3 for rank in realistic) / n,
        "hits@10": sum(rank <= 10 for rank in realistic) / n,
        "mean_rank": sum(realistic) / n,
    }
    assert got == pytest.approx(expected)


def test_metrics_among_others_are_those_of_their_ranks() -> None:
    higher, equal = torch.tensor([[1, 2, 0], [4, 0, 1]]), torch.tensor([[0, 1, 0], [0, 0, 2]])
    own = torch.tensor([[OWN_HIGHER, OWN_EQUAL, OWN_LOWER], [OWN_HIGHER, OWN_ABSENT, OWN_TRUE]])
    ranks = Ranks(higher, equal, torch.full((2, 3), 9), own)
    elsewhere = torch.tensor([True, True, False])
    found = ranking_metrics(ranks, elsewhere)
    realistic = [1, 3, 1, 4, 1, 3]  # the last question may be answered by its own entity
    assert found["mrr_others"] == pytest.approx(sum(1 / rank for rank in realistic) / 6)
    assert found["hits@1_others"] == pytest.approx(3 / 6)
    assert {name: found[name] for name in ("mrr", "hits@3", "mean_rank")} == pytest.approx(
        {name: ranking_metrics(ranks)[name] for name in ("mrr", "hits@3", "mean_rank")}
    )
    lost = ranking_metrics(ranks, torch.tensor([True, True, True]))
    assert lost["mrr_others"] == pytest.approx((1 + 1 / 3 + 1 + 1 / 4 + 1 + 1 / 9) / 6)


def test_a_perfect_model() -> None:
    zero = torch.zeros(2, 4, dtype=torch.long)
    metrics = ranking_metrics(Ranks(zero, zero, zero + 9))
    assert set(metrics.values()) == {1.0}
