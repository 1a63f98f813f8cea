"""Whether a stored run is whole: every checksum, id, count and link."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dicgrl.errors import DataError, DicgrlError
from dicgrl.store.content import changes_of
from dicgrl.store.database import ADDED, TABLES, opened
from dicgrl.store.records import StoredRun, chains_of
from dicgrl.store.tensors import TensorFile, check_file, check_name, combined, read_file
from dicgrl.store.version import RESTORE, Version, lineage
from dicgrl.tasks import task_of_model

# What reading something damaged may raise; each is one line of the findings.
_FAULTS = (DicgrlError, ArithmeticError, AttributeError, LookupError, OSError, RecursionError,
           RuntimeError, TypeError, ValueError, sqlite3.Error)  # fmt: skip


@dataclass(slots=True)
class Findings:
    """What `verify` found.

    Attributes:
        damage: What is damaged, a line each.
        versions: How many versions there are.
        restorable: Those that can be loaded, and restored.
        leftovers: Files that no version needs; the next writer removes them.
    """

    damage: list[str] = field(default_factory=list)
    versions: int = 0
    restorable: list[int] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {"clean": self.clean, **asdict(self)}

    def tried(self, what: str, check: Callable[[], object]) -> bool:
        """Note what a check finds; whether it found nothing."""
        try:
            check()
        except _FAULTS as error:
            told = str(error) if isinstance(error, DataError) else f"{what}: {error}"
            if told not in self.damage:
                self.damage.append(" ".join(told.split()))
            return False
        return True


def verify(database: Path) -> Findings:
    """Check all that a run is made of; nothing is changed.

    Args:
        database: The database of the run.
    """
    found = Findings()

    def check() -> None:
        with opened(database) as opening:
            _verify(StoredRun(opening), found)

    found.tried(str(database), check)
    return found


def _verify(run: StoredRun, found: Findings) -> None:
    database = run.database
    for (line,) in database.connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            found.damage.append(f"{database.path}: {line}")
    sound = {table: _check_rows(run, table, found) for table in (*TABLES, *ADDED)}
    if not found.tried("versions", run.versions):
        return
    versions = run.versions()
    found.versions = len(versions)
    contents = {
        version.number: found.tried(f"version {version.number}", _content_check(run, version))
        for version in versions
    }
    files = run.files() if sound["files"] else []
    there = {file.name: found.tried(file.name, _file_check(run, file)) for file in files}
    found.leftovers = sorted(p.name for p in run.folder.glob("*") if p.name not in there)
    if not sound["models"]:
        return
    for number, source in sorted(run.models().items()):
        fine = found.tried(f"version {number}", _links_check(versions, number))
        chain = next(chains_of(files, [source]))
        if not chain:
            found.damage.append(f"version {number}: the files of its tensors are not known")
        elif fine and all(there[file.name] for file in chain):
            whole = all(contents[v.number] for v in lineage(versions, number))
            if whole and found.tried(f"version {number}", _tensor_check(run, chain)):
                found.restorable.append(number)
    if sound["tags"]:
        for name, number in run.tags().items():
            if number not in run.models():
                found.damage.append(f"tag {name}: version {number} has no model")
    if len(versions) and len(versions) not in run.models():
        found.damage.append(f"version {len(versions)}, the newest, has no model")


def _check_rows(run: StoredRun, table: str, found: Findings) -> bool:
    def check() -> None:
        for _ in run.database.rows(table):
            pass

    return found.tried(table, check)


def _content_check(run: StoredRun, version: Version) -> Callable[[], None]:
    def check() -> None:
        if version.kind == RESTORE:
            return
        arrays, labels = run.content(version)
        (change,) = changes_of(_part_type(run), [(version.kind, (arrays, labels))])
        told = dict(version.counts)
        if change.part is not None and told["facts"] != change.part.facts:
            raise ValueError(f"{change.part.facts} facts where there were {told['facts']}")
        for name, count in (change.part.arrived() if change.part else {}).items():
            if told[f"new_{name}"] != count:
                raise ValueError(f"{count} new {name} where there were {told[f'new_{name}']}")

    return check


def _part_type(run: StoredRun) -> Any:
    return task_of_model(run.config["model"]).part_type


def _file_check(run: StoredRun, file: TensorFile) -> Callable[[], None]:
    def check() -> None:
        check_name(run.folder, file.name)
        check_file(run.folder / file.name, file)
        read_file(run.folder, file, run.database.identity)

    return check


def _links_check(versions: list[Version], number: int) -> Callable[[], None]:
    def check() -> None:
        if not 1 <= number <= len(versions):
            raise ValueError("there is a model, and no version")
        lineage(versions, number)

    return check


def _tensor_check(run: StoredRun, chain: list[TensorFile]) -> Callable[[], None]:
    def check() -> None:
        combined([read_file(run.folder, file, run.database.identity) for file in chain])

    return check
