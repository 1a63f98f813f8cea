from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dicgrl import UserError
from dicgrl.training import LOSSES, make_loss

MARGIN, TEMPERATURE = 2.5, 0.7


def log1pexp(x: float) -> float:
    return math.log(1 + math.exp(x))


def slow_example(name: str, positive: float, places: list[float | None]) -> float:
    """Loss of one positive and its negatives; None is a place without one."""
    drawn, negatives = len(places), [n for n in places if n is not None]
    if name == "softmax":
        heads, tails = places[: drawn // 2], places[drawn // 2 :]
        totals = [sum(math.exp(n) for n in side if n is not None) for side in (heads, tails)]
        own = math.exp(positive)
        return -sum(math.log(own / (own + total)) for total in totals) / 2
    if name == "softmargin":
        wrong = sum(log1pexp(n + MARGIN) for n in negatives)
        return (log1pexp(-positive - MARGIN) + wrong) / (1 + drawn)
    if name == "margin":
        each = [max(0.0, MARGIN - positive + n) for n in negatives]
        return sum(each) / len(each) if each else 0.0
    if name == "meanmargin":
        mean = sum(negatives) / max(len(negatives), 1)
        return max(0.0, MARGIN - positive + mean) / (1 + drawn)
    total = sum(math.exp(TEMPERATURE * n) for n in negatives)
    wrong = sum(math.exp(TEMPERATURE * n) / total * log1pexp(n + MARGIN) for n in negatives)
    return (log1pexp(-positive - MARGIN) + wrong) / 2


scores = st.floats(-6, 6)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def made(strategy: st.SearchStrategy[float], *shape: int) -> Tensor:
        size = math.prod(shape)
        values = draw(st.lists(strategy, min_size=size, max_size=size))
        return torch.tensor(values, dtype=torch.float64).view(shape)

    mask = made(st.sampled_from([0.0, 1.0]), rows, width) > 0
    weight = made(st.sampled_from([0.25, 0.5, 1.0, 3.0]), rows)
    return made(scores, rows), made(scores, rows, width), mask, weight


def value(name: str, positive: Tensor, negative: Tensor, mask: Tensor | None, w: Tensor) -> Tensor:
    return make_loss(name, MARGIN, TEMPERATURE)(positive, negative, mask, w)


every_loss = pytest.mark.parametrize(
    "name", ["softmargin", "margin", "selfadversarial", "softmax", "meanmargin"]
)


def test_these_are_all_losses() -> None:
    assert set(LOSSES) == {"softmargin", "margin", "selfadversarial", "softmax", "meanmargin"}
    with pytest.raises(UserError, match="did you mean 'margin'"):
        make_loss("marginn", 1.0, 1.0)


@every_loss
@given(batch=batches(), masked=st.booleans())
def test_losses_are_those_of_the_formula(
    name: str, batch: tuple[Tensor, Tensor, Tensor, Tensor], masked: bool
) -> None:
    positive, negative, mask, weight = batch
    total = 0.0
    for i in range(len(positive)):
        there = [
            n if exists or not masked else None
            for n, exists in zip(negative[i].tolist(), mask[i].tolist(), strict=True)
        ]
        one = slow_example(name, positive[i].item(), there)
        total += weight[i].item() * one
    got = value(name, positive, negative, mask if masked else None, weight)
    assert got.item() == pytest.approx(total / weight.sum().item(), rel=1e-9, abs=1e-12)


@every_loss
@given(batch=batches(), other=scores)
def test_a_negative_that_does_not_exist_changes_nothing_and_gets_no_gradient(
    name: str, batch: tuple[Tensor, Tensor, Tensor, Tensor], other: float
) -> None:
    positive, negative, mask, weight = batch
    negative.requires_grad_()
    loss = value(name, positive, negative, mask, weight)
    loss.backward()
    assert negative.grad is not None and not negative.grad[~mask].any()
    changed = negative.detach().masked_fill(~mask, other)
    assert value(name, positive, changed, mask, weight).item() == pytest.approx(loss.item())


@pytest.mark.parametrize("name", ["margin", "selfadversarial"])
@given(batch=batches())
def test_averages_are_over_the_negatives_that_exist(
    name: str, batch: tuple[Tensor, Tensor, Tensor, Tensor]
) -> None:
    positive, negative, _, weight = batch
    mask = torch.cat([torch.ones_like(negative), torch.zeros(len(negative), 2)], 1) > 0
    padded = torch.cat([negative, torch.full((len(negative), 2), 99.0).double()], 1)
    with_padding = value(name, positive, padded, mask, weight)
    assert with_padding.item() == pytest.approx(
        value(name, positive, negative, None, weight).item()
    )


@every_loss
@given(batch=batches(), scale=st.sampled_from([0.1, 7.0]))
def test_weights_count_in_proportion(
    name: str, batch: tuple[Tensor, Tensor, Tensor, Tensor], scale: float
) -> None:
    positive, negative, mask, weight = batch
    loss = value(name, positive, negative, mask, weight).item()
    assert value(name, positive, negative, mask, weight * scale).item() == pytest.approx(loss)
    # An example of weight 2 is the example twice; one of weight 0 is not there.
    twice = torch.cat([positive, positive[:1]]), torch.cat([negative, negative[:1]])
    repeated = value(
        name, *twice, torch.cat([mask, mask[:1]]), torch.cat([weight, weight[:1]])
    ).item()
    doubled = weight.clone()
    doubled[0] *= 2
    assert value(name, positive, negative, mask, doubled).item() == pytest.approx(repeated)
    without = value(name, *twice, None, torch.cat([weight, weight[:1] * 0])).item()
    assert without == pytest.approx(value(name, positive, negative, None, weight).item())


@every_loss
@given(batch=batches())
def test_a_better_positive_and_worse_negatives_lower_the_loss(
    name: str, batch: tuple[Tensor, Tensor, Tensor, Tensor]
) -> None:
    positive, negative, mask, weight = batch
    positive.requires_grad_()
    negative.requires_grad_()
    value(name, positive, negative, mask, weight).backward()
    assert positive.grad is not None and negative.grad is not None
    assert (positive.grad <= 0).all() and (negative.grad >= 0).all()


@every_loss
def test_all_weights_zero_is_no_loss(name: str) -> None:
    loss = value(name, torch.ones(2), torch.ones(2, 3), None, torch.zeros(2))
    assert loss.item() == 0


@every_loss
def test_extreme_scores_stay_finite(name: str) -> None:
    positive = torch.tensor([-1e4, 1e4], requires_grad=True)
    negative = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    loss = value(name, positive, negative, None, torch.ones(2))
    loss.backward()
    assert loss.isfinite() and positive.grad is not None and positive.grad.isfinite().all()
    assert negative.grad is not None and negative.grad.isfinite().all()


def test_temperature_zero_counts_all_negatives_alike() -> None:
    positive, negative = torch.zeros(1), torch.tensor([[-3.0, 0.0, 2.0]])
    loss = make_loss("selfadversarial", 1.0, 0.0)(positive, negative, None, torch.ones(1)).item()
    mean = sum(log1pexp(n + 1) for n in (-3.0, 0.0, 2.0)) / 3
    assert loss == pytest.approx((log1pexp(-1.0) + mean) / 2)


def test_every_loss_has_a_temperature_for_the_kernel() -> None:
    found = {name: make_loss(name, 1.0, 0.7).temperature for name in LOSSES}  # type: ignore[attr-defined]
    assert found == {
        "softmargin": 0.0,
        "margin": 0.0,
        "selfadversarial": 0.7,
        "softmax": 0.0,
        "meanmargin": 0.0,
    }


def test_the_adversarial_weights_get_no_gradient() -> None:
    negative = torch.tensor([[-1.0, 0.5, 2.0]], dtype=torch.float64, requires_grad=True)
    loss = make_loss("selfadversarial", 1.0, 1.0)
    loss(torch.zeros(1).double(), negative, None, torch.ones(1).double()).backward()
    share = negative.detach().softmax(-1)
    assert negative.grad is not None
    torch.testing.assert_close(negative.grad, share * (negative.detach() + 1).sigmoid() / 2)


@every_loss
def test_at_its_level_a_negative_begins_to_cost(name: str) -> None:
    loss = make_loss(name, MARGIN, TEMPERATURE)
    positive = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    level = loss.level(positive)

    def cost(above: float) -> Tensor:
        return loss(positive, level + above, None, torch.ones(2, dtype=torch.float64))

    # One negative each: the ranking loss bends there, the others are half as steep as they get.
    slope = [(cost(x + 1e-6) - cost(x - 1e-6)).item() / 2e-6 for x in (-40.0, 0.0, 40.0)]
    assert slope[0] == pytest.approx(0, abs=1e-6)
    assert slope[1] == pytest.approx(slope[2] / 2, rel=1e-4)
