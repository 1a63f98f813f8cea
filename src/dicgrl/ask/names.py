"""Readable names of labels, and which label a user means by a text that may be either."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping
from typing import Self

from dicgrl.errors import DataError, UnknownLabelError, UserError, shown, shown_value
from dicgrl.graph import KnowledgeGraph, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows


class Names(UserDict[str, str]):
    """Readable names by label.

    Args:
        names: Names by label; both are text or whole numbers.

    Attributes:
        changes: How often a name was given or taken away.

    Raises:
        UserError: A label or name is something else, or cannot be written to files.

    Example:
        >>> names = Names({"Q103569": "Alien"})
        >>> names.of("Q103569"), names.of("Q1")
        ('Alien', 'Q1')
        >>> names.find("Alien", Vocabulary(["Q1", "Q103569"]))
        1
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._labels: dict[str, list[str]] | None = None  # by name, made when needed
        self.changes = 0
        self._changed: dict[str, int] = {}  # at which change a label was named last
        if names is not None and not isinstance(names, Mapping):
            raise UserError(
                f"names={shown_value(names)}: expected a dictionary of labels and their names"
            )
        super().__init__(names or {})
        self.settle(self.changes)

    def __setitem__(self, label: str, name: str) -> None:
        texts = as_label(label), as_label(name)
        check_labels(texts)
        if self.data.get(texts[0]) != texts[1]:
            self.data[texts[0]] = texts[1]
            self._note(texts[0])

    def __delitem__(self, label: str) -> None:
        super().__delitem__(label)
        self._note(label)

    def __copy__(self) -> Self:
        return type(self)(self.data)

    def _note(self, label: str) -> None:
        self._labels = None
        self.changes += 1
        self._changed[label] = self.changes

    def changed(self, since: int) -> dict[str, str | None]:
        """Labels that were named since a change, None for those that lost their names.

        Args:
            since: What `changes` was then; not before what was settled.
        """
        labels = [label for label, at in self._changed.items() if at > since]
        return {label: self.data.get(label) for label in labels}

    def settle(self, until: int) -> None:
        """Nobody asks any more what was changed before."""
        self._changed = {label: at for label, at in self._changed.items() if at > until}

    def amend(self, changed: Mapping[str, str | None]) -> None:
        """Change names as `changed` has told it; each counts as changed, whatever it was."""
        for label, name in changed.items():
            if name is not None:
                self.data[label] = name
            else:
                self.data.pop(label, None)
            self._note(label)

    def become(self, names: Mapping[str, str]) -> None:
        """Be these names and no others; what stays the same is no change."""
        for label, name in names.items():
            if self.data.get(label) != name:
                self[label] = name
        for label in self.data.keys() - names.keys():
            del self[label]

    def __ior__(self, other: Mapping[str, str]) -> Self:  # type: ignore[override,misc]
        self.update(other)
        return self

    def of(self, label: str) -> str:
        """The name of a label; the label itself where it has none."""
        return self.data.get(label, label)

    def called(self, name: str) -> list[str]:
        """All labels of that name."""
        labels = self._labels
        if labels is None:
            labels = {}
            for label, given in self.items():
                labels.setdefault(given, []).append(label)
            self._labels = labels  # when it is whole: other threads ask, too
        return labels.get(name, [])

    def triple(self, graph: KnowledgeGraph, row: IntArray) -> tuple[str, str, str]:
        """Names of a triple by ids, [3]; entities that share one are told apart by their labels."""
        (head, tail), (relation,) = (
            graph.entities.labels([int(row[0]), int(row[2])]),
            graph.relations.labels([int(row[1])]),
        )
        names = []
        for entity in (head, tail):
            name = self.of(entity)
            alone = len([one for one in self.called(name) if one in graph.entities]) < 2
            names.append(name if alone else f"{name} ({entity})")
        return names[0], self.of(relation), names[1]

    def find(self, text: str, vocabulary: Vocabulary) -> int:
        """The id of a label, or of the one label of that name.

        Raises:
            UserError: There is none, or more than one; the message names similar or all of them.
        """
        if text not in vocabulary:
            matches = [label for label in self.called(text) if label in vocabulary]
            if len(matches) > 1:
                some = ", ".join(map(shown, matches[:5]))
                raise UserError(f"{shown(text)} is the name of {len(matches)} labels: {some}")
            if not matches:
                raise vocabulary.unknown(text, lambda: self._known_in(vocabulary))
            text = matches[0]
        return int(vocabulary.ids([text])[0])

    def _known_in(self, vocabulary: Vocabulary) -> list[str]:
        return [name for label, name in self.items() if label in vocabulary]


def known_labels(
    file: SourceFile,
    names: Names,
    vocabulary: Vocabulary,
    on_unknown: Callable[[], None] | None = None,
) -> list[str]:
    """The labels or names in the lines of a file, one in each.

    Args:
        file: The file.
        names: Readable names.
        vocabulary: The labels.
        on_unknown: Told of each line with an unknown label, which is left out; without it the file
            is refused there.

    Raises:
        DataError: A label is unknown or ambiguous.
    """
    found = []
    for rows in read_rows(file, 1):
        for number, label in enumerate(rows.columns[0], rows.first_line):
            try:
                names.find(label, vocabulary)
            except UserError as error:
                if on_unknown and isinstance(error, UnknownLabelError):
                    on_unknown()
                    continue
                raise DataError(file.label, str(error), number) from None
            found.append(label)
    return found
