"""Redrawn replay in a network: new nodes, and old ones that are drawn anew in every epoch.

A step passes only what lies around its nodes, so that a part costs what it brings and not what the
network is. A fixed sample of old nodes would be learned by heart while the others are forgotten;
drawn anew, the same number of them speaks for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.errors import UserError
from dicgrl.strategies.base import Learned, Strategy, StrategySettings
from dicgrl.strategies.budget import check_amount, examples_within
from dicgrl.trainers import NodeTrainer, Trainer
from dicgrl.training import NodeObjective, Schedule, TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective

_BATCH = 512  # nodes of a step where the settings name no number
_LEAST = 100  # old nodes of an epoch: a handful of new ones would be learned at their cost
_CLASSES_EPOCHS, _CLASSES_RATE = 3, 2.0  # times as many and as fast where classes arrive


@dataclass(frozen=True)
class FreshNodesSettings(StrategySettings):
    """Settings of redrawn replay in a network."""

    replay: str = option(
        "3x",
        "Old training nodes that an epoch learns again, drawn anew each time: 3x (times the new "
        "ones), 10% (of the history), 500 or all; 100 at least.",
        check=check_amount,
        numbers=True,
    )
    update_epochs: int = option(
        20, "Epochs of every part but the first; three times as many where classes arrive.", least=1
    )
    update_rate: float = option(
        1.0,
        "Learning rate of later parts, falling to zero, as a multiple of lr; twice that where "
        "classes arrive.",
        above=0,
    )

    def later(self, schedule: Schedule, *, classes: bool) -> Schedule:
        """The schedule of a later part, given that of the first and whether classes arrive."""
        epochs, rate = self.update_epochs, self.update_rate
        if classes:
            epochs, rate = _CLASSES_EPOCHS * epochs, _CLASSES_RATE * rate
        batch = schedule.batch or _BATCH
        return replace(schedule, epochs=epochs, lr=schedule.lr * rate, batch=batch, decay=1.0)

    def drawn(self, old: int, new: int) -> int:
        """Old nodes that an epoch learns again."""
        return max(examples_within(self.replay, old, new, "replay"), min(_LEAST, old))


class FreshNodes(Strategy, name="freshnodes"):
    """Learns new nodes and old ones that are drawn anew in every epoch, and what is around them."""

    Settings = FreshNodesSettings
    settings: FreshNodesSettings
    starts_from_neighbours = True

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        if not isinstance(trainer, NodeTrainer):
            raise UserError(f"strategy {self.name} learns networks")
        new = trainer.examples("train", trainer.newest)
        if not len(new):
            return Learned()
        old = trainer.examples("train", 0, trainer.newest)
        classes = bool(trainer.new_classes())
        schedule = self.settings.later(trainer.schedule, classes=classes)
        drawn = self.settings.drawn(len(old), len(new))
        training_set = RedrawnNodes(trainer, new, old, drawn, schedule.batch)
        report = self.fit(trainer, training_set, monitor, schedule)
        return Learned([report], replayed=training_set.different)

    @property
    @override
    def _validate_on(self) -> str:
        return "none"  # the rate falls to zero: the last epoch is kept, and nothing passed for it


class RedrawnNodes(TrainingSet):
    """New nodes, and so many old ones, drawn anew and without repeats in every epoch.

    Args:
        trainer: Has taken the nodes in.
        new: The new nodes.
        old: All old ones.
        drawn: How many of them an epoch learns.
        batch: Nodes of a step.
    """

    def __init__(
        self, trainer: NodeTrainer, new: Tensor, old: Tensor, drawn: int, batch: int
    ) -> None:
        self._old, self._drawn = old, min(drawn, len(old))
        self._met = torch.zeros(len(old), dtype=torch.bool, device=old.device)
        # Such nodes as a step will have: they say how much of the network lies around it.
        alike = torch.cat([new, old[:: max(len(old) // max(self._drawn, 1), 1)]])
        alike = alike[:: _steps(len(new) + self._drawn, batch)]
        model = trainer.model
        learned = NodeObjective(
            trainer.labels,
            trainer.surroundings(alike, trainer.training.neighbours),
            trainer.training.beta,
        )
        super().__init__(lambda nodes, weight: learned(model, nodes, weight), new)

    @property
    @override
    def capturable(self) -> bool:
        return False  # what lies around the nodes of a step has another size each time

    @property
    def different(self) -> int:
        """Old nodes that were learned so far, each counted once."""
        return int(self._met.sum())

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        del epoch
        device = generator.device
        chosen = torch.randperm(len(self._old), generator=generator, device=device)[: self._drawn]
        self._met[chosen] = True
        nodes = torch.cat([self.examples, self._old[chosen]])
        nodes = nodes[torch.randperm(len(nodes), generator=generator, device=device)]
        # Steps of one size: a last one of a few nodes would count as much as the others.
        for step in torch.chunk(nodes, _steps(len(nodes), size)):
            yield self.objective, step, torch.ones(len(step), device=device)


def _steps(nodes: int, batch: int) -> int:
    """Steps that so many nodes take."""
    return max(round(nodes / batch), 1)
