"""Tensors in files: safetensors, never pickle."""

from __future__ import annotations

import errno
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def write_tensors(
    tensors: dict[str, Tensor], path: Path, about: dict[str, str] | None = None
) -> None:
    """Write tensors as safetensors, for everyone to read whom the user's umask allows to.

    Args:
        tensors: The tensors by name.
        path: The file.
        about: Texts for its header.

    Raises:
        OSError: It cannot be written, such as on a full disk.
    """
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(tensors, path, about)
    except SafetensorError as error:
        raise OSError(errno.EIO, f"cannot be written ({error})", str(path)) from error
    path.chmod(mode)  # else it is its owner's alone
