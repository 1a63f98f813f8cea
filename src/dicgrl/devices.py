"""Which device to compute on."""

from __future__ import annotations

import sys

import torch

from dicgrl.errors import UserError


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise UserError(f"device {name!r}: expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda': PyTorch sees no CUDA device here; use --device cpu")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """What results call it."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def peak_memory(device: torch.device) -> int:
    """Most bytes that were in use: on the device, or by this process where that is the CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
