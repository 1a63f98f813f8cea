"""What became of a run since a version: for a reader that takes in what is newer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dicgrl.store.content import Content
from dicgrl.store.records import StoredRun
from dicgrl.store.released import STRATEGY
from dicgrl.store.tensors import Delta, read_file
from dicgrl.store.version import RESTORE, ModelTensors, Version


@dataclass(frozen=True, slots=True)
class Update:
    """What a reader has to take in.

    Attributes:
        versions: The versions since, oldest first.
        contents: What each of them brought.
        deltas: Which rows of the model each of them changed; empty where the whole is given.
        names: Readable names now.
        model: All of the newest model, where it has no rows that change alone.
    """

    versions: Sequence[Version]
    contents: Sequence[Content]
    deltas: Sequence[Delta]
    names: Mapping[str, str]
    model: ModelTensors | None = None

    def of_strategy(self) -> list[Delta]:
        """What changed of the strategy's tensors alone."""
        return [
            Delta(
                {name: t for name, t in delta.tensors.items() if name.startswith(STRATEGY)},
                delta.removed,
            )
            for delta in self.deltas
        ]


def update_since(run: StoredRun, version: int, *, by_rows: bool = True) -> Update | None:
    """What a reader of a version has to take in to be the newest.

    Args:
        run: The stored run.
        version: The version that the reader is.
        by_rows: Whether its model has rows that change alone; else all of it is read.

    Returns:
        None where the changed rows are not known, or an earlier version was restored: then all of
        it has to be read.
    """
    newest = int(run.config["versions"])
    versions = [run.version(number) for number in range(version + 1, newest + 1)]
    if any(found.kind == RESTORE or found.parent != found.number - 1 for found in versions):
        return None
    deltas = _steps(run, version, newest) if by_rows else []
    model = None if by_rows else run.model(newest)
    if deltas is None or (not by_rows and model is None):
        return None
    return Update(versions, run.contents(versions), deltas, run.names(newest), model)


def _steps(run: StoredRun, version: int, newest: int) -> list[Delta] | None:
    """Which rows changed from a version to the newest; None where that was not kept.

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
