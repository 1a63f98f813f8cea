"""A column of labels as codes: a list of distinct labels, and the position of each row's label.

Columnar formats provide labels this way. Python then only handles distinct labels, which are few
compared with the rows of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from typing_extensions import override

from dicgrl.graph.arrays import Groups, IntArray
from dicgrl.graph.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Coded(Sequence[str]):
    """Labels of n rows.

    Attributes:
        labels: The distinct labels. Several columns may share a list, and it may grow while further
            blocks of a file are read.
        codes: Index of each row's label in the list, int64 [n].

    Example:
        >>> column = Coded(["horror", "satire"], np.array([1, 0, 1]))
        >>> list(column), column[-1], len(column)
        (['satire', 'horror', 'satire'], 'satire', 3)
    """

    labels: list[str]
    codes: IntArray

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Coded: ...
    @override
    def __getitem__(self, at: int | slice) -> str | Coded:
        if isinstance(at, slice):
            return Coded(self.labels, self.codes[at])
        return self.labels[int(self.codes[at])]

    @override
    def __len__(self) -> int:
        return len(self.codes)

    @override
    def __iter__(self) -> Iterator[str]:
        return map(self.labels.__getitem__, self.codes.tolist())


def coded_numbers(triples: object) -> list[Coded] | None:
    """Columns of an array of whole numbers [n, 3], whose digits are the labels.

    None if it is anything else, whose rows have to be handled one by one.

    Example:
        >>> [list(column) for column in coded_numbers(np.array([[7, 0, 8], [8, 0, 7]]))]
        [['7', '8'], ['0', '0'], ['8', '7']]
    """
    if not isinstance(triples, np.ndarray) or triples.ndim != 2 or triples.shape[1] != 3:
        return None
    if triples.dtype.kind not in "iu" or not np.can_cast(triples.dtype, np.int64):
        return None
    columns = [Groups(column.astype(np.int64)) for column in triples.T]
    return [Coded(list(map(str, each.values.tolist())), each.group) for each in columns]


def add_in_order(vocabulary: Vocabulary, *columns: Coded) -> list[IntArray]:
    """Ids of the labels of columns of the same length; new labels are added row by row.

    Example:
        >>> heads = Coded(["a", "b"], np.array([1, 0]))
        >>> tails = Coded(["b", "c"], np.array([1, 0]))
        >>> films = Vocabulary()
        >>> [ids.tolist() for ids in add_in_order(films, heads, tails)], list(films)
        ([[0, 2], [1, 0]], ['b', 'c', 'a'])
    """
    local = Vocabulary()  # a label may occur in several columns
    codes = [local.add(column.labels)[column.codes] for column in columns]
    every = np.stack(codes, axis=1).ravel() if codes else np.empty(0, np.int64)
    first = np.full(len(local), len(every))
    first[every[::-1]] = np.arange(len(every))[::-1]  # the last assignment counts: the first place
    order = np.argsort(first, kind="stable")[: int((first < len(every)).sum())]
    ids = np.full(len(local), -1, dtype=np.int64)
    ids[order] = vocabulary.add(local.labels(order))
    return [ids[column] for column in codes]


class OrderedIds:
    """Ids of the labels of columns, like `add_in_order`, for several blocks.

    If blocks share a growing list of labels, each label is looked up only once.

    Args:
        vocabulary: Provides the ids; new labels are added to it.

    Example:
        >>> labels, films = ["b", "a"], Vocabulary()
        >>> ids = OrderedIds(films)
        >>> ids.of(Coded(labels, np.array([1, 0])), Coded(labels, np.array([1, 1])))
        [array([0, 1]), array([0, 0])]
        >>> labels.append("c")
        >>> ids.of(Coded(labels, np.array([2, 0])))
        [array([2, 1])]
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._labels: list[str] | None = None
        self._ids = np.empty(0, np.int64)  # ids of these labels; -1 if no row has used one yet

    def of(self, *columns: Coded) -> list[IntArray]:
        """Ids of columns of the same length; new labels are added row by row."""
        labels = columns[0].labels
        if any(column.labels is not labels for column in columns):
            return add_in_order(self._vocabulary, *columns)
        if labels is not self._labels:
            self._labels, self._ids = labels, np.empty(0, np.int64)
        more = np.full(len(labels) - len(self._ids), -1, dtype=np.int64)
        self._ids = np.concatenate([self._ids, more])
        every = np.stack([column.codes for column in columns], axis=1).ravel()
        unseen = np.flatnonzero(self._ids[every] < 0)
        first = np.full(len(labels), len(every))
        first[every[unseen[::-1]]] = unseen[::-1]  # the last assignment counts: the first place
        arriving = np.flatnonzero(first < len(every))
        arriving = arriving[np.argsort(first[arriving])]
        self._ids[arriving] = self._vocabulary.add(labels[at] for at in arriving.tolist())
        return [self._ids[column.codes] for column in columns]
