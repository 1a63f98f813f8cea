"""A consistent copy of a run while others write to it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from dicgrl.common.atomic import check_place, new_folder
from dicgrl.errors import UserError
from dicgrl.store.database import opened
from dicgrl.store.records import StoredRun
from dicgrl.store.tensors import MissingError, check_file, check_name

_TRIES = 20


def backup(database: Path, target: Path) -> int:
    """Copy a run, as it is at one moment, to a new folder; returns its newest version.

    Raises:
        DataError: The run is damaged.
        UserError: There is something at the target, or it lies in the run.
    """
    check_place(target.parent)
    if target.exists():
        raise UserError(f"{target}: already exists; choose another folder")
    if database.parent.resolve() in target.resolve().parents:
        raise UserError(f"{target}: lies in the run itself; choose a folder outside")
    for left in reversed(range(_TRIES)):
        try:
            with new_folder(target) as temporary:
                return _copied(database, temporary)
        except MissingError:  # a writer has removed what was no longer needed
            if not left:
                raise
    raise AssertionError


def _copied(database: Path, place: Path) -> int:
    copy = place / database.name
    with (
        opened(database) as source,
        contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as target,
    ):
        source.connection.backup(target)
        target.execute("PRAGMA journal_mode = WAL")
    with opened(copy) as stored:
        run = StoredRun(stored)
        run.folder.mkdir()
        for file in run.files():
            check_name(run.folder, file.name)
            path = database.parent / run.folder.name / file.name
            check_file(path, file)
            try:
                shutil.copyfile(path, run.folder / file.name)
            except FileNotFoundError:
                raise MissingError(path, "damaged run: this file is missing") from None
            check_file(run.folder / file.name, file)
        return int(run.config["versions"])
