"""A small graph to serve, and what a night writes."""

from __future__ import annotations

from pathlib import Path

from dicgrl.store.run_folder import RunFolder


def facts(first: int, last: int) -> list[tuple[str, str, str]]:
    """Films, each with a genre of five and a director of seven."""
    return [
        (f"film {i}", relation, f"{relation} {i % count}")
        for i in range(first, last)
        for relation, count in (("genre", 5), ("director", 7))
    ]


def note_night(folder: Path, report: str) -> None:
    """Write a report of a night, whatever else the table has."""
    known = {"number": 1, "version": 2, "time": "2026-01-01T03:00:00+00:00", "report": report}
    with RunFolder(folder).writing() as run:
        columns = run.database.connection.execute("PRAGMA table_info(nights)").fetchall()
        run.database.insert("nights", **{c[1]: known[c[1]] for c in columns if c[1] in known})
