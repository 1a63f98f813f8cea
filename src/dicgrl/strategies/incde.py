"""IncDE: near facts first, new rows before old ones, old entities distilled.

(Liu et al., AAAI 2024, "Towards continual knowledge graph embedding via incremental
distillation".) A part is learned in three ways at once:

- hierarchical ordering (`facts=layers`): facts that mention an old entity come first, then those
  that mention what these reached, and so on; within a layer, facts whose ends have most facts come
  first. Besides the degree, the paper uses the betweenness of edges, which takes longer to compute
  than to learn the facts;
- two stages: for `stage_epochs` only new rows learn, then all;
- incremental distillation: every step adds w sum Huber(e - e_before) over old entities to the loss.

The published code writes the order and then reads another file (`facts=file`). It also refreshes
the teacher of new entities after every batch, so that their distillation has no effect; only that
of old entities is built here. Its weight w is ten times larger from the fifth part on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.strategies.distance import degrees, distances
from dicgrl.strategies.freezing import freeze_rows, unfreeze
from dicgrl.strategies.ingredients import Composed, Ingredient
from dicgrl.trainers import LinkTrainer, Trainer
from dicgrl.training.stepper import Objective

_LATE = 4  # from the fifth part on the published code distils ten times as strongly


class Ordering(Ingredient):
    """Learns new facts in the same order in every epoch."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the order."""

        facts: str = option(
            "layers",
            "Order in which incde learns new facts: layers (outwards from the old graph), file "
            "(as they arrived, like the published code) or shuffled.",
            choices=("layers", "file", "shuffled"),
        )

    @override
    def order(self, trainer: Trainer) -> Tensor | None:
        assert isinstance(trainer, LinkTrainer)
        if self.settings.facts == "shuffled":
            return None
        rows = trainer.graph.rows("train", trainer.newest)
        if self.settings.facts == "file":
            return torch.arange(len(rows), device=trainer.device)
        known = trainer.taken[trainer.newest].new_entities.start  # type: ignore[attr-defined]
        total = trainer.model.num_entities
        far, met, ends = distances(rows, known, total), degrees(rows, total), rows[:, [0, 2]]
        chosen = np.lexsort((-met[ends].max(1), far[ends].min(1)))
        return trainer.on_device(chosen)


class Stages(Ingredient):
    """Lets only new rows learn for some epochs."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the stages."""

        stage_epochs: int = option(
            21, "Epochs of a later part in which only new rows learn in incde.", least=0
        )

    @override
    def begin(self, trainer: Trainer) -> None:
        tables = trainer.model.tables()
        new = any(first < len(tables[name]) for name, first in trainer.old_rows().items())
        if new and self.settings.stage_epochs:
            freeze_rows(trainer)

    @override
    def end_epoch(self, trainer: Trainer, epoch: int) -> None:
        if epoch == self.settings.stage_epochs:
            unfreeze(trainer)

    @override
    def end(self, trainer: Trainer) -> None:
        unfreeze(trainer)


class Distillation(Ingredient):
    """Pulls old entities towards what they were."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the distillation."""

        distil: float = option(0.01, "Weight of incde's distillation of old entities.", least=0)
        distil_late: float = option(0.1, "The same, from the fifth part on.", least=0)

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._before: Tensor | None = None
        self._weight = 0.0

    @override
    def begin(self, trainer: Trainer) -> None:
        late = trainer.newest >= _LATE
        self._weight = self.settings.distil_late if late else self.settings.distil
        first = trainer.old_rows()["entities"]
        self._before = trainer.model.entities.rows[:first].clone()

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        del objective
        if self._before is not None and self._weight:
            table = trainer.model.entities
            moved = table.rows[: len(self._before)].float() - self._before
            table.pull(self._weight * moved.clamp(-1, 1))  # the gradient of the Huber loss

    @override
    def end(self, trainer: Trainer) -> None:
        self._before = None


class IncDE(Composed, name="incde"):
    """Learns new facts in layers, new rows first, with old entities distilled."""

    ingredients = (Ordering, Stages, Distillation)
    needs_links = True
