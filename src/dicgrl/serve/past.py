"""What became of a run, for the page: versions with their quality, cost and drift; maps; nights."""

from __future__ import annotations

from typing import Any

from dicgrl.report.versions_table import brought
from dicgrl.store.database import opened, parsed
from dicgrl.store.maps import read_maps
from dicgrl.store.run_folder import RunFolder

_MOST = 500  # versions that are told of, the newest
_NIGHTS = 60
_OF_PART = (
    *("kind", "part", "learn_seconds", "evaluate_seconds", "new_examples", "replayed_examples"),
    *("arrived", "retention", "forgetting", "whole", "average", "warnings"),
)


def history(run: RunFolder) -> dict[str, Any]:
    """The versions that make the newest one, the oldest first: what each brought and took."""
    told = run.overview()
    logged = {entry["version"]: entry for entry in run.log()}
    maps = read_maps(run)
    parts = []
    for part in told["parts"][-_MOST:]:
        number = part["version"]
        about = {name: logged[number][name] for name in ("time", "message", "tags", "model")}
        about["brought"] = brought(logged[number]["kind"], logged[number]["counts"])
        drift = maps.get(number, {}).get("drift")
        parts.append({**_measured(part), **about, "version": number, "drift": drift})
    return {"parts": parts, "earlier": max(0, len(told["parts"]) - _MOST), "bytes": told["bytes"]}


def _measured(part: dict[str, Any]) -> dict[str, Any]:
    tests = [
        {name: value for name, value in test.items() if isinstance(value, int | float)}
        for test in part.get("tests", ())
    ]
    found = {name: part.get(name) for name in _OF_PART}
    return {**found, "tests": tests, "calibration": part.get("calibration")}


def maps_of(run: RunFolder, version: int) -> dict[str, Any]:
    """The maps that are stored of the versions that make one, and whether its own is there."""
    line = [each.number for each in run.line(version)]
    stored = read_maps(run)
    maps = [{"version": number, **stored[number]} for number in line if number in stored]
    return {"maps": maps, "line": line, "current": bool(line) and line[-1] in stored}


def nights_of(run: RunFolder) -> list[dict[str, Any]]:
    """Reports of nightly work, the newest first."""
    if not run.has_database():
        return []
    with opened(run.database) as database:
        database.config()
        rows = list(database.rows("nights", "ORDER BY time DESC LIMIT ?", (_NIGHTS,)))
    return [
        {"version": row["version"], "time": row["time"], "report": parsed(row["report"])}
        for row in rows
    ]
