from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from dicgrl.models import Components, NetworkModel, SparseRows


def matrix(nodes: int, features: int, share: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(nodes, features, generator=generator) < share
    return torch.randn(nodes, features, generator=generator, dtype=torch.float64) * kept


@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from([0, 0.3, 1]), st.integers(0, 99))
def test_it_is_the_product_of_the_dense_matrix(
    nodes: int, features: int, share: float, seed: int
) -> None:
    x = matrix(nodes, features, share, seed)
    weight = matrix(3, features, 1, seed + 1).requires_grad_()
    bias = torch.ones(3, dtype=torch.float64, requires_grad=True)
    sparse = SparseRows(x)
    assert len(sparse) == nodes and sparse.density == pytest.approx((x != 0).double().mean())
    found, expected = sparse.linear(weight, bias), F.linear(x, weight, bias)
    assert torch.allclose(found, expected)
    pull = torch.linspace(-1, 2, found.numel(), dtype=torch.float64).view(found.shape)
    slopes = [torch.autograd.grad((y * pull).sum(), (weight, bias)) for y in (found, expected)]
    assert all(torch.allclose(*pair) for pair in zip(*slopes, strict=True))


def test_the_share_asked_for_is_dropped_and_the_rest_made_up_for() -> None:
    torch.manual_seed(0)
    sparse = SparseRows(torch.ones(100, 100))
    found = sparse.linear(torch.eye(100), torch.zeros(100), dropout=0.4)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert abs((found == 0).double().mean() - 0.4) < 0.03


def test_a_model_takes_sparse_features_as_dense_ones() -> None:
    x = matrix(5, 7, 0.3, 0).float()
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 0, 3, 2, 4]])
    model = NetworkModel("gat", 7, components=Components(4, 2, "nodes")).eval()
    model.grow(2)
    assert torch.allclose(model(SparseRows(x), edges), model(x, edges), atol=1e-6)
    chosen = [model.edge_components(form, edges) for form in (SparseRows(x), x)]
    assert torch.equal(*chosen)
    plain = NetworkModel("gat", 7)
    plain.grow(2)
    with pytest.raises(ValueError, match="dense features"):
        plain(SparseRows(x), edges)
