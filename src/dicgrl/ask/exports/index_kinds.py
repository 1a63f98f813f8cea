"""Kinds of vector indexes: usearch and FAISS, which are files, and a table of LanceDB.

All are optional: `pip install 'dicgrl[index]'` and `pip install 'dicgrl[lance]'`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from dicgrl.ask.exports.takeout import Row
from dicgrl.common.optional import needed
from dicgrl.common.registry import register
from dicgrl.errors import DataError, unknown_name
from dicgrl.graph.arrays import FloatArray, IntArray

_AT_ONCE = 10_000  # keys of one condition


class VectorIndex(ABC):
    """Vectors by key, searched by cosine. A subclass with a name can be asked for by that name.

    Args:
        width: Length of the vectors.

    Attributes:
        in_place: Whether changes are made directly, and atomically, in the stored index. If not,
            the whole index is written to a new file.
    """

    registry: ClassVar[dict[str, type[VectorIndex]]] = {}
    name: ClassVar[str]
    in_place: ClassVar[bool] = False

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        register(VectorIndex.registry, "index", name, cls)
        cls.name = name

    @abstractmethod
    def __init__(self, width: int) -> None:
        """An index that holds nothing."""

    @abstractmethod
    def read(self, path: Path) -> None:
        """Take what a file holds."""

    @abstractmethod
    def write(self, path: Path) -> None:
        """Write all to a file."""

    @abstractmethod
    def remove(self, keys: IntArray) -> None:
        """Take keys out, those that are there."""

    @abstractmethod
    def put(self, rows: list[Row], vectors: FloatArray) -> None:
        """Put rows in, by their ids, in place of those that are there."""

    @abstractmethod
    def __len__(self) -> int:
        """How many keys there are."""

    @abstractmethod
    def search(self, vector: FloatArray, k: int) -> list[int]:
        """The keys of the k vectors that point most nearly in the same direction."""


class Usearch(VectorIndex, name="usearch"):
    """A graph of neighbours (HNSW)."""

    def __init__(self, width: int) -> None:
        library = needed("usearch.index", "index", "--index usearch")
        self._index: Any = library.Index(ndim=width, metric="cos", dtype="f32")

    @override
    def read(self, path: Path) -> None:
        self._index.load(str(path))

    @override
    def write(self, path: Path) -> None:
        self._index.save(str(path))

    @override
    def remove(self, keys: IntArray) -> None:
        there = keys[np.asarray(self._index.contains(keys.astype(np.uint64)), dtype=bool)]
        if len(there):
            self._index.remove(there.astype(np.uint64))

    @override
    def put(self, rows: list[Row], vectors: FloatArray) -> None:
        keys = _keys(rows)
        self.remove(keys)
        if len(keys):
            self._index.add(keys.astype(np.uint64), vectors)

    @override
    def __len__(self) -> int:
        return len(self._index)

    @override
    def search(self, vector: FloatArray, k: int) -> list[int]:
        return [int(key) for key in self._index.search(vector, k).keys]


class Faiss(VectorIndex, name="faiss"):
    """All vectors, of length 1, compared one by one: slower, and exact."""

    def __init__(self, width: int) -> None:
        self._library: Any = needed("faiss", "index", "--index faiss")
        self._index: Any = self._library.IndexIDMap2(self._library.IndexFlatIP(width))

    @override
    def read(self, path: Path) -> None:
        self._index = self._library.read_index(str(path))

    @override
    def write(self, path: Path) -> None:
        self._library.write_index(self._index, str(path))

    @override
    def remove(self, keys: IntArray) -> None:
        if len(keys):
            self._index.remove_ids(keys)

    @override
    def put(self, rows: list[Row], vectors: FloatArray) -> None:
        keys = _keys(rows)
        self.remove(keys)
        if len(keys):
            self._index.add_with_ids(_directions(vectors), keys)

    @override
    def __len__(self) -> int:
        return int(self._index.ntotal)

    @override
    def search(self, vector: FloatArray, k: int) -> list[int]:
        _, keys = self._index.search(_directions(vector[None]), k)
        return [int(key) for key in keys[0] if key >= 0]


class Lance(VectorIndex, name="lance"):
    """A table of LanceDB, with labels and names beside the vectors; exact until it is indexed."""

    in_place = True

    def __init__(self, width: int) -> None:
        self._library: Any = needed("lancedb", "lance", "--index lance")
        self._arrow: Any = needed("pyarrow", "lance", "--index lance")
        self._width = width
        self._table: Any = None
        self._place = Path()
        self._first: Any = self._rows([], np.empty((0, width), np.float32))

    @override
    def read(self, path: Path) -> None:
        self._place = path
        with _damage(path):
            self._table = self._library.connect(str(path.parent)).open_table(path.stem)
        if self._table.schema.names != self._first.schema.names:
            raise DataError(path, "not a table that dicgrl made; build the index again")

    @override
    def write(self, path: Path) -> None:
        with _damage(path):
            if self._table is None:
                database = self._library.connect(str(path.parent))
                self._table = database.create_table(path.stem, self._first)
            else:
                self._table.optimize()  # small files of many updates become one

    @override
    def remove(self, keys: IntArray) -> None:
        for first in range(0, len(keys), _AT_ONCE):
            listed = ", ".join(map(str, keys[first : first + _AT_ONCE].tolist()))
            with _damage(self._place):
                self._table.delete(f"id IN ({listed})")

    @override
    def put(self, rows: list[Row], vectors: FloatArray) -> None:
        found = self._rows(rows, vectors)
        if self._table is None:
            self._first = found
        elif rows:
            with _damage(self._place):
                merge = self._table.merge_insert("id").when_matched_update_all()
                merge.when_not_matched_insert_all().execute(found)

    @override
    def __len__(self) -> int:
        return int(self._table.count_rows())

    @override
    def search(self, vector: FloatArray, k: int) -> list[int]:
        found = self._table.search(vector).metric("cosine").limit(k).to_list()
        return [int(row["id"]) for row in found]

    def _rows(self, rows: list[Row], vectors: FloatArray) -> Any:
        arrow = self._arrow
        flat = arrow.array(vectors.ravel(), arrow.float32())
        columns = {
            "id": arrow.array([row.id for row in rows], arrow.int64()),
            "label": arrow.array([row.label for row in rows], arrow.string()),
            "name": arrow.array([row.name for row in rows], arrow.string()),
            "vector": arrow.FixedSizeListArray.from_arrays(flat, self._width),
        }
        return arrow.table(columns)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """One message for whatever LanceDB says of a table that it cannot read or write."""
    try:
        yield
    except (ValueError, RuntimeError, OSError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            path, f"damaged, or cannot be written ({said}); build the index again"
        ) from error


def _keys(rows: list[Row]) -> IntArray:
    return np.array([row.id for row in rows], dtype=np.int64)


def _directions(vectors: FloatArray) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def index_named(name: str) -> type[VectorIndex]:
    """The kind of index of that name.

    Raises:
        UserError: There is none.
    """
    if not isinstance(name, str) or name not in VectorIndex.registry:
        raise unknown_name("index", name, VectorIndex.registry)
    return VectorIndex.registry[name]
