"""A learner's arrays for other programs: safetensors and NumPy, with labels as TSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    with _new(folder) as temporary:
        _write(names, arrays, labels, temporary)
        return sorted(path.name for path in temporary.iterdir())


def write_changed(
    arrays: Mapping[str, Tensor],
    rows: Mapping[str, Tensor],
    labels: Mapping[str, Vocabulary],
    gone: Mapping[str, Sequence[str]],
    names: Names,
    folder: Path,
) -> list[str]:
    """Write rows that changed to a new folder, for an upsert by label or id.

    As `write_vectors`, with the rows' ids as a further column of the `.tsv` files, and as arrays
    `NAME_ids`. Labels that are gone, also those of what was forgotten or merged into another, are
    in `NAME.removed.tsv`. Where pyarrow is installed, each is a `.parquet` file, too: id, label,
    name, vector.

    Args:
        arrays: The changed rows by name; whole arrays where they have no labels.
        rows: Ids of the rows, for arrays that have labels.
        labels: Labels of all rows.
        gone: Labels that have no row any more.
        names: Readable names.
        folder: Where to; there must be nothing yet.

    Returns:
        Names of the files.

    Raises:
        UserError: The folder is there, or it cannot be made.
    """
    with _new(folder) as temporary:
        ids = {f"{name}_ids": chosen for name, chosen in rows.items()}
        _write_arrays({**arrays, **ids}, temporary)
        for name, chosen in rows.items():
            known = labels[name].labels(chosen.numpy())
            told = [[str(i), x, names.of(x)] for i, x in zip(chosen.tolist(), known, strict=True)]
            _write_lines(temporary / f"{name}.tsv", told)
            if gone.get(name):
                _write_lines(temporary / f"{name}.removed.tsv", [[label] for label in gone[name]])
            _write_parquet(temporary / f"{name}.parquet", told, arrays[name])
        return sorted(path.name for path in temporary.iterdir())


@contextmanager
def _new(folder: Path) -> Iterator[Path]:
    """Where to write what becomes a folder once all of it is there."""
    check_place(folder.parent)
    if folder.exists():
        raise UserError(f"{folder}: is there already; choose another folder")
    with new_folder(folder) as temporary:
        yield temporary


def _write_arrays(arrays: Mapping[str, Tensor], place: Path) -> None:
    held = {name: array.cpu().contiguous() for name, array in arrays.items()}
    write_tensors(held, place / "vectors.safetensors")
    for name, array in held.items():
        np.save(place / f"{name}.npy", array.numpy(), allow_pickle=False)


def _write_lines(path: Path, rows: Iterable[list[str]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def _write_parquet(path: Path, rows: list[list[str]], vectors: Tensor) -> None:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        return
    flat = vectors.flatten(1).cpu().contiguous()
    width = flat.shape[1]
    values = arrow.FixedSizeListArray.from_arrays(arrow.array(flat.reshape(-1).numpy()), width)
    table = arrow.table(
        {
            "id": arrow.array([int(row[0]) for row in rows], arrow.int64()),
            "label": arrow.array([row[1] for row in rows], arrow.string()),
            "name": arrow.array([row[2] for row in rows], arrow.string()),
            "vector": values,
        }
    )
    parquet.write_table(table, path)


def _write(
    names: Names, arrays: Mapping[str, Tensor], labels: Mapping[str, Vocabulary], place: Path
) -> None:
    _write_arrays(arrays, place)
    for name, vocabulary in labels.items():
        lines = (f"{label}\t{names.of(label)}" for label in vocabulary)
        (place / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
