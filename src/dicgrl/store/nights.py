"""The reports of nightly jobs ("nights") of a run.

A report is a row of the database, written in the same commit as the version that the night made.
For people and scripts each night also has two files: `nights/0001.json` and `nights/0001.html`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import make_folder, replacing_file, write_json
from dicgrl.errors import DataError, UserError
from dicgrl.store.database import Database, as_text, opened, parsed
from dicgrl.store.place import RunPlace

Night = dict[str, Any]
"""The results of a nightly job, ready for JSON (docs/nightly.md)."""


def insert_night(database: Database, report: Mapping[str, Any], version: int) -> Night:
    """Write what a night found, and which version the run was after it; gives it numbered."""
    query = "SELECT COALESCE(MAX(number), 0) + 1 FROM nights"
    (number,) = database.connection.execute(query).fetchone()
    night = {"night": number, "version": version, **report}
    database.insert(
        "nights", number=number, version=version, time=str(report["time"]), report=as_text(night)
    )
    return night


class NightsPlace(RunPlace):
    """The part of a run's folder that holds its nights."""

    def nights(self) -> list[Night]:
        """The results of all nightly jobs, oldest first.

        Raises:
            DataError: A report is damaged.
        """
        if not os.path.lexists(self._database):  # none, or one of an earlier format
            return []
        with opened(self._database) as database:
            database.config()
            try:
                rows = database.rows("nights", "ORDER BY number")
                return [parsed(row["report"]) for row in rows]
            except ValueError as error:
                raise database.damaged(f"a night: {error}") from error

    def night(self, number: int | None = None) -> Night:
        """The results of a nightly job; of the newest by default.

        Raises:
            UserError: There is no such night.
        """
        nights = self.nights()
        number = len(nights) if number is None else number
        if not 1 <= number <= len(nights):
            have = f"1 to {len(nights)}" if nights else "none"
            raise UserError(f"{self.path}: there is no night {number}; the run has {have}")
        return nights[number - 1]

    def night_page(self, number: int | None = None) -> str:
        """The page of one of them, HTML that needs nothing else; the newest unless given.

        Raises:
            UserError: There is no such night, or no page of it.
        """
        number = self.night(number)["night"]
        try:
            return self.night_file(number, "html").read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UserError(
                f"{self.path}: no page of night {number} yet; the next night writes it"
            ) from None
        except UnicodeDecodeError as error:
            raise DataError(self.night_file(number, "html"), f"no text ({error})") from error

    def night_file(self, number: int, ending: str) -> Path:
        """Path of the JSON (`json`) or the page (`html`) of a night."""
        return self._nights / f"{number:04}.{ending}"

    def write_night_page(self, number: int, page: str) -> Path:
        """Write the page of a night; gives its place."""
        place = self.night_file(number, "html")
        with replacing_file(place) as temporary:
            temporary.write_text(page, encoding="utf-8")
        return place

    def note_night(self, report: Mapping[str, Any]) -> Night:
        """Write what a night found that made no version; whoever calls this has the folder locked.

        Returns:
            The same with its number and the version that the run is.
        """
        with opened(self._database, write=True) as database:
            version = int(database.config()["versions"])
            with database.transaction():
                night = insert_night(database, report, version)
        self.write_nights()
        return night

    def nights_without_page(self) -> list[Night]:
        """Those whose page is missing: whoever was to write it was killed."""
        nights = self.nights()
        return [each for each in nights if not self.night_file(each["night"], "html").exists()]

    def take_night_pages(self, other: NightsPlace) -> None:
        """Copy the pages that another place of the same run has."""
        for night in self.nights():
            page = other.night_file(night["night"], "html")
            if page.is_file():
                shutil.copyfile(page, self.night_file(night["night"], "html"))

    def write_nights(self) -> None:
        """Write the JSON of nights that have none; whoever calls this has the folder locked."""
        nights = self.nights()
        if not nights:
            return
        make_folder(self._nights)
        for left in self._nights.glob(".*"):  # of a process that was killed
            left.unlink(missing_ok=True)
        for night in nights:
            place = self.night_file(night["night"], "json")
            if not place.exists():
                write_json(place, night)
