"""Training that diverges: it is found, and the last good weights are back."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from torch import Tensor

from dicgrl.errors import FailureError
from dicgrl.training import (
    DivergedError,
    Schedule,
)
from tests.training.test_loop import Slope, Weights, run


def nan_at(model: Slope, step: int) -> Callable[[Tensor, Tensor], Tensor]:
    calls = iter(range(1, 1000))

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        return model.loss(examples, weight) * (math.nan if next(calls) == step else 1.0)

    return objective


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7, 9])
def test_a_loss_that_is_not_a_number_names_its_step(step: int) -> None:
    model = Slope()
    with pytest.raises(DivergedError, match=f"step {step} ") as caught:
        run(model, Schedule(epochs=3, batch=4), nan_at(model, step))
    assert isinstance(caught.value, FailureError)
    assert (caught.value.step, caught.value.epoch) == (step, (step + 2) // 3)
    assert "lr" in str(caught.value)
    assert all(map(math.isfinite, model.weights()))


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_loss_counts_too(value: float) -> None:
    model = Slope()
    with pytest.raises(DivergedError, match="step 1 "):
        run(model, Schedule(epochs=1), lambda e, w: model.loss(e, w) + value)


def test_after_divergence_the_best_validated_state_is_back() -> None:
    model = Slope()
    seen: list[Weights] = []
    with pytest.raises(DivergedError, match=r"step 14 \(epoch 5\)"):
        run(
            model,
            Schedule(epochs=9, batch=4, lr=0.5, validate_every=1),
            nan_at(model, 14),
            validations=[0.1, 0.4, 0.3, 0.2],
            seen=seen,
        )
    assert model.weights() == seen[1]
    for values in model.table.snapshot().values():
        assert values.isfinite().all()
    assert not model.table.gradient.any()


def test_divergence_in_the_first_epoch_leaves_the_start_and_no_trace_in_the_moments() -> None:
    model = Slope(start=2.0)
    with pytest.raises(DivergedError):
        run(model, Schedule(epochs=2, batch=4, validate_every=1), nan_at(model, 2), [0.5])
    assert model.weights() == (2.0, 2.0, 2.0)
    for values in model.table.snapshot().values():
        assert values.isfinite().all()
    # The model can be trained again, as a new one can.
    run(model, Schedule(epochs=3, batch=10, lr=0.5))
    fresh = Slope(start=2.0)
    run(fresh, Schedule(epochs=3, batch=10, lr=0.5))
    assert model.weights() == fresh.weights()


def test_without_validation_divergence_goes_back_a_few_epochs_not_to_the_start() -> None:
    model = Slope()
    places: list[Weights] = []
    with pytest.raises(DivergedError, match=r"epoch 6"):
        run(
            model,
            Schedule(epochs=9, batch=10, lr=0.5, validate_every=2),
            nan_at(model, 6),
            monitor=lambda _: places.append(model.weights()),
        )
    assert model.weights() == places[3]


@pytest.mark.parametrize("validations", [None, [0.5]], ids=["no validation", "validation"])
def test_a_weight_that_is_not_finite_is_found_though_the_loss_was(
    validations: list[float] | None,
) -> None:
    model = Slope(start=-3.39e38)
    model.parameter.data.zero_()
    with pytest.raises(DivergedError, match="a weight is not finite at step 1 "):
        run(
            model,
            Schedule(epochs=1, batch=10, lr=3e37, validate_every=1),
            lambda e, w: model.loss(e, w) * 1e-2,
            validations,
        )
    assert model.table.rows.isfinite().all()


@pytest.mark.parametrize("validations", [None, [0.5]], ids=["no validation", "validation"])
@pytest.mark.parametrize("rate", [3e6, 1e30])
def test_a_weight_far_too_large_is_found_though_all_is_finite(
    rate: float, validations: list[float] | None
) -> None:
    model = Slope()
    before = model.weights()
    with pytest.raises(DivergedError, match=r"a weight has the size .* at step 1 .*rate \(lr\)"):
        run(
            model,
            Schedule(epochs=1, batch=10, lr=rate, validate_every=1),
            lambda e, w: model.loss(e, w) * 1e-2,
            validations,
        )
    assert model.weights() == before


def test_a_large_step_is_not_called_divergence() -> None:
    run(Slope(), Schedule(epochs=1, batch=10, lr=1e3))
