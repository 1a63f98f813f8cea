"""Elastic weight consolidation: a penalty on moving important weights (Kirkpatrick et al. 2017).

After each part the diagonal Fisher information of its examples is added to that of earlier parts,
and the weights become the anchor. Later gradients get strength * Fisher * (weight - anchor), the
gradient of the penalty. For a row of a table it is only added in the steps that touch the row, as
other rows do not move anyway.

The squared gradient of an example is estimated from batches: if examples' gradients are
independent, the mean over a batch of size b has 1/b of their variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.models.table import Table
from dicgrl.strategies.ingredients import Composed, Ingredient
from dicgrl.trainers import Trainer
from dicgrl.training import Positives
from dicgrl.training.loop import Trainable, shuffled
from dicgrl.training.stepper import Objective

_BATCH = 256  # sum the gradients of so many examples before squaring


class Penalty(Ingredient):
    """A penalty on changes to weights that mattered before."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the penalty."""

        strength: float = option(1.0, "Strength of ewc's penalty.", least=0)

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._dense: dict[str, Tensor] = {}
        self._measured = 0

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        del objective
        self._hold(trainer.model)

    @torch.no_grad()
    def _hold(self, model: Trainable) -> None:
        for table in model.tables().values():
            ids = _touched(table)
            if ids is None:
                continue
            moved = table.rows[ids] - table.state("anchor")[ids]
            held = self.settings.strength * table.state("fisher")[ids] * moved
            table.add_gradient(ids, held)
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                fisher, anchor = self._of(name, parameter)
                parameter.grad += self.settings.strength * fisher * (parameter - anchor)

    @override
    def remember(self, trainer: Trainer) -> None:
        self._measure(trainer, trainer.examples("train", trainer.newest))

    @override
    def retrained(self, trainer: Trainer) -> None:
        self._measure(trainer, trainer.examples("train"))

    def _measure(self, trainer: Trainer, examples: Tensor) -> None:
        model = trainer.model
        objective = trainer.objective(examples)
        model.train(False)
        self._measured = len(examples)
        for chosen in shuffled(len(examples), _BATCH, trainer.generator):
            batch = examples[chosen]
            objective(batch, torch.ones(len(batch), device=batch.device)).backward()  # type: ignore[no-untyped-call]
            self._add(model, len(batch) ** 2 / len(examples))
        self.repaired(trainer)

    @override
    @torch.no_grad()
    def repaired(self, trainer: Trainer) -> None:
        for table in trainer.model.tables().values():
            table.state("anchor").copy_(table.rows)
        for name, parameter in trainer.model.named_parameters():
            fisher, _ = self._of(name, parameter)
            self._dense[f"fisher/{name}"] = fisher
            self._dense[f"anchor/{name}"] = parameter.detach().clone()

    @property
    @override
    def besides(self) -> Positives:
        return Positives(new=self._measured)  # `remember` only passes the newest part

    @torch.no_grad()
    def _add(self, model: Trainable, scale: float) -> None:
        for table in model.tables().values():
            ids = _touched(table)
            if ids is not None:
                fisher = table.state("fisher")
                fisher[ids] = fisher[ids] + scale * table.gradient_of(ids) ** 2
            table.clear()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                fisher, _ = self._of(name, parameter)
                self._dense[f"fisher/{name}"] = fisher + scale * parameter.grad**2
                parameter.grad = None

    def _of(self, name: str, parameter: nn.Parameter) -> tuple[Tensor, Tensor]:
        """Fisher information and anchor of a dense parameter; 0 for new rows."""
        fisher, anchor = torch.zeros_like(parameter), parameter.detach().clone()
        for values, key in ((fisher, f"fisher/{name}"), (anchor, f"anchor/{name}")):
            if key in self._dense:
                stored = self._dense[key]
                (values[: len(stored)] if stored.dim() else values).copy_(stored)
        return fisher, anchor

    @override
    def state(self) -> dict[str, Tensor]:
        """State of dense parameters; that of tables is stored in the tables."""
        return dict(self._dense)

    @override
    def restore(self, state: dict[str, Tensor]) -> None:
        self._dense = dict(state)


def _touched(table: Table) -> Tensor | None:
    """Rows with a gradient; None if there are none. On a GPU they may be repeated.

    A repeated id writes the same values again; to remove it, the GPU would have to wait.
    """
    ids = table.touched()
    return ids if ids is None or ids.is_cuda else torch.unique(ids)


class EWC(Composed, name="ewc"):
    """Fine-tunes on the new part with a penalty on changes to weights that mattered before."""

    ingredients = (Penalty,)
