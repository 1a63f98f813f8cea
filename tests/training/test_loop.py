from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from dicgrl.models import Components, KnowledgeModel, Table
from dicgrl.training import (
    EpochReport,
    FitReport,
    LinkObjective,
    NegativeSampler,
    Schedule,
    TrainingSet,
    fit,
    make_loss,
)

Weights = tuple[float, float, float]


class Slope:
    """One row and one parameter that the objective pushes down without end."""

    def __init__(self, start: float = 0.0) -> None:
        self.table = Table(1)
        self.table.grow(torch.full((2, 1), start))
        self.parameter = nn.Parameter(torch.full((1,), start))
        self.modes: list[bool] = []

    def tables(self) -> dict[str, Table]:
        return {"rows": self.table}

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        yield "parameter", self.parameter

    def train(self, mode: bool = True) -> object:
        self.modes.append(mode)
        return self

    def loss(self, _examples: Tensor, _weight: Tensor) -> Tensor:
        return self.table.gather(torch.tensor([0])).sum() + self.parameter.sum()

    def weights(self) -> Weights:
        first, second = self.table.rows.flatten().tolist()
        return first, second, self.parameter.item()


EXAMPLES = torch.arange(10)


def run(
    model: Slope,
    schedule: Schedule,
    objective: Callable[[Tensor, Tensor], Tensor] | None = None,
    validations: list[float] | None = None,
    monitor: Callable[[EpochReport], None] | None = None,
    seen: list[Weights] | None = None,
) -> FitReport:
    values = iter(validations or [])

    def validate() -> float:
        if seen is not None:
            seen.append(model.weights())
        return next(values)

    return fit(
        model,
        TrainingSet(objective or model.loss, EXAMPLES),
        schedule,
        torch.Generator().manual_seed(0),
        validate=validate if validations is not None else None,
        monitor=monitor,
    )


def test_every_example_is_seen_once_an_epoch_in_a_new_order_with_its_weight() -> None:
    model = Slope()
    batches: list[list[int]] = []

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        assert torch.equal(weight, examples * 2.0)
        batches.append(examples.tolist())
        return model.loss(examples, weight)

    fit(
        model,
        TrainingSet(objective, EXAMPLES, EXAMPLES * 2.0),
        Schedule(epochs=2, batch=4),
        torch.Generator().manual_seed(0),
    )
    assert [len(batch) for batch in batches] == [4, 4, 2] * 2
    orders = [list(itertools.chain(*batches[:3])), list(itertools.chain(*batches[3:]))]
    assert all(sorted(order) == EXAMPLES.tolist() for order in orders)
    assert orders[0] != orders[1] and EXAMPLES.tolist() not in orders


def test_weights_are_all_one_unless_given() -> None:
    model = Slope()

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        assert torch.equal(weight, torch.ones(len(examples)))
        return model.loss(examples, weight)

    run(model, Schedule(epochs=1), objective)


def test_without_validation_the_last_weights_are_kept() -> None:
    model = Slope()
    report = run(model, Schedule(epochs=7, batch=10, lr=0.5, patience=1))
    # A gradient that stays the same moves a weight by the learning rate in every step.
    assert model.weights() == pytest.approx((-3.5, 0.0, -3.5), rel=1e-4)
    assert (report.epochs, report.best_epoch, report.best) == (7, 7, None)
    assert [entry.epoch for entry in report.history] == list(range(1, 8))
    assert all(entry.validation is None for entry in report.history)


def test_the_mean_loss_of_an_epoch_is_over_examples() -> None:
    model = Slope()
    report = run(
        model,
        Schedule(epochs=1, batch=4),
        lambda examples, weight: model.loss(examples, weight) * 0 + float(len(examples)),
    )
    assert report.history[0].loss == pytest.approx((4 * 4 + 4 * 4 + 2 * 2) / 10)


def test_the_best_epoch_is_kept() -> None:
    model = Slope()
    seen: list[Weights] = []
    report = run(
        model,
        Schedule(epochs=6, batch=10, lr=0.5, validate_every=1, patience=0),
        validations=[0.1, 0.2, 0.9, 0.9, 0.3, 0.4],
        seen=seen,
    )
    assert (report.epochs, report.best_epoch, report.best) == (6, 3, 0.9)  # a tie is no progress
    assert model.weights() == seen[2]
    assert len(set(seen)) == 6
    assert [entry.validation for entry in report.history] == [0.1, 0.2, 0.9, 0.9, 0.3, 0.4]


def test_the_last_epoch_may_be_the_best() -> None:
    model = Slope()
    seen: list[Weights] = []
    report = run(
        model, Schedule(epochs=3, validate_every=1), validations=[0.1, 0.2, 0.3], seen=seen
    )
    assert report.best_epoch == 3 and model.weights() == seen[2]


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (3, 7), (0, 8)])
def test_patience_counts_validations_without_progress(patience: int, epochs: int) -> None:
    model = Slope()
    seen: list[Weights] = []
    values = [0.5, 0.6, 0.6, 0.1, 0.7, 0.2, 0.3, 0.4]
    if patience == 3:
        values = [0.5, 0.6, 0.6, 0.7, 0.2, 0.3, 0.4, 0.9]
    schedule = Schedule(epochs=8, lr=0.5, validate_every=1, patience=patience)
    report = run(model, schedule, validations=values, seen=seen)
    assert report.epochs == epochs == len(seen)
    assert report.best == max(values[:epochs])
    assert model.weights() == seen[report.best_epoch - 1]


@pytest.mark.parametrize(("least", "epochs"), [(0, 3), (3, 3), (5, 5), (99, 9)])
def test_training_is_not_stopped_before_so_many_epochs(least: int, epochs: int) -> None:
    schedule = Schedule(epochs=9, batch=5, validate_every=1, patience=2, least_epochs=least)
    report = run(Slope(), schedule, validations=[0.9] + [0.1] * 8)
    assert (report.epochs, report.best_epoch) == (epochs, 1)


@pytest.mark.parametrize("moments", ["kept", "new"])
def test_adam_goes_on_from_its_moments_or_begins_anew(moments: str) -> None:
    schedule = Schedule(epochs=1, batch=5, lr=0.1, moments=moments)
    steady, again = Slope(), Slope()
    for model in (steady, again):
        run(model, Schedule(epochs=1, batch=5, lr=0.2, weight_decay=30.0))
    if moments == "new":
        for name in ("moment1", "moment2", "steps"):
            steady.table.state(name).zero_()
    run(steady, Schedule(epochs=1, batch=5, lr=0.1))
    run(again, schedule)
    assert torch.equal(steady.table.rows, again.table.rows)
    assert steady.table.state("steps", 1)[0].item() == (4 if moments == "kept" else 2)


def test_validation_comes_every_few_epochs_and_at_the_end() -> None:
    model = Slope()
    seen: list[Weights] = []
    report = run(
        model, Schedule(epochs=7, validate_every=3), validations=[0.1, 0.3, 0.2], seen=seen
    )
    measured = [entry.epoch for entry in report.history if entry.validation is not None]
    assert measured == [3, 6, 7]
    assert report.best_epoch == 6 and model.weights() == seen[1]


def test_the_learning_rate_is_halved() -> None:
    model = Slope()
    places = [0.0]
    run(
        model,
        Schedule(epochs=7, batch=10, lr=0.8, halve_every=2),
        monitor=lambda _: places.append(model.weights()[0]),
    )
    moves = [a - b for a, b in itertools.pairwise(places)]
    assert moves == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.1], rel=1e-3)


def test_weight_decay_and_clip_reach_the_optimiser() -> None:
    model = Slope(start=100.0)
    run(
        model,
        Schedule(epochs=1, batch=10, lr=0.5, weight_decay=1.0),
        lambda e, w: -model.loss(e, w) * 1e-3,
    )
    first, second, parameter = model.weights()
    assert first < 100 and parameter < 100  # decay outweighs the push
    assert second == 100  # untouched


def test_the_monitor_hears_of_every_epoch() -> None:
    model = Slope()
    heard: list[EpochReport] = []
    report = run(
        model, Schedule(epochs=3, validate_every=2), validations=[0.1, 0.2], monitor=heard.append
    )
    assert heard == report.history
    assert all(entry.rate > 0 and math.isfinite(entry.loss) for entry in heard)


# The loop with a real model.


def trained(seed: int, epochs: int = 3, components: Components | None = None) -> KnowledgeModel:
    generator = torch.Generator().manual_seed(seed)
    triples = torch.tensor([[i, i % 2, (i + 1 + i % 2) % 12] for i in range(12)])
    model = KnowledgeModel("convkb", 8, components, {"filters": 2, "dropout": 0.0}, seed=0)
    model.grow(12, 2)
    sampler = NegativeSampler(triples, 12, 2, generator)
    objective = LinkObjective(sampler, make_loss("selfadversarial", 2.0, 1.0), 4)
    schedule = Schedule(epochs=epochs, batch=5, lr=0.01)
    training_set = TrainingSet(lambda t, w: objective(model, t, w), triples)
    fit(model, training_set, schedule, generator)
    return model


@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "disentangled"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    components: Components | None,
) -> None:
    def weights(model: KnowledgeModel) -> list[Tensor]:
        dense = [parameter.detach() for parameter in model.parameters()]
        return [table.rows for table in model.tables().values()] + dense

    first, same, other = (weights(trained(seed, components=components)) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_model_is_put_in_training_mode() -> None:
    model = Slope()
    run(model, Schedule(epochs=1))
    assert model.modes[0] is True


@pytest.mark.parametrize("epochs", [1, 7, 10])
@pytest.mark.parametrize("halve_every", [0, 1, 3])
@pytest.mark.parametrize("decay", [0.0, 0.4, 1.0])
def test_the_rate_of_an_epoch(epochs: int, halve_every: int, decay: float) -> None:
    schedule = Schedule(epochs=epochs, lr=0.8, halve_every=halve_every, decay=decay)
    lr = 0.8
    for epoch in range(1, epochs + 1):
        if halve_every and epoch > 1 and (epoch - 1) % halve_every == 0:
            lr /= 2
        done = (epoch - 1) / epochs  # of the training
        assert schedule.rate(epoch) == pytest.approx(lr - lr * decay * done)
        assert schedule.rate(epoch) > 0


class TwoRows(Slope):
    def all_rows(self, _examples: Tensor, _weight: Tensor) -> Tensor:
        return self.table.gather(torch.tensor([0, 1])).sum() + self.parameter.sum()


class Opening(TrainingSet):
    """Opens another row of a table in every epoch."""

    def __init__(self, model: TwoRows) -> None:
        super().__init__(model.all_rows, EXAMPLES)
        self.model = model

    def batches(self, epoch: int, size: int, generator: torch.Generator) -> Iterator:
        self.model.table.restrict(torch.tensor([epoch % 2]))
        yield from super().batches(epoch, size, generator)


@pytest.mark.parametrize("best", [1, 2, 3, 4])
def test_rows_opened_in_the_middle_are_put_back_with_the_best_epoch(best: int) -> None:
    model = TwoRows()
    seen: list[Weights] = []

    def validate() -> float:
        seen.append(model.weights())
        return 1.0 if len(seen) == best else 0.0 if len(seen) > best else len(seen) / 10

    schedule = Schedule(epochs=4, batch=5, lr=0.1, validate_every=1, patience=0)
    report = fit(model, Opening(model), schedule, torch.Generator(), validate=validate)
    assert report.best_epoch == best
    assert len(set(seen)) == 4
    assert seen[0][0] == 0.0 and seen[0][1] < 0.0  # only the second row was open at first
    assert seen[1][0] < 0.0 and seen[1][1] == seen[0][1]
    assert model.weights() == seen[best - 1]


def test_a_training_set_is_asked_before_each_step_and_after_each_epoch() -> None:
    calls: list[str] = []

    class Listening(TrainingSet):
        def adjust(self) -> None:
            assert model.table.gradient.any()
            calls.append("adjust")
            model.table.gradient.neg_()

        def end_epoch(self, epoch: int) -> None:
            calls.append(f"end {epoch}")

    model = Slope()
    schedule = Schedule(epochs=2, batch=5, lr=0.1)
    fit(model, Listening(model.loss, EXAMPLES), schedule, torch.Generator())
    assert calls == ["adjust", "adjust", "end 1", "adjust", "adjust", "end 2"]
    assert model.weights()[0] > 0 > model.weights()[2]  # the gradient of the rows was turned round


def test_parameters_that_ask_for_no_gradient_rest() -> None:
    model = Slope()
    model.parameter.requires_grad_(False)
    fit(model, TrainingSet(model.loss, EXAMPLES), Schedule(epochs=2, lr=0.1), torch.Generator())
    assert model.parameter.item() == 0.0 and model.weights()[0] < 0
