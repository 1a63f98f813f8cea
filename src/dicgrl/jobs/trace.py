"""The trace of a run: a line of JSON for every epoch, added to part by part."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from dicgrl.common.atomic import append_to_file, replacing_file
from dicgrl.errors import DataError
from dicgrl.training import EpochReport

_LONGEST_LINE = 1 << 16  # bytes that are read to find the last line


def append_trace(out: Path, part: int, epochs: list[EpochReport]) -> None:
    """Add a part's epochs; lines of that part from a run that was killed are dropped.

    The cost follows the epochs unless there is something to drop: then the file is replaced. Call
    it before the part is saved, so that a line that a killed process left unfinished is of a part
    that is learned again.
    """
    path = _trace_file(out)
    added = [json.dumps({"part": part, **asdict(epoch)}) for epoch in epochs]
    if _ends_before(path, part):
        append_to_file(path, _as_lines(added))
        return
    kept = _lines_before(path, part)
    with replacing_file(path) as temporary:
        temporary.write_text(_as_lines(kept + added), encoding="utf-8")


def check_trace(out: Path) -> None:
    """Find a damaged trace now, not when it is added to.

    Raises:
        DataError: It is damaged.
    """
    _lines_before(_trace_file(out), 0)


def _trace_file(out: Path) -> Path:
    return out / "trace.jsonl"


def _as_lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _ends_before(path: Path, part: int) -> bool:
    """Whether the last line is complete and of an earlier part."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_LINE, 0))
            *lines, rest = file.read().split(b"\n")
        return not rest and bool(json.loads(lines[-1])["part"] < part)
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return False


def _lines_before(path: Path, part: int) -> list[str]:
    """Lines of earlier parts, without a last one that was not written to its end."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text.splitlines()
        if len(lines) > 1 and not text.endswith(("\n", "}")):  # the first lines come at once
            lines.pop()
        return [line for line in lines if json.loads(line)["part"] < part]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(path, f"damaged ({error}); remove the file to go on without it") from error
