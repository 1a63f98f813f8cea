"""Triton kernels for the GPU, each with its PyTorch reference beside it.

Everything works without them: if `available` says no, a model runs its PyTorch path, which is also
what CPUs run and what the kernels are tested against.
"""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor

_FOUND = importlib.util.find_spec("triton") is not None
_ANYWHERE = False  # set by tests that launch no kernel; TRITON_INTERPRET would change Triton itself


def available(*tensors: Tensor) -> bool:
    """Whether kernels can run on these tensors.

    With `TRITON_INTERPRET=1` they run on the CPU too, slowly, for tests. `DICGRL_KERNELS=0`
    switches them off.
    """
    if any(t.is_floating_point() and t.dtype != torch.float32 for t in tensors):
        return False  # they accumulate in single precision
    if not _FOUND or os.environ.get("DICGRL_KERNELS") == "0":
        return False
    if os.environ.get("TRITON_INTERPRET") == "1" or _ANYWHERE:
        return True
    return all(tensor.is_cuda for tensor in tensors)
