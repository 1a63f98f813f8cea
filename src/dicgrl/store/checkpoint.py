"""Checkpoints: safetensors for arrays, JSON for the rest, checksummed and renamed into place.

No pickle anywhere: what is read is either plain numbers and texts or refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dicgrl.common.atomic import replacing_file
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import DataError, UserError
from dicgrl.store.sealed import checksum
from dicgrl.tasks import task_of_model

FORMAT = "dicgrl-checkpoint-1"


def save_model(model: Any, folder: Path, meta: dict[str, Any]) -> None:
    """Write a model with its optimiser state to `model.safetensors` and `model.json`.

    Args:
        model: The model.
        folder: Where the two files go.
        meta: Further JSON values to keep beside it.
    """
    # New rows after loading continue the sequence; they must not repeat the first ones.
    tensors: dict[str, Tensor] = {"generator": model.generator.get_state()}
    for name, table in model.tables().items():
        for buffer, values in table.snapshot().items():
            tensors[f"table/{name}/{buffer}"] = values.cpu().contiguous()
    for name, parameter in model.named_parameters():
        tensors[f"parameter/{name}"] = parameter.detach().cpu().contiguous()
    arrays = folder / "model.safetensors"
    with replacing_file(arrays) as temporary:
        write_tensors(tensors, temporary)
    description = {
        "format": FORMAT,
        "sha256": checksum(arrays),
        "model": model.configuration(),
        "meta": meta,
    }
    with replacing_file(folder / "model.json") as temporary:
        temporary.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def read_arrays(path: Path) -> dict[str, Tensor]:
    """Read back what `write_arrays` wrote.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(path, f"damaged ({error})") from error


def load_model(folder: Path, device: torch.device | str = "cpu") -> tuple[Any, dict[str, Any]]:
    """Read back what `save_model` wrote.

    Raises:
        DataError: A file is missing, damaged or not a checkpoint of this package.
    """
    path = folder / "model.json"
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(folder, "no checkpoint here (model.json is missing)") from None
    except (ValueError, OSError) as error:
        raise DataError(path, f"damaged checkpoint ({error})") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise DataError(path, f"not a checkpoint of this version (expected format {FORMAT!r})")
    arrays = folder / "model.safetensors"
    if not arrays.is_file() or checksum(arrays) != description.get("sha256"):
        raise DataError(arrays, "damaged checkpoint: its checksum is not the one written beside it")
    try:
        tensors = load_file(arrays)
    except SafetensorError as error:
        raise DataError(arrays, f"damaged checkpoint ({error})") from error
    try:
        return _build(description, tensors, device), dict(description["meta"])
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, UserError, ValueError) as error:
        raise DataError(path, f"the arrays beside it are not its own ({error})") from error


def _build(
    description: dict[str, Any], tensors: dict[str, Tensor], device: torch.device | str
) -> Any:
    configuration = dict(description["model"])
    model = task_of_model(configuration["name"]).empty_model(configuration, tensors, device)
    with torch.no_grad():
        for name, table in model.tables().items():
            prefix = f"table/{name}/"
            buffers = {
                k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)
            }
            table.grow(buffers["rows"].to(device))
            table.restore({k: v.to(device) for k, v in buffers.items()})
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"parameter/{name}"])
    model.generator.set_state(tensors["generator"])
    model.eval()
    return model
