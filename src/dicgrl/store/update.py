"""What became of a run since a version: for a reader that takes in what is newer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dicgrl.store.content import Content
from dicgrl.store.records import StoredRun
from dicgrl.store.released import STRATEGY
from dicgrl.store.tensors import Delta
from dicgrl.store.version import RESTORE, Version


@dataclass(frozen=True, slots=True)
class Update:
    """What a reader has to take in.

    Attributes:
        versions: The versions since, oldest first.
        contents: What each of them brought.
        deltas: Which rows of the model each of them changed.
        names: Readable names now.
    """

    versions: Sequence[Version]
    contents: Sequence[Content]
    deltas: Sequence[Delta]
    names: Mapping[str, str]

    def of_strategy(self) -> list[Delta]:
        """What changed of the strategy's tensors alone."""
        return [
            Delta(
                {name: t for name, t in delta.tensors.items() if name.startswith(STRATEGY)},
                delta.removed,
            )
            for delta in self.deltas
        ]


def update_since(run: StoredRun, version: int) -> Update | None:
    """What a reader of a version has to take in to be the newest.

    Returns:
        None where the changed rows are not known, or an earlier version was restored: then all of
        it has to be read.
    """
    newest = int(run.config["versions"])
    versions, deltas = [], []
    for number in range(version + 1, newest + 1):
        found = run.version(number)
        step = run.step(number, number - 1)
        if found.kind == RESTORE or found.parent != number - 1 or step is None:
            return None
        versions.append(found)
        deltas.append(step)
    contents = [run.content(each) for each in versions]
    return Update(versions, contents, deltas, run.names(newest))
