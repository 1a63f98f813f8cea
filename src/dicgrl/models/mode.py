"""Use a model without dropout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and the like off; afterwards the model is in the mode that it was in."""
    was_training = model.training
    if not was_training:  # nor are its parts: `train` and `eval` are of all of it
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
