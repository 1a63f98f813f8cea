"""PyTorch's global generator, which all threads share: seeded for a while, by one at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_ALONE = threading.RLock()


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed the global generators of the CPU and of a device; afterwards they are as before.

    Another thread that asks for the same waits.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _ALONE, torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed(seed)
        yield
