"""Converts a model to tensors and back, and stores it in two files.

`model.safetensors` holds the arrays and `model.json` everything else. Nothing is ever unpickled, so
that a file from a stranger cannot run code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dicgrl.common.atomic import replacing_file, write_json
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import DataError, UserError
from dicgrl.store.damage import is_no_damage
from dicgrl.store.sealed import checksum, read_json
from dicgrl.store.tensors import ROWS, VALUES, Delta
from dicgrl.tasks import task_of_model

FORMAT = "dicgrl-checkpoint-1"


def model_tensors(model: Any) -> dict[str, Tensor]:
    """All tensors of a model, with its optimiser's state and its generator's."""
    # New rows after loading continue the sequence; they must not repeat the first ones.
    tensors: dict[str, Tensor] = {"generator": model.generator.get_state()}
    for name, table in model.tables().items():
        for buffer, values in table.snapshot().items():
            tensors[f"table/{name}/{buffer}"] = values.cpu().contiguous()
    for name, parameter in model.named_parameters():
        tensors[f"parameter/{name}"] = parameter.detach().cpu().contiguous()
    return tensors


def built_model(
    configuration: dict[str, Any], tensors: dict[str, Tensor], device: torch.device | str
) -> Any:
    """The model again; on a CPU its tables take the tensors as they are, without a copy."""
    name = configuration["name"]
    model = task_of_model(name).empty_model(dict(configuration), tensors, device)
    with torch.no_grad():
        for name, table in model.tables().items():
            prefix = f"table/{name}/"
            table.adopt(
                {
                    key.removeprefix(prefix): values.to(device)
                    for key, values in tensors.items()
                    if key.startswith(prefix)
                }
            )
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"parameter/{name}"])
    model.generator.set_state(tensors["generator"])
    model.eval()
    return model


@torch.no_grad()
def patch_model(model: Any, delta: Delta) -> None:
    """Let a model become that of the next version; tables take the rows that changed."""
    tables, parameters = model.tables(), dict(model.named_parameters())
    for name in delta.removed:
        if name.startswith("table/"):
            _, table, buffer = name.split("/", 2)
            tables[table].state(buffer).zero_()
    for key, values in delta.tensors.items():
        if key.endswith(ROWS) or key.startswith("strategy/"):
            continue
        name = key.removesuffix(VALUES)
        rows = delta.tensors[name + ROWS] if key.endswith(VALUES) else None
        ids: Any = slice(None) if rows is None else rows
        if name == "generator":
            state = model.generator.get_state()
            state[ids] = values
            model.generator.set_state(state)
        elif name.startswith("table/"):
            _, table, buffer = name.split("/", 2)
            tables[table].patch(buffer, rows, values)
        else:
            parameter = parameters[name.removeprefix("parameter/")]
            parameter[ids] = values.to(parameter.device)


def save_model(model: Any, folder: Path, meta: dict[str, Any]) -> None:
    """Write a model with its optimiser state to `model.safetensors` and `model.json`.

    Args:
        model: The model.
        folder: Where the two files go.
        meta: Further JSON values to keep beside it.
    """
    arrays = folder / "model.safetensors"
    with replacing_file(arrays) as temporary:
        write_tensors(model_tensors(model), temporary)
    description = {
        "format": FORMAT,
        "sha256": checksum(arrays),
        "model": model.configuration(),
        "meta": meta,
    }
    write_json(folder / "model.json", description)


def read_arrays(path: Path) -> dict[str, Tensor]:
    """Read back what `write_arrays` wrote.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        return load_file(path)
    except (SafetensorError, OSError, RuntimeError) as error:
        if is_no_damage(error):
            raise
        raise DataError(path, f"damaged ({error})") from error


def load_model(folder: Path, device: torch.device | str = "cpu") -> tuple[Any, dict[str, Any]]:
    """Read back what `save_model` wrote.

    Raises:
        DataError: A file is missing, damaged or not a checkpoint of this package.
    """
    path = folder / "model.json"
    description, tensors = _read(folder)
    try:
        model = built_model(description["model"], tensors, device)
        return model, dict(description["meta"])
    except (AttributeError, KeyError, RuntimeError, TypeError, UserError, ValueError) as error:
        if is_no_damage(error):
            raise
        raise DataError(path, f"the arrays beside it are not its own ({error})") from error


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors of a model that `save_model` wrote.

    Raises:
        DataError: A file is missing, damaged or not a checkpoint of this package.
    """
    description, tensors = _read(folder)
    if not isinstance(description.get("model"), dict):
        raise DataError(folder / "model.json", "damaged: it does not say what the model is")
    return description["model"], tensors


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    path = folder / "model.json"
    if not path.exists():
        raise DataError(folder, "no checkpoint here (model.json is missing)")
    description = read_json(path)
    if description.get("format") != FORMAT:
        raise DataError(path, f"not a checkpoint of this version (expected format {FORMAT!r})")
    arrays = folder / "model.safetensors"
    if not arrays.is_file() or checksum(arrays) != description.get("sha256"):
        raise DataError(arrays, "damaged checkpoint: its checksum is not the one written beside it")
    return description, read_arrays(arrays)
