"""Labels <-> ids; an id never changes once it is assigned, a label may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dicgrl.errors import UnknownLabelError, UserError, nearest, shown
from dicgrl.graph.arrays import IntArray, distinct

_SUGGEST_UP_TO = 200_000  # beyond this many labels a search for similar ones takes seconds


class _Index(dict[str, int]):
    """A dict that assigns the next id to a new label."""

    def __missing__(self, label: str) -> int:
        self[label] = number = len(self)
        return number


class Vocabulary:
    """Labels in order of arrival; a label's id is its position.

    Args:
        labels: The first labels; a repeated one keeps its first id.
        kind: What the labels name ("entity", "relation", ...), for messages.

    Example:
        >>> films = Vocabulary(["Alien", "Brazil"], kind="film")
        >>> films.add(["Brazil", "Casablanca"])
        array([1, 2])
        >>> films.ids(["Casablanca", "Alien"])
        array([2, 0])
        >>> films.labels([2])
        ['Casablanca']
    """

    def __init__(self, labels: Iterable[str] = (), kind: str = "label") -> None:
        self.kind = kind
        self._index = _Index()
        self._labels: list[str] = []
        self._first: dict[int, str] = {}  # original labels of renamed ids
        self._merged: dict[str, int] = {}  # labels of merged ids, with the id that stayed
        self.add(labels)

    def copy(self) -> Vocabulary:
        """A copy that can grow independently."""
        made = Vocabulary(kind=self.kind)
        made._index.update(self._index)
        made._labels = list(self._labels)
        made._first, made._merged = dict(self._first), dict(self._merged)
        return made

    def add(self, labels: Iterable[str]) -> IntArray:
        """Ids of the labels, in their order; unseen labels get the next ids."""
        before = len(self._labels)  # not of the index: an iterable that failed may have left keys
        ids = np.fromiter(map(self._index.__getitem__, labels), dtype=np.int64)
        added = len(self._index) - before
        if added:
            # New keys stand at the end of the dict; walking back costs what was added.
            self._labels.extend(reversed(list(islice(reversed(self._index), added))))
        return ids

    def ids(self, labels: Iterable[str]) -> IntArray:
        """Ids of known labels, in their order.

        Raises:
            UserError: A label is unknown; the message names it and similar ones.
        """
        labels = list(labels)
        get = self._index.get
        ids = np.fromiter((get(label, -1) for label in labels), dtype=np.int64, count=len(labels))
        if (ids < 0).any():
            raise self.unknown(labels[int(np.argmax(ids < 0))])
        return ids

    def known_ids(self, labels: Iterable[str]) -> IntArray:
        """Ids of labels, in their order; -1 for those that are not known.

        Example:
            >>> Vocabulary(["Alien"]).known_ids(["Brazil", "Alien"])
            array([-1,  0])
        """
        get = self._index.get
        return np.fromiter((get(label, -1) for label in labels), dtype=np.int64)

    def unknown(self, label: str, names: Callable[[], Iterable[str]] = tuple) -> UnknownLabelError:
        """The error for an unknown label, which suggests similar labels and readable names.

        Args:
            label: The label.
            names: Gives the readable names; they are asked for when the message is read.
        """

        def hint() -> str:
            known = [*self._labels, *names()]
            close = nearest(label, known) if len(known) <= _SUGGEST_UP_TO else []
            return f"; did you mean {', '.join(map(repr, close))}?" if close else ""

        return UnknownLabelError(f"unknown {self.kind} {shown(label)}", hint)

    def append(self, labels: Iterable[str]) -> range:
        """Assign the next ids to stored labels, none of which is known.

        Raises:
            ValueError: One of them is known.
        """
        known, labels = len(self._labels), list(labels)
        self.add(labels)
        if len(self._labels) != known + len(labels):
            raise ValueError(f"a {self.kind} that is new is known already")
        return range(known, len(self._labels))

    def rename(self, number: int, new: str) -> None:
        """Give an id another label; the old one is unknown from now on.

        Raises:
            UserError: There is such a label already.

        Example:
            >>> films = Vocabulary(["Alien", "Aliens"])
            >>> films.rename(1, "Alien 2")
            >>> films.ids(["Alien 2"]), "Aliens" in films
            (array([1]), False)
        """
        if new in self._index:
            raise UserError(f"{self.kind} {shown(new)} is known already: merge the two instead")
        old = self._labels[number]
        self._first.setdefault(number, old)
        del self._index[old]
        self._index[new] = number
        self._labels[number] = new

    def merge(self, kept: int, gone: int) -> None:
        """Let all labels that found one id find another; the id itself stays.

        Example:
            >>> films = Vocabulary(["Alien", "Alien (1979)"])
            >>> films.merge(0, 1)
            >>> films.ids(["Alien (1979)"]), films.labels([1])
            (array([0]), ['Alien (1979)'])
        """
        names = [label for label, number in self._merged.items() if number == gone]
        for label in [self._labels[gone], *names]:
            self._index[label] = self._merged[label] = kept

    def first_labels(self, ids: Iterable[int]) -> list[str]:
        """What the ids were called when they arrived, in their order."""
        return [self._first.get(i, self._labels[i]) for i in ids]

    @property
    def merged(self) -> dict[str, int]:
        """Labels of what was merged into something else, and the ids that they find."""
        return dict(self._merged)

    def adopt(self, other: Vocabulary, *ids: IntArray) -> Translation:
        """Add the labels of another vocabulary's ids, in arrays, lower ids first.

        The cost follows the number of ids, not the size of either vocabulary.

        Example:
            >>> ours, theirs = Vocabulary(["b"]), Vocabulary(["a", "b", "c"])
            >>> ours.adopt(theirs, np.array([2, 1]))(np.array([1, 2, 2]))
            array([0, 1, 1])
        """
        once = distinct(*ids)
        return Translation(once, self.add(other.labels(once)))

    def found(self, other: Vocabulary, ids: IntArray) -> IntArray:
        """Our ids of another vocabulary's ids, any shape; -1 for labels that are not known here.

        Example:
            >>> Vocabulary(["b"]).found(Vocabulary(["a", "b"]), np.array([1, 0, 1]))
            array([ 0, -1,  0])
        """
        once, get = distinct(ids.ravel()), self._index.get
        ours = np.fromiter((get(label, -1) for label in other.labels(once)), dtype=np.int64)
        return Translation(once, ours)(ids)

    def labels(self, ids: Iterable[int] | IntArray) -> list[str]:
        """Labels of the ids, in their order."""
        positions = ids.tolist() if isinstance(ids, np.ndarray) else ids
        return [self._labels[i] for i in positions]

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __contains__(self, label: object) -> bool:
        return label in self._index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._labels == other._labels

    __hash__ = None  # type: ignore[assignment]  # it grows, so it has no stable hash

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} labels, kind={self.kind!r})"


@dataclass(frozen=True, slots=True)
class Translation:
    """Ids of one vocabulary in terms of another; only the ids it was made for are known."""

    theirs: IntArray  # sorted, [n]
    ours: IntArray  # [n]

    def __call__(self, ids: IntArray) -> IntArray:
        """Our ids of their ids, any shape; the same array where they are the same."""
        if len(self.theirs) and self.theirs[-1] - self.theirs[0] + 1 == len(self.theirs):
            if np.array_equal(self.ours, self.theirs):
                return ids
            found: IntArray = self.ours[ids - self.theirs[0]]
            return found
        return self.ours[np.searchsorted(self.theirs, ids)]
