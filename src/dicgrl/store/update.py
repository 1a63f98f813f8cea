"""What changed in a run since some version, for a reader that keeps up with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dicgrl.store.content import Content
from dicgrl.store.records import StoredRun
from dicgrl.store.released import STRATEGY
from dicgrl.store.state import Known
from dicgrl.store.tensors import Delta, read_file
from dicgrl.store.version import RESTORE, ModelTensors, Version


@dataclass(frozen=True, slots=True)
class Update:
    """Everything that a reader needs to become the newest version.

    Attributes:
        versions: The versions that are new to the reader, oldest first.
        contents: The facts and labels that each of them brought.
        deltas: The rows of the model that each of them changed; empty if `model` is given.
        names: All readable names; None if it is known which have changed.
        renamed: The names that have changed, None for those that are gone.
        model: The newest model as a whole, if it cannot be updated by rows.
        revised: Versions that the reader has, oldest first, where something may have been measured
            since; the last of them is the reader's newest.
    """

    versions: Sequence[Version]
    contents: Sequence[Content]
    deltas: Sequence[Delta]
    names: Mapping[str, str] | None
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    model: ModelTensors | None = None
    revised: Sequence[Version] = ()

    def of_strategy(self) -> list[Delta]:
        """What changed of the strategy's tensors alone."""
        return [
            Delta(
                {name: t for name, t in delta.tensors.items() if name.startswith(STRATEGY)},
                delta.removed,
            )
            for delta in self.deltas
        ]


class News(NamedTuple):
    """The newest version, and how a reader gets there.

    Attributes:
        version: Its number.
        stamp: Tells it from one of the same number in a copy of the run.
        edits: Tells what was written without a version.
        update: What the reader has to apply; None if it is up to date, or has to load everything.
    """

    version: int
    stamp: int
    edits: int = 0
    update: Update | None = None

    def is_known(self, known: Known) -> bool:
        """Whether a reader has all of it."""
        return (self.version, self.stamp, self.edits) == (known.version, known.stamp, known.edits)


def news_since(run: StoredRun, known: Known, *, by_rows: bool = True) -> News:
    """The changes that a reader of a version has to take in to reach the newest version.

    Args:
        run: The stored run.
        known: What the reader knows of it.
        by_rows: Whether its model has rows that change alone; else all of it is read.

    Returns:
        Without an update where the changed rows are not known, an earlier version was restored, or
        the run is another copy, which does not have the reader's version: then all has to be read.
    """
    newest = int(run.config["versions"])
    told = News(newest, run.stamp(newest), run.edits)
    if told.is_known(known) or run.stamp(known.version) != known.stamp:
        return told
    return told._replace(update=_update(run, known, newest, by_rows))


def _update(run: StoredRun, known: Known, newest: int, by_rows: bool) -> Update | None:
    versions = [run.version(number) for number in range(known.version + 1, newest + 1)]
    revised: list[Version] = []
    if run.edits != known.edits:
        first = max(1, known.seen)
        revised = [run.version(number) for number in range(first, known.version + 1)]
    if not all(map(_goes_on, [*revised[1:], *versions])):
        return None
    whole = bool(versions) and not by_rows
    deltas = _steps(run, known.version, newest) if by_rows else []
    model = run.model(newest) if whole else None
    if deltas is None or (whole and model is None):
        return None
    if revised and revised[0].kind == RESTORE:  # it has no measurements
        revised = revised[1:]
    there = run.named_at(known.edits)
    names = run.names(newest) if there is None else None
    renamed = {} if there is None or run.edits == known.edits else run.renamed(there)
    contents = run.contents(versions)
    return Update(versions, contents, deltas, names, renamed, model, revised)


def _goes_on(version: Version) -> bool:
    """Whether a version was made from the one before."""
    return version.kind != RESTORE and version.parent == version.number - 1


def _steps(run: StoredRun, version: int, newest: int) -> list[Delta] | None:
    """Which rows changed from a version to the newest; None if that was not kept.

    Several changes that were saved at once have one delta, that of the last of them.
    """
    following = {file.parent: file for file in run.files() if file.parent}
    found = []
    while version < newest:
        file = following.get(version)
        if file is None or file.version <= version:
            return None
        found.append(read_file(run.folder, file, run.database.identity))
        version = file.version
    return found
