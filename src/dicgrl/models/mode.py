"""Use a model without dropout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode, without dropout, and back to the previous mode afterwards."""
    was_training = model.training
    if not was_training:  # then neither are its submodules, as `train` and `eval` are recursive
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()
