"""Settings as the released version stored them: all strategies' together, a scorer's own apart."""

from __future__ import annotations

from typing import Any

import pytest

from dicgrl import UserError
from dicgrl.settings import Settings

STRATEGIES = ("frozen", "lower", "upper", "ewc", "emr", "gem", "dicgrl")
CONTINUAL: dict[str, Any] = {
    "later_epochs": 7,
    "later_rate": 0.5,
    "validate_on": "part",
    "start": "random",
    "budget": "5%",
    "strength": 3.0,
    "orders": 1,
    "weight1": 0.4,
    "weight2": 0.2,
    "refresh": 5,
    "fan": 8,
    "selection": "sample",
    "arrive_epochs": 3,
    "shield": "2x",
    "shield_rank": 30,
    "guard": True,
    "arrive_last": True,
    "pace": 1.0,
    "max_drift": 0.1,
    "average": True,
}
LINKS: dict[str, Any] = {
    "model": "transe",
    "dim": 64,
    "components": 4,
    "top": 2,
    "attention": "nodes",
    "routing": "published",
    "order": "weight",
    "options": {"p": 2},
    "loss": "margin",
    "margin": 5.0,
    "temperature": 2.0,
    "negatives": 16,
    "weighting": "frequency",
    "beta": 0.2,
    "epochs": 10,
    "batch": 32,
    "lr": 0.01,
    "halve_every": 3,
    "decay": 0.5,
    "weight_decay": 0.1,
    "clip": 1.0,
    "dense_rate": 0.5,
    "validate_every": 2,
    "patience": 1,
    "validate_at_most": 100,
}
# Settings that came later; dense_rate of networks, where it does nothing.
YOUNGER = {
    "dense_rate",
    "share",
    "precision",
    "optimizer",
    "normalise",
    "inverses",
    "known_negatives",
    "least_epochs",
    "adam",
    "moments",
    "memory_margin",
    "tf32",
}
NODES: dict[str, Any] = {
    "model": "sage",
    "hidden": 16,
    "heads": 2,
    "layers": 3,
    "dropout": 0.1,
    "components": 4,
    "top": 2,
    "routing": "published",
    "features": "row",
    "graph": "part",
    "batch": 64,
    "neighbours": 5,
    "beta": 0.2,
    "epochs": 10,
    "lr": 0.01,
    "halve_every": 3,
    "decay": 0.5,
    "weight_decay": 0.1,
    "clip": 1.0,
    "validate_every": 2,
    "patience": 1,
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("stored", [LINKS, NODES], ids=["links", "nodes"])
def test_what_is_used_is_as_it_was_stored(stored: dict[str, Any], strategy: str) -> None:
    whole = stored | CONTINUAL | {"strategy": strategy}
    settings = Settings.from_dict(whole)
    flat = whole | whole.get("options", {})
    found = settings.as_dict()
    younger = found.keys() - flat.keys()
    assert younger <= YOUNGER
    assert all(found[name] == flat[name] for name in found.keys() - younger)
    # What is left out is of other strategies, and of other losses.
    gone = flat.keys() - found.keys() - {"options"}
    assert gone <= CONTINUAL.keys() | {"temperature"}
    assert ("temperature" in gone) == ("loss" in stored)
    if strategy == "dicgrl":
        assert gone & CONTINUAL.keys() == {"strength"}
    assert Settings.from_dict(found) == settings  # as it is stored from now on


def test_a_young_run_of_the_released_version_may_lack_settings() -> None:
    stored = {"model": "convkb", "options": {"filters": 3}, "dim": 8}
    assert Settings.from_dict(stored) == Settings("convkb", "lower", filters=3, dim=8)


def test_what_nobody_knows_is_refused() -> None:
    with pytest.raises(UserError, match="unknown setting 'tea'"):
        Settings.from_dict(LINKS | {"tea": 1})
    with pytest.raises(UserError, match="unknown setting 'tea'"):
        Settings.from_dict(LINKS | {"options": {"tea": 1}})
    with pytest.raises(UserError, match="unknown model 'mine'"):
        Settings.from_dict(LINKS | {"model": "mine"})
