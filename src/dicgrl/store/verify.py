"""Verify a stored run: every checksum, id, count and link."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dicgrl.errors import DataError, DicgrlError
from dicgrl.store.content import changes_of
from dicgrl.store.damage import is_no_damage
from dicgrl.store.database import ADDED, TABLES, opened
from dicgrl.store.records import StoredRun, chains_of
from dicgrl.store.tensors import TensorFile, check_file, check_name, combined, read_file
from dicgrl.store.version import RESTORE, Version, lineage
from dicgrl.tasks import task_of_model

# Errors that reading damaged data may raise; each becomes a line of the findings.
_FAULTS = (DicgrlError, ArithmeticError, AttributeError, LookupError, OSError, RecursionError,
           RuntimeError, TypeError, ValueError, sqlite3.Error)  # fmt: skip


@dataclass(slots=True)
class Findings:
    """The findings of `verify`.

    Attributes:
        damage: What is damaged, a line each.
        versions: How many versions there are.
        restorable: Numbers of the versions that can be loaded and restored.
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
        """Note what a check finds; whether it found nothing.

        Raises:
            SetupError: It cannot be made here, which says nothing of the files.
            BusyError: Another process is writing.
        """
        try:
            check()
        except _FAULTS as error:
            if is_no_damage(error):
                raise
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
            _Verification(StoredRun(opening), found).made()

    found.tried(str(database), check)
    return found


class _Verification:
    """Checks a run: first single rows and files, then whether they fit together."""

    def __init__(self, run: StoredRun, found: Findings) -> None:
        self.run, self.found = run, found
        self.versions: list[Version] = []

    def made(self) -> None:
        """Check all of it."""
        run, found = self.run, self.found
        self._check_pages()
        sound = {table: self._is_sound(table) for table in (*TABLES, *ADDED)}
        if not found.tried("versions", run.versions):
            return
        self.versions = run.versions()
        found.versions = len(self.versions)
        whole = {version.number for version in self.versions if self._is_whole(version)}
        files = run.files() if sound["files"] else []
        there = self._files_there(files)
        if sound["models"]:
            # No version is read without readable names.
            named = sound["names"] and found.tried("names", partial(run.names, found.versions))
            self._check_models(files, whole if named else set(), there)
            self._check_links(run.tags() if sound["tags"] else {})
        if sound["tags"]:
            found.tried("tags", self._check_tags)

    def _files_there(self, files: Sequence[TensorFile]) -> set[str]:
        """Names of the files that are whole; notes those that nobody needs."""
        there = {file.name for file in files if self._is_there(file)}
        known = {file.name for file in files}
        found = self.run.folder.glob("*")
        self.found.leftovers = sorted(path.name for path in found if path.name not in known)
        return there

    def _check_models(self, files: Sequence[TensorFile], whole: set[int], there: set[str]) -> None:
        """Versions that can be restored, as their facts and all their files are intact."""
        models = self.run.models()
        chains = chains_of(files, models.values())
        for number, chain in zip(models, chains, strict=True):
            complete = {file.name for file in chain} <= there
            if self._is_restorable(number, chain, whole) and complete:
                self.found.restorable.append(number)
        self.found.restorable.sort()

    def _check_links(self, tags: Mapping[str, int]) -> None:
        """Whether the newest version and those of tags have a model."""
        models, newest = self.run.models(), len(self.versions)
        for name, number in tags.items():
            if number not in models:
                self.found.damage.append(f"tag {name}: version {number} has no model")
        if newest and newest not in models:
            self.found.damage.append(f"version {newest}, the newest, has no model")

    def _check_tags(self) -> None:
        """Whether a tag is missing; runs of earlier versions did not count them."""
        there, noted = len(self.run.tags()), self.run.config.get("tags", 0)
        if there < noted:
            raise ValueError(f"{there} where there were {noted}")

    def _check_pages(self) -> None:
        database = self.run.database
        for (line,) in database.connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                self.found.damage.append(f"{database.path}: {line}")

    def _is_sound(self, table: str) -> bool:
        def check() -> None:
            for _ in self.run.database.rows(table):
                pass

        return self.found.tried(table, check)

    def _is_whole(self, version: Version) -> bool:
        def check() -> None:
            len(version.tests), len(version.results or {})  # parsed now
            if version.kind == RESTORE:
                return
            arrays, labels = self.run.content(version)
            kind = task_of_model(self.run.config["model"]).part_type
            (change,) = changes_of(kind, [(version.kind, (arrays, labels))])
            told = dict(version.counts)
            if change.part is not None and told["facts"] != change.part.facts:
                raise ValueError(f"{change.part.facts} facts where there were {told['facts']}")
            for name, count in (change.part.arrived() if change.part else {}).items():
                if told[f"new_{name}"] != count:
                    raise ValueError(f"{count} new {name} where there were {told[f'new_{name}']}")

        return self.found.tried(f"version {version.number}", check)

    def _is_there(self, file: TensorFile) -> bool:
        def check() -> None:
            check_name(self.run.folder, file.name)
            check_file(self.run.folder / file.name, file)
            read_file(self.run.folder, file, self.run.database.identity)

        return self.found.tried(file.name, check)

    def _is_restorable(self, number: int, chain: list[TensorFile], whole: set[int]) -> bool:
        """Whether the facts of a version and its tensors make a model, files aside."""
        fits = self.found.tried(f"version {number}", lambda: self._line(number))
        if not chain:
            self.found.damage.append(f"version {number}: the files of its tensors are not known")
        if not chain or not fits or not {v.number for v in self._line(number)} <= whole:
            return False
        return self.found.tried(f"version {number}", lambda: self._tensors(chain))

    def _line(self, number: int) -> list[Version]:
        if not 1 <= number <= len(self.versions):
            raise ValueError("there is a model, and no version")
        return lineage(self.versions, number)

    def _tensors(self, chain: list[TensorFile]) -> None:
        run = self.run
        combined([read_file(run.folder, file, run.database.identity) for file in chain])
