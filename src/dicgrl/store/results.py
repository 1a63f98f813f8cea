"""Writes results.json and trace.jsonl, for people and scripts.

Both are made from the database after each version; dicgrl itself never reads them back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import append_to_file, replacing_file, write_json
from dicgrl.errors import DataError
from dicgrl.store.version import Version

MOST_PARTS = 64  # the newest parts that results.json has, at most
MOST_TESTS = MOST_PARTS * (MOST_PARTS + 1) // 2  # measurements of them together: all of 64 parts
_LONGEST_LINE = 1 << 16  # bytes of a trace that are read to find its last line


def results_of(line: Sequence[Version]) -> dict[str, Any]:
    """The content of results.json; empty if nothing was measured after the newest version."""
    if not line or line[-1].results is None:
        return {}
    shown = newest(line)
    parts = [
        {**(version.results or {}).get("entry", {}), "tests": list(version.tests)}
        for version in shown
    ]
    return {**line[-1].results["summary"], **earlier(len(line), len(parts)), "parts": parts}


def newest_parts(tests: Sequence[Sequence[object]]) -> int:
    """How many of the newest parts are in results.json, so that it does not grow for ever.

    After each part all test sets so far are measured, so that a long life shows fewer parts.

    Args:
        tests: What was measured after each part.

    Example:
        >>> newest_parts([[0]] * 100), newest_parts([[0] * 1000] * 100), newest_parts([[0] * 9999])
        (64, 2, 1)
    """
    count = total = 0
    for found in reversed(tests[-MOST_PARTS:]):
        total += len(found)
        if count and total > MOST_TESTS:
            break
        count += 1
    return count


def newest(line: Sequence[Version]) -> Sequence[Version]:
    """The versions of these parts."""
    return line[-newest_parts([version.tests for version in line]) :] if line else line


def earlier(parts: int, shown: int) -> dict[str, int]:
    """How many parts came before those in results.json; nothing if it has all of them."""
    return {"earlier_parts": parts - shown} if parts > shown else {}


def checked_results(
    folder: Path, config: Mapping[str, Any], line: Sequence[Version]
) -> dict[str, Any]:
    """The results of a run that learned part by part.

    Raises:
        DataError: There are no results, or they are of another kind of run.
    """
    if not any(version.results for version in line):
        if "dataset" not in config:  # `run` says what it learns
            raise DataError(
                folder,
                "saved from Python, without results; `dicgrl learn` writes them, even if its "
                "facts are all known",
            )
        raise DataError(folder, "this run has no results yet; --resume continues it")
    every, line = line, newest(line)
    measured = [version for version in line if version.results is not None]
    if len(measured) < len(line):
        raise DataError(
            folder,
            f"results of {len(measured)} of {len(line)} parts; `dicgrl learn` writes the others, "
            "even if its facts are all known",
        )
    results = results_of(every)
    if results.get("setting") == "whole":
        raise DataError(folder, "a run of --whole; this needs one that learned part by part")
    return results


def write_results(path: Path, results: Mapping[str, Any]) -> None:
    """Write results.json, for people and scripts."""
    if results:
        write_json(path, results)


def is_written(path: Path, results: Mapping[str, Any]) -> bool:
    """Whether results.json says so already."""
    if not path.is_file():
        return False
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return bool(written == json.loads(json.dumps(results)))


def write_trace(
    path: Path,
    part: int,
    epochs: Sequence[Mapping[str, Any]],
    all_of_it: Callable[[], Mapping[int, Sequence[Mapping[str, Any]]]],
) -> None:
    """Add a part's epochs to trace.jsonl, a line each; where it is not what it should be, anew.

    Args:
        path: The file.
        part: The newest part.
        epochs: Its epochs; none where nothing was learned since the file was written.
        all_of_it: Gives the epochs of all parts.
    """
    last = _last_part(path)
    if epochs and last == part - 1:
        append_to_file(path, _lines(part, epochs))
    elif epochs or last != part:  # whoever learned the part was killed before it came to this
        every = "".join(_lines(*entry) for entry in all_of_it().items())
        with replacing_file(path) as temporary:
            temporary.write_text(every, encoding="utf-8")


def _lines(part: int, epochs: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps({"part": part, **epoch}) + "\n" for epoch in epochs)


def _last_part(path: Path) -> int | None:
    """The part in the last line of a trace; None if the line is incomplete."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_LINE, 0))
            *lines, rest = file.read().split(b"\n")
        return None if rest else int(json.loads(lines[-1])["part"])
    except (OSError, LookupError, TypeError, ValueError):
        return None
