"""Tiny streams whose every part brings something new, the models and strategies that learn them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dicgrl.graph import (
    KnowledgeStream,
    KnowledgeStreamBuilder,
    NetworkStream,
    NetworkStreamBuilder,
)
from dicgrl.models import NetworkModel
from dicgrl.settings import Settings
from dicgrl.strategies import Strategy, strategy_named
from dicgrl.strategies.activator import Activator, activator_of
from dicgrl.strategies.base import StrategySettings
from dicgrl.trainers import LinkTrainer, NodeTrainer
from dicgrl.training import FitReport, TrainingSet

CPU = torch.device("cpu")
STRATEGIES = ("frozen", "lower", "upper", "warm", "ewc", "emr", "gem", "dicgrl", "fresh")
RIVALS = ("lkge", "incde", "fastkge")  # of triples and plain vectors alone
DIVIDED: dict[str, Any] = {"components": 4, "top": 2}
LINK_FORMS: dict[str, dict[str, Any]] = {
    "transe": {"model": "transe"},
    "transe-divided": {"model": "transe", **DIVIDED},
    "transe-published": {"model": "transe", **DIVIDED, "routing": "published", "order": "weight"},
    "transe-nodes": {"model": "transe", **DIVIDED, "attention": "nodes"},
    "convkb": {"model": "convkb", "filters": 3},
    "convkb-divided": {"model": "convkb", "filters": 3, **DIVIDED},
    "convkb-triple": {
        "model": "convkb",
        "filters": 3,
        **DIVIDED,
        "attention": "triple",
    },
    "distmult": {"model": "distmult", "loss": "softmax", "n3": 0.01},
    "complex-divided": {"model": "complex", "loss": "softmax", **DIVIDED},
    "distmult-divided": {"model": "distmult", "loss": "softmax", **DIVIDED},
    "complex": {"model": "complex", "loss": "softmax"},
    "rotate": {"model": "rotate"},
    "transe-unit": {"model": "transe", "normalise": True, "inverses": True, "loss": "meanmargin"},
    "rotate-divided": {"model": "rotate", **DIVIDED},
    "rotate-published": {"model": "rotate", **DIVIDED, "routing": "published"},
    "complex-all": {"model": "complex", "negatives": 0, "inverses": True, "optimizer": "adagrad"},
    "complex-all-divided": {"model": "complex", "negatives": 0, **DIVIDED},
}
PLAIN_FORMS = tuple(name for name, form in LINK_FORMS.items() if "components" not in form)
NODE_FORMS: dict[str, dict[str, Any]] = {
    "gat": {"model": "gat"},
    "gat-divided": {"model": "gat", **DIVIDED},
    "sage": {"model": "sage"},
    "sage-divided": {"model": "sage", **DIVIDED},
    "sage-mini": {"model": "sage", "batch": 4, "neighbours": 2},
}
FORMS = LINK_FORMS | NODE_FORMS


def knowledge_stream(seed: int = 0, triples: tuple[int, ...] = (30, 12, 10)) -> KnowledgeStream:
    """Three parts; each brings entities and a relation, among its triples some between old ends."""
    builder = KnowledgeStreamBuilder("growing")
    random = np.random.default_rng(seed)
    entities = relations = 0
    for count, more in zip(triples, (9, 4, 3), strict=True):
        fresh = np.arange(entities, entities + more)
        entities, relations = entities + more, relations + (2 if not relations else 1)
        rows = np.stack(
            [
                random.integers(0, entities, count),
                random.integers(0, relations, count),
                random.integers(0, entities, count),
            ],
            axis=1,
        )
        rows[: more - 1, 0] = fresh[:-1]  # the last one is in no training triple unless by chance
        rows[:2, 1] = relations - 1  # the new relation
        rows[2, 2] = rows[2, 0]  # a self loop
        held = random.integers(0, entities, (6, 3))
        held[:, 1] %= relations
        builder.entities.add([f"e{i}" for i in fresh])
        builder.relations.add([f"r{i}" for i in range(relations)])
        builder.add(rows, held[:3], held[3:])
    return builder.build()


def network_stream(seed: int = 0) -> NetworkStream:
    """Three parts; each brings nodes and a class, and edges among its nodes and to older ones."""
    builder = NetworkStreamBuilder("growing", num_features=5)
    random = np.random.default_rng(seed)
    nodes = 0
    for part, more in enumerate((14, 8, 8)):
        ids = builder.nodes.add([f"n{nodes + i}" for i in range(more)])
        nodes += more
        builder.classes.add([f"c{i}" for i in range(part + 2)])
        labels = np.arange(more) % (part + 2)
        edges = np.stack(
            [random.integers(0, nodes, 3 * more), np.concatenate([ids, ids, ids])], axis=1
        )
        role = np.arange(more) % 4
        features = random.normal(0, 1, (more, 5)) + labels[:, None]
        builder.add(
            edges,
            features.astype(np.float32),
            labels,
            ids[role < 2],
            ids[role == 2],
            ids[role == 3],
        )
    return builder.build()


def settings_of(form: str, strategy: str, **changes: Any) -> Settings:
    """Settings of a small model; those that only other strategies have are left out."""
    small: dict[str, Any] = {"epochs": 3, "lr": 0.05, "strategy": strategy, "budget": "6"}
    small |= {"effort": "48", "passes": 3, "stage_epochs": 1, "rank": 2}
    if form in LINK_FORMS:
        small |= {"dim": 8, "negatives": 4, "batch": 8, "margin": 2.0, "validate_every": 2}
        if "components" in LINK_FORMS[form]:
            small["dim"] = 4  # vectors of 8 numbers, too
        return Settings().changed(small | LINK_FORMS[form] | changes, carried=True)
    small |= {"hidden": 4, "heads": 2, "dropout": 0.2}
    return Settings("gat").changed(small | NODE_FORMS[form] | changes)


def stream_of(form: str, seed: int = 0) -> KnowledgeStream | NetworkStream:
    return knowledge_stream(seed) if form in LINK_FORMS else network_stream(seed)


def trainer_of(settings: Settings, seed: int = 0) -> LinkTrainer | NodeTrainer:
    if settings.task.name == "link-prediction":
        return LinkTrainer(settings, seed, CPU)
    return NodeTrainer(settings, seed, CPU)


def strategy_of(settings: Settings) -> Strategy:
    """The strategy that settings name, with its own section of them."""
    return strategy_named(settings.strategy)(settings.of(StrategySettings))


def activator(trainer: LinkTrainer | NodeTrainer) -> Activator:
    """What the newest part of a trainer of dicgrl concerns."""
    return activator_of(trainer, trainer.settings.of(StrategySettings))


def watch_fit(
    trainer: LinkTrainer | NodeTrainer, monkeypatch: pytest.MonkeyPatch
) -> list[TrainingSet]:
    """The training sets that a trainer learns from now on."""
    found: list[TrainingSet] = []
    fit = trainer.fit

    def watched(training_set: TrainingSet, *rest: Any, **named: Any) -> FitReport:
        found.append(training_set)
        return fit(training_set, *rest, **named)

    monkeypatch.setattr(trainer, "fit", watched)
    return found


def weights(trainer: LinkTrainer | NodeTrainer) -> dict[str, Tensor]:
    """Copies of all that a model is: rows of tables with the optimiser's state, parameters."""
    found = {
        f"{name}/{key}": values
        for name, table in trainer.model.tables().items()
        for key, values in table.snapshot().items()
    }
    dense = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    return found | dense


@torch.no_grad()
def break_ties(model: NetworkModel) -> None:
    """Make all attention logits positive: a ReLU that ends in ties at 0 leaves the choice open."""
    assert model.projection is not None
    model.projection.bias += 5
    for parameter in model.routers.parameters():
        parameter.abs_()


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Whether two models are the same, bit for bit."""
    return first.keys() == second.keys() and all(
        torch.equal(values, second[name]) for name, values in first.items()
    )
