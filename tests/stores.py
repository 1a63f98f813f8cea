"""Looking into stored runs, and damaging them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from dicgrl.store.database import Database, opened
from dicgrl.store.records import StoredRun
from tests.tiny import learner_of, taught

FILES = {"store.sqlite", "tensors", "results.json", "trace.jsonl"}
"""What a run leaves in its folder."""


def named_run(folder: Path) -> Path:
    """A run of two versions with readable names."""
    learner = taught(learner_of("links", "fresh"), 1, evaluate=False)
    learner.names = {"e1": "one", "e2": "two"}
    learner.save(folder)
    taught(learner, 2, evaluate=False).save(folder)
    return folder


@contextmanager
def stored(folder: Path | str) -> Iterator[StoredRun]:
    with opened(Path(folder) / "store.sqlite") as database:
        yield StoredRun(database)


def kept(folder: Path | str) -> list[int]:
    """The versions that have a model in a run folder; its files are those that they need."""
    with stored(folder) as run:
        there = {path.name for path in run.folder.iterdir()}
        assert there == {file.name for file in run.files()}
        for number in run.models():
            assert run.model(number) is not None
        return sorted(run.models())


def tensors_of(folder: Path | str, number: int) -> dict[str, Tensor]:
    """All tensors of a version, those of its strategy included."""
    with stored(folder) as run:
        model = run.model(number)
        assert model is not None
        return {name: tensor.clone() for name, tensor in model.tensors.items()}


def same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and one[name].numpy().tobytes() == other[name].numpy().tobytes()
        for name in one
    )


def assert_same_stores(one: Path, other: Path) -> None:
    """The same versions of the same facts, and the same models, bit for bit."""
    with stored(one) as mine, stored(other) as theirs:
        versions = mine.versions(), theirs.versions()
        for each in zip(*versions, strict=True):
            kinds, datas = ({v.kind for v in each}, {v.data for v in each})
            assert len(kinds) == len(datas) == 1
            assert len({(v.number, v.parent) for v in each}) == 1
        assert mine.models() == theirs.models()
        numbers = list(mine.models())
    for number in numbers:
        assert same_bits(tensors_of(one, number), tensors_of(other, number))


@contextmanager
def edited(folder: Path | str) -> Iterator[Database]:
    """The database of a run, to write what one likes; rows that are inserted get checksums."""
    path = Path(folder) / "store.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        database = Database(path, connection)
        database.config()
        yield database


def change_config(folder: Path | str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a run is, with a checksum that is right."""
    with edited(folder) as database:
        config = database.config()
        change(config)
        database.set_config(config)
