"""Groups of examples whose batches take turns."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup


def test_an_epoch_takes_every_example_once_and_mixes_old_and_new() -> None:
    def loss(examples: Tensor, weight: Tensor) -> Tensor:
        raise AssertionError

    old_weight = torch.linspace(0, 1, 40)
    training_set = MixedSet(
        ExampleGroup(loss, torch.arange(10), torch.ones(10)),
        ExampleGroup(loss, torch.arange(100, 140), old_weight),
        at_once=False,
    )
    kinds, seen = [], []
    for _, examples, weight in training_set.batches(1, 5, torch.Generator().manual_seed(0)):
        kinds.append("new" if examples[0] < 100 else "old")
        assert all((e < 100) == (kinds[-1] == "new") for e in examples.tolist())
        expected = old_weight[examples - 100] if kinds[-1] == "old" else torch.ones(5)
        assert torch.equal(weight, expected)
        seen += examples.tolist()
    assert sorted(seen) == [*range(10), *range(100, 140)]
    assert kinds.count("new") == 2
    first, second = (i for i, kind in enumerate(kinds) if kind == "new")
    assert 1 <= first <= 3 and 6 <= second <= 8  # neither first nor last: evenly spread


def test_a_group_may_take_a_few_others_of_its_examples_in_every_epoch() -> None:
    def loss(examples: Tensor, weight: Tensor) -> Tensor:
        raise AssertionError

    new = ExampleGroup(loss, torch.arange(4), torch.ones(4))
    some = ExampleGroup(loss, torch.arange(100, 130), torch.arange(30.0), most=6)
    training_set = MixedSet(new, some, at_once=False)
    epochs = []
    for epoch in range(20):
        taken = list(training_set.batches(epoch, 4, torch.Generator().manual_seed(epoch)))
        rows = torch.cat([examples for _, examples, _ in taken])
        weight = torch.cat([weight for _, _, weight in taken])
        few = rows[rows >= 100]
        assert sorted(rows[rows < 100].tolist()) == [0, 1, 2, 3]
        assert len(set(few.tolist())) == 6 == len(few)
        assert torch.equal(weight[rows >= 100], (few - 100).float())
        epochs.append(set(few.tolist()))
    assert set().union(*epochs) == set(range(100, 130))
