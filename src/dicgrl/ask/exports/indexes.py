"""Vector indexes that follow a run: built once, then told what changed.

usearch and FAISS are optional: `pip install 'dicgrl[index]'`. A folder holds the index, whose keys
are ids, the labels of these (id, label, name) and `index.json`, which says of which version all of
this is. It is written last: whoever is killed before that can say the same again, as to put a row
in or take it out twice is as good as once.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from dicgrl.ask.exports.format import new_place, write_lines
from dicgrl.ask.exports.takeout import Row, Takeout
from dicgrl.common.atomic import as_json, replacing_file
from dicgrl.common.optional import needed
from dicgrl.common.registry import register
from dicgrl.errors import DataError, UserError, unknown_name
from dicgrl.graph.arrays import FloatArray, IntArray

_ABOUT = "index.json"
_TOLD = ("index", "of", "width", "version", "digest", "identity")


class VectorIndex(ABC):
    """Vectors by key, searched by cosine; a subclass under a name is found by it.

    Args:
        width: Length of the vectors.
    """

    registry: ClassVar[dict[str, type[VectorIndex]]] = {}
    name: ClassVar[str]

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
    def add(self, keys: IntArray, vectors: FloatArray) -> None:
        """Put keys in that are not there."""

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
    def add(self, keys: IntArray, vectors: FloatArray) -> None:
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
    def add(self, keys: IntArray, vectors: FloatArray) -> None:
        if len(keys):
            self._index.add_with_ids(_directions(vectors), keys)

    @override
    def __len__(self) -> int:
        return int(self._index.ntotal)

    @override
    def search(self, vector: FloatArray, k: int) -> list[int]:
        _, keys = self._index.search(_directions(vector[None]), k)
        return [int(key) for key in keys[0] if key >= 0]


def _directions(vectors: FloatArray) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def index_named(name: str) -> type[VectorIndex]:
    """The kind of index of that name.

    Raises:
        UserError: There is none.
    """
    if name not in VectorIndex.registry:
        raise unknown_name("index", name, VectorIndex.registry)
    return VectorIndex.registry[name]


def build_index(takeout: Takeout, folder: Path, name: str, of: str) -> list[str]:
    """Build an index in a new folder.

    Args:
        takeout: All rows.
        folder: Where to; there must be nothing yet, or an index, which is refused.
        name: The kind of index.
        of: What is in it, such as entities.

    Returns:
        Names of the files.

    Raises:
        UserError: There is something already, or a library is missing.
    """
    kind = index_named(name)
    if (folder / _ABOUT).exists():
        version = index_version(folder, name)
        raise UserError(
            f"{folder}: holds an index of version {version}; --since {version} updates it"
        )
    rows, vectors = takeout.answering(of)
    index = kind(vectors.shape[1])
    index.add(_keys(rows), vectors)
    with new_place(folder) as temporary:
        _write(index, rows, takeout, temporary, of)
        return sorted(path.name for path in temporary.iterdir())


def update_index(
    takeout: Takeout, folder: Path, name: str, of: str, retired: IntArray
) -> list[str]:
    """Put the rows that changed into an index, and take out those that are no answers any more.

    Args:
        takeout: The rows that changed.
        folder: Where the index is.
        name: The kind of index.
        of: What is in it.
        retired: Ids of all that is no answer.

    Returns:
        Names of the files.

    Raises:
        DataError: The index is damaged.
        UserError: It is of another kind, or another run.
    """
    about = _about(folder, name)
    rows, vectors = takeout.answering(of)
    file = folder / f"{of}.{name}"
    if about["of"] != of or about["width"] != vectors.shape[1]:
        raise UserError(
            f"{folder}: holds {about['of']} of length {about['width']}; expected {of} of length "
            f"{vectors.shape[1]}"
        )
    if about["identity"] != takeout.about.get("identity", ""):
        raise UserError(f"{folder}: the index is of another run")
    if _digest(file) != about["digest"]:
        raise DataError(file, f"not the file that {_ABOUT} speaks of; build the index anew")
    index = index_named(name)(about["width"])
    index.read(file)
    keys = _keys(rows)
    index.remove(np.union1d(keys, retired))
    index.add(keys, vectors)
    gone = set(retired.tolist())
    told = {row.id: row for row in _told(folder / f"{of}.tsv") if row.id not in gone}
    told |= {row.id: row for row in rows}
    _write(index, [told[key] for key in sorted(told)], takeout, folder, of)
    return sorted(path.name for path in folder.iterdir())


def index_version(folder: Path, name: str) -> int:
    """The version of the run that an index is of.

    Raises:
        DataError: There is no index, or it is of another kind.
    """
    return int(_about(folder, name)["version"])


def _about(folder: Path, name: str) -> dict[str, Any]:
    place = folder / _ABOUT
    try:
        about = json.loads(place.read_text(encoding="utf-8"))
        found = {key: about[key] for key in _TOLD}
    except OSError:
        raise UserError(f"{folder}: holds no index; without --since one is built") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(place, f"damaged ({error})") from None
    if found["index"] != name:
        raise UserError(f"{folder}: the index is of {found['index']}, not {name}")
    return found


def _write(index: VectorIndex, rows: list[Row], takeout: Takeout, folder: Path, of: str) -> None:
    with replacing_file(folder / f"{of}.tsv") as temporary:
        write_lines(temporary, ((str(row.id), row.label, row.name) for row in rows))
    file = folder / f"{of}.{index.name}"
    with replacing_file(file) as temporary:
        index.write(temporary)
        digest = _digest(temporary)
    about = {
        "index": index.name,
        "of": of,
        "rows": len(index),
        "width": takeout.arrays[of].flatten(1).shape[1],
        "metric": "cosine",
        "version": takeout.about.get("version", 0),
        "identity": takeout.about.get("identity", ""),
        "digest": digest,
    }
    with replacing_file(folder / _ABOUT) as temporary:
        temporary.write_text(as_json(about), encoding="utf-8")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _keys(rows: list[Row]) -> IntArray:
    return np.array([row.id for row in rows], dtype=np.int64)


def _told(path: Path) -> list[Row]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0].isdecimal():
            raise DataError(path, "expected id, label and name", number)
        found.append(Row(int(fields[0]), fields[1], fields[2]))
    return found
