"""Settings of how triples and nodes are learned, besides those of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.errors import UserError
from dicgrl.training.losses import LOSSES
from dicgrl.training.schedule import Schedule

_BETA = "Weight of the normalisation loss."


@dataclass(frozen=True)
class LinkTraining(Section):
    """How triples are learned."""

    loss: str = option(
        "selfadversarial",
        "Loss function of triples.",
        choices=tuple(LOSSES),
    )
    negatives: int = option(
        64,
        "Negatives per triple; 0 for all entities (1-vs-all), which needs loss=softmax and a "
        "decoder with queries (see docs/method.md).",
        least=0,
    )
    tf32: bool = option(False, "Whether a GPU may multiply in TF32 if negatives=0.")
    known_negatives: bool = option(
        False, "Whether a negative may be a known training triple, as in code that does not check."
    )
    share: int = option(
        0,
        "Consecutive triples that share their negatives; products can then have thousands of them "
        "(share=1024). 0: 8 in later parts if that saves time on a CPU, otherwise 1.",
        least=0,
    )
    weighting: str = option(
        "even",
        "Weight of a triple: even (all alike), frequency (lower, the more often its questions are "
        "asked), count (higher, the more often it arrived) or recency (lower, the older it is: "
        "by date if known, otherwise by the parts since it last arrived). count and recency note "
        "facts that arrive again, which are otherwise ignored; a later date is always noted.",
        choices=("even", "frequency", "count", "recency"),
    )
    beta: float = option(0.1, _BETA, least=0, needs="components")
    validate_at_most: int = option(
        2000, "Most validation triples used during training; 0 for all.", least=0
    )

    @override
    def check(self) -> None:
        if self.negatives:
            if self.tf32:
                raise UserError("tf32=true has no effect without negatives=0")
            return
        if self.loss != "softmax":
            raise UserError(
                f"negatives=0 compares with all entities by a cross entropy: it needs loss=softmax "
                f"instead of {self.loss}"
            )
        if self.share:
            raise UserError(f"share={self.share} has no effect with negatives=0: all have the same")


_USUAL = 270_000  # number of triples that the default epochs, batch and rate were tuned on
_EPOCHS, _FEWEST, _MOST = 100, 5, 300
_BATCH, _LARGEST = 1024, 1 << 14
_RATE, _FASTEST = 3e-3, 1e-2


@dataclass(frozen=True)
class LinkSchedule(Schedule):
    """How long and how fast to train on triples."""

    epochs: int = option(
        100,
        "Most passes over the training triples; 0 chooses by their number: 100 for 270,000, up to "
        "300 for fewer, down to 5 for more.",
        least=0,
    )
    batch: int = option(
        1024,
        "Triples per step; 0 chooses by their number: 1,024, up to 16,384 for more than 270,000.",
        least=0,
    )
    lr: float = option(
        1e-3,
        "Learning rate of Adam; 0 chooses by the number of triples: 0.003, up to 0.01 for fewer "
        "than 270,000.",
        least=0,
    )

    @override
    def fitted(self, examples: int) -> Self:
        """Fill in epochs, batch and rate for a number of triples.

        Example:
            >>> LinkSchedule(epochs=0, batch=0, lr=0.0).fitted(27_000_000).epochs
            10
        """
        ratio = math.sqrt(max(examples, 1) / _USUAL)
        fewer, more = min(ratio, 1.0), max(ratio, 1.0)
        epochs = max(min(_EPOCHS / math.sqrt(fewer), _MOST) / more, _FEWEST)
        return replace(
            self,
            epochs=self.epochs or round(epochs),
            batch=self.batch or min(round(_BATCH * more), _LARGEST),
            lr=self.lr or min(_RATE / fewer, _FASTEST),
        )


@dataclass(frozen=True)
class NodeTraining(Section):
    """How nodes are learned."""

    features: str = option(
        "l2",
        "How a node's features are scaled: l2 (length 1), row (sum 1) or none.",
        choices=("l2", "row", "none"),
    )
    graph: str = option(
        "accumulated",
        "Edges along which messages pass: accumulated (all known so far) or part (only the newest "
        "part's).",
        choices=("accumulated", "part"),
    )
    neighbours: int = option(10, "Neighbours drawn per node and layer if batch is not 0.", least=1)
    beta: float = option(0.1, _BETA, least=0, needs="components")


@dataclass(frozen=True)
class NodeSchedule(Schedule):
    """How long and how fast to train on nodes."""

    epochs: int = option(300, "Most passes over the training nodes.", least=1)
    batch: int = option(0, "Nodes per step; 0 for all at once.", least=0)
    lr: float = option(5e-3, "Learning rate of Adam.", above=0)
    weight_decay: float = option(5e-4, "Strength of weight decay.", least=0)
    validate_every: int = option(1, "Epochs between two validations.", least=1)
    patience: int = option(
        50, "Validations without a smaller loss before training stops; 0 for never.", least=0
    )
