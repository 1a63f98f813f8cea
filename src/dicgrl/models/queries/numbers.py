"""Complex numbers in real vectors: real and imaginary parts are interleaved.

Each component of a vector is then a complex vector, whichever other components a triple uses.
"""

from __future__ import annotations

import torch
from torch import Tensor


def as_complex(vectors: Tensor) -> Tensor:
    """Real vectors [..., 2 m] as complex ones, [..., m]; a view.

    Example:
        >>> as_complex(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([1.+2.j, 3.+4.j])
    """
    return torch.view_as_complex(vectors.view(*vectors.shape[:-1], vectors.shape[-1] // 2, 2))


def as_real(numbers: Tensor) -> Tensor:
    """Complex vectors [..., m] as real ones, [..., 2 m]; a view unless they are a conjugate."""
    return torch.view_as_real(numbers.resolve_conj()).flatten(-2)
