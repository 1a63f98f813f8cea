"""A learner's arrays for other programs: safetensors and NumPy, with labels as TSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from torch import Tensor

from dicgrl.ask.names import Names
from dicgrl.common.atomic import check_place, new_folder
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import UserError
from dicgrl.graph import Vocabulary


def write_vectors(
    arrays: Mapping[str, Tensor], labels: Mapping[str, Vocabulary], names: Names, folder: Path
) -> list[str]:
    """Write the vectors and labels of what was learned to a new folder.

    Knowledge graphs give `entities` [E, K, size] and `relations` [R, K or 1, size]; networks give
    `nodes` [N, width] and `classes` [C, width]. Disentangled models give what attention over
    components is made from, too: `attention` [R, K] where each relation has its own weights, else
    `attention_weight` (W2), whose parts docs/data.md names. Each is an array of
    `vectors.safetensors` and a `.npy` file; row i of vectors belongs to line i + 1 of the `.tsv` of
    that name.

    Args:
        arrays: The arrays by name.
        labels: Labels of the rows, for arrays that have any.
        names: Readable names.
        folder: Where to; there must be nothing yet.

    Returns:
        Names of the files.

    Raises:
        UserError: The folder is there, or it cannot be made.
    """
    check_place(folder.parent)
    if folder.exists():
        raise UserError(f"{folder}: is there already; choose another folder")
    with new_folder(folder) as temporary:
        _write(names, arrays, labels, temporary)
        return sorted(path.name for path in temporary.iterdir())


def _write(
    names: Names, arrays: Mapping[str, Tensor], labels: Mapping[str, Vocabulary], place: Path
) -> None:
    held = {name: array.cpu().contiguous() for name, array in arrays.items()}
    write_tensors(held, place / "vectors.safetensors")
    for name, array in held.items():
        np.save(place / f"{name}.npy", array.numpy(), allow_pickle=False)
    for name, vocabulary in labels.items():
        lines = (f"{label}\t{names.of(label)}" for label in vocabulary)
        (place / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
