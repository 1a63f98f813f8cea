from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.evaluation import Ranks, ranking_metrics

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


def test_a_perfect_model() -> None:
    zero = torch.zeros(2, 4, dtype=torch.long)
    metrics = ranking_metrics(Ranks(zero, zero, zero + 9))
    assert set(metrics.values()) == {1.0}
