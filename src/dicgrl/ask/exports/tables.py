"""Vectors together with their labels: as Parquet, and as the text that word2vec programs read.

Rows of entities that were forgotten, or merged into others, are left out.

pyarrow is optional: `pip install 'dicgrl[arrow]'`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from dicgrl.ask.exports.format import VectorFormat, write_lines
from dicgrl.ask.exports.neighbours import Neighbours, nearest_rows
from dicgrl.ask.exports.takeout import Takeout
from dicgrl.common.optional import needed
from dicgrl.graph.arrays import FloatArray

_CHEAP = 20_000  # rows whose neighbours are found within seconds
_USUAL = 10  # neighbours


class Parquet(VectorFormat, name="parquet"):
    """A file for entities and one for relations, with the columns id, label, name and vector.

    If there is a map, `x` and `y` are the position on it. `neighbors` holds the nearest rows of the
    file and their distances (1 - cosine), in the form that Embedding Atlas reads.
    """

    heeds = ("neighbours",)

    @override
    def write(self, takeout: Takeout, folder: Path) -> None:
        arrow = needed("pyarrow", "arrow", "Parquet")
        parquet = needed("pyarrow.parquet", "arrow", "Parquet")
        for name in takeout.rows:
            rows, vectors = takeout.answering(name)
            columns = {
                "id": arrow.array([row.id for row in rows], arrow.int64()),
                "label": arrow.array([row.label for row in rows], arrow.string()),
                "name": arrow.array([row.name for row in rows], arrow.string()),
                "vector": _fixed(arrow, vectors),
                **_places(arrow, takeout, name),
            }
            count = _how_many(takeout, len(rows))
            if count and len(rows) > 1:
                columns["neighbors"] = _neighbours(arrow, nearest_rows(vectors, count))
            parquet.write_table(arrow.table(columns), folder / f"{name}.parquet")
            if takeout.gone.get(name):
                gone = [[label] for label in takeout.gone[name]]
                write_lines(folder / f"{name}.removed.tsv", gone)


class Word2vec(VectorFormat, name="word2vec"):
    """Text: a line with the number and length of the vectors, then a label and a vector per line.

    Spaces in labels are written as `_`. If two labels would become equal, `#ID` is appended.
    """

    @override
    def write(self, takeout: Takeout, folder: Path) -> None:
        for name in takeout.rows:
            rows, vectors = takeout.answering(name)
            taken: set[str] = set()
            with (folder / f"{name}.txt").open("w", encoding="utf-8", newline="\n") as file:
                file.write(f"{len(rows)} {vectors.shape[1]}\n")
                for row, vector in zip(rows, vectors.tolist(), strict=True):
                    word = "_".join(row.label.split()) or "_"
                    while word in taken:
                        word += f"#{row.id}"
                    taken.add(word)
                    file.write(f"{word} {' '.join(f'{number:.9g}' for number in vector)}\n")


def _how_many(takeout: Takeout, rows: int) -> int:
    """How many neighbours of each row are told; of rows that changed none, as others did not."""
    if takeout.neighbours is not None:
        return takeout.neighbours
    return _USUAL if rows <= _CHEAP and not takeout.changed else 0


def _fixed(arrow: Any, vectors: FloatArray) -> Any:
    return arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.ravel()), vectors.shape[1])


def _places(arrow: Any, takeout: Takeout, name: str) -> dict[str, Any]:
    ids = np.array([row.id for row in takeout.rows[name]], dtype=np.int64)
    places = None if takeout.places is None else takeout.places(name, ids)
    if places is None:
        return {}
    x, y = np.asarray(places, dtype=np.float32)[takeout.answers[name]].T
    return {"x": arrow.array(x), "y": arrow.array(y)}


def _neighbours(arrow: Any, found: Neighbours) -> Any:
    count = found.rows.shape[1]
    starts = arrow.array(np.arange(0, found.rows.size + 1, count, dtype=np.int32))
    lists = [
        arrow.ListArray.from_arrays(starts, arrow.array(values.ravel()))
        for values in (found.rows, found.distances)
    ]
    return arrow.StructArray.from_arrays(lists, ["ids", "distances"])
