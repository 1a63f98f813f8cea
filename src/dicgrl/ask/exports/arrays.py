"""Arrays as they are: safetensors and NumPy, with labels as TSV."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.ask.exports.format import VectorFormat, write_lines
from dicgrl.ask.exports.tables import Parquet
from dicgrl.ask.exports.takeout import Takeout
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import UserError


class Numpy(VectorFormat, name="npy"):
    """A `.npy` file for each array; row i belongs to line i + 1 of the `.tsv` file of that name."""

    @override
    def write(self, takeout: Takeout, folder: Path) -> None:
        for name, array in held_arrays(takeout).items():
            np.save(folder / f"{name}.npy", array.numpy(), allow_pickle=False)
        write_labels(takeout, folder)


class Arrays(VectorFormat, name="arrays"):
    """All arrays in `vectors.safetensors` and as `.npy` files; labels as in `Numpy`.

    If only changed rows are exported, their ids are added, and a Parquet file if pyarrow is
    installed.
    """

    @override
    def write(self, takeout: Takeout, folder: Path) -> None:
        write_tensors(held_arrays(takeout), folder / "vectors.safetensors")
        Numpy().write(takeout, folder)
        if takeout.changed:
            with contextlib.suppress(UserError):  # it is not installed, and nobody asked for it
                Parquet().write(takeout, folder)


def held_arrays(takeout: Takeout) -> dict[str, Tensor]:
    """The arrays in memory; of rows that changed their ids, too."""
    arrays: Mapping[str, Tensor] = takeout.arrays
    if takeout.changed:
        ids = {
            f"{name}_ids": torch.tensor([row.id for row in rows], dtype=torch.int64)
            for name, rows in takeout.rows.items()
        }
        arrays = {**arrays, **ids}
    return {name: array.detach().cpu().contiguous() for name, array in arrays.items()}


def write_labels(takeout: Takeout, folder: Path) -> None:
    """Labels and names of the rows, their ids before them where only some rows are there."""
    for name, rows in takeout.rows.items():
        lines = ((row.label, row.name) for row in rows)
        told = ((str(row.id), row.label, row.name) for row in rows)
        write_lines(folder / f"{name}.tsv", told if takeout.changed else lines)
        if takeout.gone.get(name):
            gone = [[label] for label in takeout.gone[name]]
            write_lines(folder / f"{name}.removed.tsv", gone)
