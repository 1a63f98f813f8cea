"""Convert parts and changes to arrays and labels, and back, for storage and checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.graph import Part, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.change import Change

Content = tuple[dict[str, Tensor], dict[str, Any]]
"""Arrays by name, and labels that are new by kind."""

_BESIDES = "change/"  # before the names of a change's own arrays


class _Arrivals(Vocabulary):
    """The labels under which ids arrived, including repeated ones.

    Once an entity was renamed, its old label may arrive again as a new entity. A label then stands
    here twice, and finds the id that had it first.
    """

    @override
    def add(self, labels: Iterable[str]) -> IntArray:
        first = len(self._labels)
        self._labels.extend(labels)
        for number in range(first, len(self._labels)):
            self._index.setdefault(self._labels[number], number)
        return np.arange(first, len(self._labels))


class Following(Vocabulary):
    """The labels of a graph, followed by new ones that the graph itself does not have yet.

    Stored changes are read with it before the graph applies them, without copying the graph's
    labels. It always shows the graph's current labels: if a change renames an entity, later changes
    see the new name.

    Args:
        known: The labels of the graph.

    Example:
        >>> films = Vocabulary(["Alien"])
        >>> ahead = Following(films)
        >>> ahead.add(["Brazil"]), len(ahead), len(films)
        (array([1]), 2, 1)
        >>> films.rename(0, "Aliens")
        >>> ahead.labels([0, 1])
        ['Aliens', 'Brazil']
    """

    def __init__(self, known: Vocabulary) -> None:
        self._known, self._before = known, len(known)
        super().__init__(kind=known.kind)

    @override
    def add(self, labels: Iterable[str]) -> IntArray:
        first = len(self)
        self._labels.extend(labels)
        return np.arange(first, len(self))

    @override
    def labels(self, ids: Iterable[int] | IntArray) -> list[str]:
        positions = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        arrived = len(self._known)
        there = iter(self._known.labels([i for i in positions if i < arrived]))
        return [next(there) if i < arrived else self._labels[i - self._before] for i in positions]

    @override
    def __len__(self) -> int:
        return self._before + len(self._labels)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.labels(range(len(self))))

    __hash__ = None


def part_content(part: Part) -> Content:
    """Arrays and new labels of a part, in ids of the graph."""
    arrays = {name: _wide(array) for name, array in part.arrays().items()}
    return arrays, part.new_labels()


def _wide(array: npt.NDArray[Any]) -> Tensor:
    """A copy in which whole numbers have 64 bits, as they are stored."""
    dtype = np.int64 if array.dtype == np.int32 else array.dtype
    return torch.from_numpy(array.astype(dtype))


def parts_of(
    kind: type[Part],
    contents: Iterable[Content],
    known: Mapping[str, Vocabulary] | None = None,
    first: int = 0,
) -> Iterator[Part]:
    """The parts again, in the order in which they arrived; they share their vocabularies.

    Args:
        kind: What they are.
        contents: What `part_content` gave of each.
        known: The labels that were known before the first of them; none unless given.
        first: Number of the first of them.
    """
    vocabularies = known or {name: _Arrivals() for name in kind.vocabularies}
    for number, (tensors, labels) in enumerate(contents, first):
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        ranges = {
            name: _arrived(vocabulary, labels[name]) for name, vocabulary in vocabularies.items()
        }
        yield kind.from_arrays(number, vocabularies, ranges, arrays)


def _arrived(vocabulary: Vocabulary, labels: list[str]) -> range:
    """Ids of labels that were new when they arrived."""
    ids = vocabulary.add(labels)
    return range(len(vocabulary) - len(ids), len(vocabulary))


def change_content(change: Change) -> Content:
    """Arrays and labels of a change; those of its part have their own names."""
    arrays, labels = ({}, None) if change.part is None else part_content(change.part)
    for name, array in change.arrays.items():
        arrays[_BESIDES + name] = _wide(array)
    return arrays, {"part": labels, "change": dict(change.labels)}


def changes_of(
    kind: type[Part],
    contents: Iterable[tuple[str, Content]],
    known: Mapping[str, Vocabulary] | None = None,
    first: int = 0,
) -> list[Change]:
    """The changes again, in the order in which they were made.

    Args:
        kind: What arrives with a change.
        contents: The kind of each change, and what `change_content` gave.
        known: As of `parts_of`.
        first: As of `parts_of`.
    """
    found = list(contents)
    arrived = [(_plain(arrays), labels["part"]) for _, (arrays, labels) in found if labels["part"]]
    parts = parts_of(kind, arrived, known, first)
    return [
        Change(
            name,
            next(parts) if labels["part"] else None,
            {
                key.removeprefix(_BESIDES): tensor.numpy()
                for key, tensor in arrays.items()
                if key.startswith(_BESIDES)
            },
            labels["change"],
        )
        for name, (arrays, labels) in found
    ]


def _plain(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in arrays.items() if not name.startswith(_BESIDES)}


def same_content(one: Content, other: Content) -> bool:
    """Whether two parts brought the same."""
    (arrays, labels), (theirs, their_labels) = one, other
    return (
        labels == their_labels
        and arrays.keys() == theirs.keys()
        and all(torch.equal(arrays[name], theirs[name]) for name in arrays)
    )


def fingerprint(parts: Iterable[Part]) -> str:
    """A checksum of what parts bring: their arrays and labels."""
    digest = hashlib.sha256()
    for part in parts:
        arrays, labels = part_content(part)
        for name, array in arrays.items():
            digest.update(f"{name} {tuple(array.shape)} ".encode())
            digest.update(array.contiguous().numpy().tobytes())
        digest.update(json.dumps(labels).encode())
    return digest.hexdigest()
