"""Which device to compute on, and how much memory it has."""

from __future__ import annotations

import sys

import torch

from dicgrl.common.memory import free_on_host
from dicgrl.errors import SetupError, UserError, shown


def pick_device(name: str | torch.device) -> torch.device:
    """`auto` is the GPU where there is one; of several, the first that the process can see."""
    name = str(name).removesuffix(":0")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        other = "; CUDA_VISIBLE_DEVICES chooses another GPU" if name.startswith("cuda:") else ""
        raise UserError(f"device {shown(name)}: expected auto, cpu or cuda{other}")
    if name == "cuda" and not torch.cuda.is_available():
        raise SetupError("device 'cuda': PyTorch sees no CUDA device here; use --device cpu")
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


def free_memory(device: torch.device) -> int | None:
    """Bytes that can still be had on a device, swap included; None where nothing tells."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + cached
    return free_on_host()


def check_memory(needed: int, device: torch.device, what: str, instead: str = "") -> None:
    """Refuse what cannot fit, before the system ends the process without a word.

    Args:
        needed: Bytes that are needed at least.
        device: Where.
        what: What needs them, and which settings say so.
        instead: What would need less, for the message.

    Raises:
        SetupError: There are fewer.
    """
    free = free_memory(device)
    if free is not None and needed > free:
        raise SetupError(
            f"{what} takes {needed / 1e9:,.1f} GB of memory at least; {free / 1e9:,.1f} GB are free"
            + (f"; {instead}" if instead else "")
        )
