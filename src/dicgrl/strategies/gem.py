"""Gradient episodic memory: no step may raise the loss of an earlier part's memory.

(Lopez-Paz and Ranzato 2017.) With g the gradient of the new batch and g_t that of part t's memory,
the step becomes the nearest vector z to g with <z, g_t> >= 0 for all t. Its dual is small, one
variable per part: z = g + G^T v with v >= 0 minimising |g + G^T v|^2, a non-negative least-squares
problem that SciPy solves exactly from the inner products alone. In the authors' code, if anything
is projected, v is at least a margin, which turns the step towards the memories (`memory_margin`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import option
from dicgrl.strategies.budget import BudgetSettings
from dicgrl.strategies.ingredients import Composed, Ingredient
from dicgrl.trainers import Trainer
from dicgrl.training import Positives
from dicgrl.training.gradients import inner, put_gradients, take_gradients
from dicgrl.training.stepper import Objective


@dataclass(frozen=True)
class ProjectionSettings(BudgetSettings):
    """Settings of the projection."""

    memory_margin: float = option(
        0.0,
        "Smallest weight of each memory's gradient in gem's projection (0.5 in its paper).",
        least=0,
    )


class Projection(Ingredient):
    """Projects gradients so that they do not oppose any earlier part's memory."""

    Settings = ProjectionSettings
    capturable = False  # the dual is solved on the host

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        import scipy.optimize  # noqa: F401  # slow to import: not while a part is timed

        self._memories: list[Tensor] = []
        self._asked = 0

    @override
    def asked_besides(self, trainer: Trainer) -> list[Tensor]:
        budget, old = self.settings.allowed(trainer), trainer.count("train", 0, trainer.newest)
        memories, drawn = [], 0
        for part in range(trainer.newest):
            # Cumulative rounding, so that the shares add up to the budget.
            so_far = round(budget * trainer.count("train", 0, part + 1) / max(old, 1))
            memories.append(trainer.sample(so_far - drawn, part, part + 1))
            drawn = so_far
        self._memories = [memory for memory in memories if len(memory)]
        self._asked = 0
        return self._memories

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        if not self._memories:
            return
        model = trainer.model
        new = take_gradients(model)
        old = []
        for memory in self._memories:
            batch = _some_of(memory, trainer)
            objective(batch, torch.ones(len(batch), device=batch.device)).backward()  # type: ignore[no-untyped-call]
            old.append(take_gradients(model))
            self._asked += len(batch)
        products = torch.stack([inner(gradient, new) for gradient in old])
        gram = torch.stack([torch.stack([inner(a, b) for b in old]) for a in old])
        dual = project(
            gram.double().cpu().numpy(),
            products.double().cpu().numpy(),
            self.settings.memory_margin,
        )
        for gradient, weight in zip(old, dual, strict=True):
            if weight:
                for name, values in new.items():
                    values += float(weight) * gradient[name]
        put_gradients(model, new)

    @property
    @override
    def replayed(self) -> int:
        return sum(map(len, self._memories))

    @property
    @override
    def besides(self) -> Positives:
        return Positives(old=self._asked)


class GEM(Composed, name="gem"):
    """Fine-tunes on the new part with gradients that do not oppose any earlier part's memory."""

    ingredients = (Projection,)
    needs_gradients = True


def _some_of(memory: Tensor, trainer: Trainer) -> Tensor:
    """As many examples of a memory as a step takes, drawn with replacement."""
    size = trainer.schedule.batch or len(memory)
    if len(memory) <= size:
        return memory
    chosen = torch.randint(len(memory), (size,), generator=trainer.generator, device=memory.device)
    return memory[chosen]


def project(
    gram: npt.NDArray[np.float64], products: npt.NDArray[np.float64], margin: float = 0.0
) -> npt.NDArray[np.float64]:
    """The v >= margin that minimises |g + G^T v|^2, given G G^T and G g; 0 if nothing is opposed.

    Example:
        >>> project(np.array([[1.0]]), np.array([-2.0]))
        array([2.])
        >>> project(np.array([[1.0]]), np.array([3.0]))
        array([0.])
        >>> project(np.array([[1.0]]), np.array([-2.0]), margin=3.0)
        array([3.])
    """
    if not np.isfinite(gram).all() or not np.isfinite(products).all():
        return np.zeros(len(products))  # the training loop notices a loss that is not finite
    if (products >= 0).all():
        return np.zeros(len(products))
    if margin:  # v = margin + u with u >= 0
        rest: npt.NDArray[np.float64] = _nearest(gram, products + margin * gram.sum(1))
        return rest + margin
    return _nearest(gram, products)


def _nearest(
    gram: npt.NDArray[np.float64], products: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    from scipy.optimize import nnls  # slow to import

    # |g + G^T v|^2 = |A v - b|^2 + const with A^T A = G G^T and A^T b = -G g.
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, values.max() * 1e-12)
    root = np.sqrt(values)
    matrix = root[:, None] * vectors.T
    target = -(vectors.T @ products) / root
    solution: npt.NDArray[np.float64] = nnls(matrix, target)[0]
    return solution
