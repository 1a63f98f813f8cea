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
        "selfadversarial, softmargin, margin, meanmargin or softmax.",
        choices=tuple(LOSSES),
    )
    negatives: int = option(
        64,
        "Negatives per triple; 0: all entities, of loss=softmax and decoders that make queries "
        "(1-vs-all; docs/method.md says which, and what it takes).",
        least=0,
    )
    tf32: bool = option(
        False, "Whether a GPU may round what it multiplies to TF32 where negatives=0."
    )
    known_negatives: bool = option(
        False, "Whether a negative may be a known training triple, as where nobody looks."
    )
    share: int = option(
        0,
        "Triples, one after the other, that have the same negatives: products of vectors can then "
        "have thousands (share=1024). 0: 8 in later parts where that saves a CPU time, else 1.",
        least=0,
    )
    weighting: str = option(
        "even",
        "What triples count where a model learns them: even (all alike), frequency (the less, the "
        "more often their questions are asked), count (the more, the more often they arrived) or "
        "recency (the less, the longer ago they were so: by their dates where these are known, "
        "else by the parts since they last arrived). With count and recency facts that arrive "
        "again are noted, else they are left out; a later date is noted in any case.",
        choices=("even", "frequency", "count", "recency"),
    )
    beta: float = option(0.1, _BETA, least=0, needs="components")
    validate_at_most: int = option(
        2000, "Validation triples looked at during training; 0 for all.", least=0
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


_USUAL = 270_000  # triples that 100 epochs, batches of 1,024 and the rate below were found for
_EPOCHS, _FEWEST, _MOST = 100, 5, 300
_BATCH, _LARGEST = 1024, 1 << 14
_RATE, _FASTEST = 3e-3, 1e-2


@dataclass(frozen=True)
class LinkSchedule(Schedule):
    """How long and how fast to train on triples."""

    epochs: int = option(
        100,
        "Passes over the training triples, at most; 0 for what fits their number: 100 of 270,000, "
        "up to 300 of fewer, down to 5 of more.",
        least=0,
    )
    batch: int = option(
        1024,
        "Triples per step; 0 for what fits their number: 1,024, up to 16,384 of more than 270,000.",
        least=0,
    )
    lr: float = option(
        1e-3,
        "Learning rate of Adam; 0 for what fits the number of triples: 0.003, up to 0.01 of fewer "
        "than 270,000.",
        least=0,
    )

    @override
    def fitted(self, examples: int) -> Self:
        """What the settings above say of so many triples.

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
        "Edges that messages pass: accumulated (all known so far) or part (the newest part's).",
        choices=("accumulated", "part"),
    )
    neighbours: int = option(
        10, "Neighbours drawn per node and layer where batch is not 0.", least=1
    )
    beta: float = option(0.1, _BETA, least=0, needs="components")


@dataclass(frozen=True)
class NodeSchedule(Schedule):
    """How long and how fast to train on nodes."""

    epochs: int = option(300, "Passes over the training nodes, at most.", least=1)
    batch: int = option(0, "Nodes per step; 0 for all at once.", least=0)
    lr: float = option(5e-3, "Learning rate of Adam.", above=0)
    weight_decay: float = option(5e-4, "Pull of the weights towards zero.", least=0)
    validate_every: int = option(1, "Epochs between two validations.", least=1)
    patience: int = option(
        50, "Validations without a smaller loss after which training stops; 0 for never.", least=0
    )
