"""How long and how fast to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.errors import UserError
from dicgrl.training.adam import RULES

_FASTEST = 3e37  # largest learning rate: Adam's first step divides it by 0.1 in float32


@dataclass(frozen=True)
class Schedule(Section):
    """How long and how fast to train."""

    epochs: int = option(100, "Passes over the training examples, at most.", least=1)
    batch: int = option(1024, "Examples per step.", least=1)
    lr: float = option(1e-3, "Learning rate of Adam.", above=0)
    halve_every: int = option(
        0, "Epochs after which the learning rate is halved; 0 for never.", least=0
    )
    decay: float = option(
        0.0,
        "How far the learning rate falls, linearly, by the last epoch: 0 (not at all) to 1 (to 0).",
        least=0,
        most=1,
    )
    weight_decay: float = option(0.0, "Strength of weight decay.", least=0)
    clip: float = option(
        0.0, "Largest norm of the gradient of everything that may change; 0 for no limit.", least=0
    )
    adam: str = option(
        "rows",
        "Rows that a step of Adam moves: rows (those with a gradient; the others rest) or dense "
        "(all that may change, by momentum and weight decay, like PyTorch's).",
        choices=("rows", "dense"),
        needs="rows",
    )
    moments: str = option(
        "kept",
        "Adam's moments of rows when the next part is learned: kept, or new, as with a new "
        "optimiser. Those of dense parameters are always new.",
        choices=("kept", "new"),
        needs="rows",
    )
    dense_rate: float = option(
        1.0,
        "Learning rate of dense parameters, such as filters, as a multiple of lr; they are in "
        "every step, a row only in some.",
        least=0,
        needs="rows",
    )
    optimizer: str = option(
        "auto",
        "Optimizer state of a table of rows: adam (two moments per number), rowwise (one number "
        "per row of the largest table, and no first moment), auto (rowwise if these rows take 4 "
        "GiB or more, otherwise adam) or adagrad (the sum of squared gradients of every number: "
        "its steps become ever shorter, and an lr of 0.1 is usual).",
        choices=RULES,
        needs="rows",
    )
    validate_every: int = option(5, "Epochs between two validations.", least=1)
    patience: int = option(
        5, "Validations without progress before training stops; 0 for never.", least=0
    )
    least_epochs: int = option(0, "Fewest epochs before training may stop early.", least=0)

    @override
    def check(self) -> None:
        if self.lr * self.dense_rate > _FASTEST:
            raise UserError(
                f"lr={self.lr} times dense_rate={self.dense_rate}: expected at most {_FASTEST:g}"
            )

    def fitted(self, examples: int) -> Self:
        """The schedule with settings that depend on the number of training examples filled in."""
        del examples
        return self

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, which is counted from 1.

        Example:
            >>> Schedule(epochs=10, lr=1.0, decay=1.0).rate(6)
            0.5
        """
        halved = 0.5 ** ((epoch - 1) // self.halve_every) if self.halve_every else 1.0
        return self.lr * halved * (1 - self.decay * (epoch - 1) / self.epochs)
