"""The trace beside a run is made from the store, and mended from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runs import recipe_of, run
from tests.tiny import ring


def test_a_trace_is_added_to(begun: Path) -> None:
    path = begun / "trace.jsonl"
    before, file = path.read_bytes(), path.stat().st_ino
    run(ring(), recipe_of("links"), out=begun, resume=True)
    assert path.stat().st_ino == file and path.read_bytes().startswith(before)
    parts = [json.loads(line)["part"] for line in path.read_bytes().splitlines()]
    assert parts == [0] * 3 + [1] * 3 + [2] * 3


@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]\n", b'{"part": 0', None])
def test_a_trace_that_is_not_what_it_should_be_is_made_again(
    begun: Path, damage: bytes | None
) -> None:
    path = begun / "trace.jsonl"
    before = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    run(ring(), recipe_of("links"), out=begun, resume=True)
    assert path.read_bytes().startswith(before)


def test_a_trace_that_was_not_written_to_its_end_is_made_again(begun: Path) -> None:
    path = begun / "trace.jsonl"
    before = path.read_bytes()
    path.write_bytes(before[:-7])
    run(ring(), recipe_of("links"), out=begun, resume=True)
    assert path.read_bytes().startswith(before)
