"""The name means what it says: dicgrl activates, and moves what is old, in every recipe."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from dicgrl.graph import KnowledgePart, KnowledgeStream
from dicgrl.models import Scorer
from dicgrl.recipes import default_settings, load_recipe
from dicgrl.settings import Settings
from dicgrl.strategies import strategy_named
from dicgrl.strategies.base import StrategySettings
from dicgrl.strategies.budget import examples_within
from dicgrl.trainers import LinkTrainer, NodeTrainer
from tests.growing import knowledge_stream, network_stream, strategy_of, trainer_of, weights
from tests.recipes.test_recipes import FILES

RECIPES = [file.removesuffix(".toml") for file in FILES]
STRANGERS = [f".{model}.best" for model in ("transe", "rotate", "convkb", "gat", "sage")]
every_recipe = pytest.mark.parametrize("recipe", [*RECIPES, *STRANGERS])


def recipe_of(recipe: str, strategy: str = "dicgrl") -> Settings:
    dataset, model, name = recipe.rsplit(".", 2)
    return load_recipe(name, dataset, model, disentangled=True, strategy=strategy).settings


def made_small(settings: Settings) -> Settings:
    """The same on a smaller scale: what is switched on stays on, what is off stays off."""
    known = settings.as_dict()
    most = {"epochs": 4, "later_epochs": 2, "arrive_epochs": 2, "batch": 8, "negatives": 4}
    most |= {"hidden": 4, "filters": 4, "rank": 2, "patience": 0, "dim": 4 * known["top"]}
    small = {key: min(known[key], value) for key, value in most.items() if known.get(key)}
    if known.get("epochs") == 0:  # what fits the size of the graph
        small["epochs"] = 4
    # A share of a handful of examples would be none; a share of a real history is not.
    for name in ("budget", "shield"):
        if name in known and known[name] != "activated" and examples_within(known[name], 100, 100):
            small[name] = "6"
    return settings.changed(small, carried=True)


@cache
def news_only() -> KnowledgeStream:
    """As in the paper's partitions: each new fact speaks of a new entity."""
    stream = knowledge_stream()
    parts = []
    for part in stream:
        assert isinstance(part, KnowledgePart)
        new = (part.train[:, [0, 2]] >= part.new_entities.start).any(1)
        parts.append(part.__class__(**{**_fields(part), "train": part.train[new]}))
    return KnowledgeStream("news", tuple(parts), {})


def _fields(part: KnowledgePart) -> dict[str, object]:
    names = ("index", "entities", "relations", "new_entities", "new_relations")
    return {name: getattr(part, name) for name in (*names, "train", "valid", "test")}


@every_recipe
def test_a_later_part_activates_and_moves_what_is_old(recipe: str) -> None:
    settings = made_small(recipe_of(recipe))
    trainer, learner = trainer_of(settings), strategy_of(settings)
    links = settings.model in Scorer.registry
    for part in list(news_only() if links else network_stream())[:2]:
        trainer.take(part)
        learner.prepare(trainer)
        before = weights(trainer)
        learned = learner.learn(trainer)
    assert learned.activated > 0 and learned.replayed > 0
    after = weights(trainer)
    if isinstance(trainer, NodeTrainer):  # nodes have no rows: what they share has moved
        assert any(not torch.equal(before[key], after[key]) for key in before)
        return
    assert isinstance(trainer, LinkTrainer)
    old = trainer.old_rows()["entities"]
    moved = (before["entities/rows"][:old] != after["entities/rows"][:old]).any(1).numpy()
    assert moved.any()
    assert not moved.all()  # others than the common components rest
    count = trainer.model.count
    part = trainer.part
    assert part is not None
    known = np.unique(trainer.graph.train[:, [0, 2]])
    assert np.isin(np.unique(moved.nonzero()[0] // count), known).all()


@every_recipe
def test_an_update_is_not_switched_off(recipe: str) -> None:
    """On a graph of any size: with arrival, no epochs of an update would mean no update."""
    settings = recipe_of(recipe)
    own = settings.of(StrategySettings).as_dict()
    arrives = own["arrive_epochs"] and settings.model in Scorer.registry
    assert own["later_epochs"] > 0 or not arrives
    assert examples_within(own["budget"], 10_000, 1_000) > 0


def test_what_moves_nothing_old_has_a_name_of_its_own() -> None:
    for recipe in ("fb15k-237.transe.best", "fb15k-237.convkb.best"):
        alone, whole = (recipe_of(recipe, name) for name in ("arrival", "dicgrl"))
        first = set(whole.as_dict()) - whole.later_names
        assert all(alone.as_dict()[key] == whole.as_dict()[key] for key in first)
        for key in ("start", "arrive_epochs", "shield", "shield_rank"):
            assert alone.as_dict()[key] == whole.as_dict()[key]
        assert "later_epochs" not in strategy_named("arrival").Settings.options()
    assert default_settings("transe", "arrival").arrive_epochs > 0
