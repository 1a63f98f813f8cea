"""Seeds, settings and what else a learner is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl import Learner
from dicgrl.errors import UserError
from dicgrl.recipes import load_recipe
from dicgrl.strategies import Strategy
from tests.learner.helpers import assert_same, reported
from tests.tiny import (
    DIVIDED,
    learner_of,
    taught,
)


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_seed_gives_the_same_learner_again(kind: str) -> None:
    first, again = (taught(learner_of(kind, "emr", seed=5)) for _ in range(2))
    assert_same(first, again)
    assert reported(taught(learner_of(kind, "emr", seed=6))) != reported(first)


@pytest.mark.parametrize("seed", [-1, 1 << 32, "a", 1.5, None, True])
def test_a_seed_out_of_range(seed: Any) -> None:
    with pytest.raises(UserError, match=f"seed={seed!r}: expected a whole number, 0 to 4294967295"):
        learner_of("links", seed=seed)


def test_a_seed_of_numpy_is_a_seed(tmp_path: Path) -> None:
    learner = taught(learner_of("links", seed=np.int64(5)), 1)  # type: ignore[arg-type]
    learner.save(tmp_path)
    assert_same(Learner.load(tmp_path, device="cpu"), taught(learner_of("links", seed=5), 1))


def test_settings_of_numpy_are_saved(tmp_path: Path) -> None:
    changes = {"lr": np.float32(0.5), "p": np.int64(1)}
    settings = learner_of("links").settings.changed(changes)
    learner = taught(Learner(settings=settings, device="cpu"), 1)
    learner.save(tmp_path)
    assert Learner.load(tmp_path, device="cpu").settings == settings


def test_a_dataset_brings_its_recipe() -> None:
    films = Learner("transe", "dicgrl", dataset="films", epochs=7, device="cpu").settings
    expected = load_recipe("best", "films", "transe", disentangled=True, strategy="dicgrl").settings
    assert films == expected.changed({"epochs": 7})
    assert films != Learner("transe", "dicgrl", epochs=7, device="cpu").settings
    with pytest.raises(UserError, match=r"dataset 'filsm'.*films"):
        Learner(dataset="filsm", device="cpu")
    with pytest.raises(UserError, match=r"settings are complete; .* dataset, dim"):
        Learner(settings=films, dataset="films", dim=3, device="cpu")


def test_settings_leave_nothing_to_name() -> None:
    settings = learner_of("links").settings
    with pytest.raises(UserError, match="instead of giving model, strategy"):
        Learner("gat", "gem", settings=settings)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"model": 5}, "model=5: expected a name"),
        ({"strategy": ["lower"]}, r"strategy=\['lower'\]: expected a name"),
        ({"dataset": 0}, "dataset=0: expected a name"),
        ({"names": [1]}, r"names=\[1\]: expected a dictionary"),
        ({"names": ""}, "names='': expected a dictionary"),
        ({"settings": 3}, "settings=3: expected Settings"),
        ({"settings": {"dim": 3}}, "settings={'dim': 3}: expected Settings"),
    ],
)
def test_arguments_of_another_kind_are_named(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        Learner(**argument, device="cpu")


def test_a_kind_of_dicgrl_has_its_recipe() -> None:
    class Mine(Strategy.registry["dicgrl"], name="mine"):  # type: ignore[misc]
        """Another one."""

    try:
        mine, theirs = (
            Learner("transe", name, device="cpu").settings for name in ("mine", "dicgrl")
        )
        assert mine == theirs.changed({"strategy": "mine"})
        auto, near, random = (
            taught(learner_of("links", "mine", start=start, **DIVIDED), 2)
            for start in ("auto", "neighbours", "random")
        )
        assert_same(auto, near)
        assert reported(auto) != reported(random)
    finally:
        del Strategy.registry["mine"]
