"""Finds out what a folder holds, and whether a run may be written to it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from dicgrl.common.atomic import check_place, remove_leftovers
from dicgrl.common.locks import locked
from dicgrl.errors import UserError
from dicgrl.store.records import TENSORS
from dicgrl.store.released import has_parts, is_of_release, is_released


class RunPlace:
    """A folder that holds a run, or will hold one.

    Args:
        path: The folder; it need not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._database = self.path / "store.sqlite"
        self._results = self.path / "results.json"
        self._trace = self.path / "trace.jsonl"
        self._nights = self.path / "nights"

    @property
    def database(self) -> Path:
        """The database of the run; a run of an earlier release has none."""
        return self._database

    def has_database(self) -> bool:
        """Whether the run is in a database."""
        return os.path.lexists(self._database)

    @property
    def curves_file(self) -> Path:
        """Path of the picture of the learning curves."""
        return self.path / "curves.png"

    @property
    def reliability_file(self) -> Path:
        """Path of the picture of how reliable probabilities are."""
        return self.path / "reliability.png"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return os.path.lexists(self._database) or is_released(self.path)

    def runs_inside(self) -> list[str]:
        """Names of the folders in this one that hold runs."""
        stored = {place.parent for place in self.path.glob(f"*/{self._database.name}")}
        released = {place.parent for place in self.path.glob("*/config.json")}
        of_release = {folder for folder in released if is_of_release(folder)}
        return sorted(folder.name for folder in stored | of_release)

    def locked(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """Have the folder to oneself; see `dicgrl.common.locks`.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: It cannot be written to.
        """
        if self.path.is_dir() and not os.access(self.path, os.W_OK):
            raise UserError(f"{self.path}: cannot be written to")
        return locked(self.path, wait)

    def remove_leftovers(self) -> None:
        """Remove what a killed process left under temporary names."""
        remove_leftovers(self.path)

    # What may be written here

    def check_new(self, *, resume: bool = False, resumable: bool = True) -> bool:
        """Whether there is a run to resume; if there is one, that must be what was asked for.

        Args:
            resume: Whether a run that is there is to be resumed.
            resumable: Whether it could be; the message says so.

        Raises:
            UserError: The folder holds a run and nobody asked to resume it, or folders of runs, or
                parts without their configuration; or it is no folder.
        """
        check_place(self.path)
        there = self.exists()
        if there and not resume:
            go_on = ", or continue the run (--resume)" if resumable else ""
            raise UserError(f"{self.path}: already holds a run; choose another folder{go_on}")
        if not there:
            self._check_free()
        return there

    def check_layout(self, *, several: bool) -> None:
        """Refuse to mix a run with folders of runs, as several strategies need.

        Raises:
            UserError: The folder holds a run and several are to come, or the other way round.
        """
        if several and self.exists():
            raise UserError(
                f"{self.path}: already holds a run; several strategies need a folder of their own"
            )
        runs = self.runs_inside()
        if not several and runs:
            raise UserError(
                f"{self.path}: holds the runs {', '.join(runs)}; name one of them, or a new one"
            )

    def _check_free(self) -> None:
        self.check_layout(several=False)
        if has_parts(self.path):  # of an earlier release
            raise UserError(
                f"{self.path}: holds parts of a run, but config.json is missing; put it back, or "
                "choose another folder"
            )
        if any((self.path / TENSORS).glob("*.safetensors")):
            raise UserError(
                f"{self.path}: holds tensors of a run, but store.sqlite is missing; put it back, "
                "or choose another folder"
            )
