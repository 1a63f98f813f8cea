"""A sample of what `make torture-serve` does to a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.torture import fills, hostile, kills


def test_killed_under_writes_no_fact_is_lost_and_none_is_there_twice(run: Path) -> None:
    writers = kills(run, 3, seed=1, longest=2.0)
    assert all(writer.true and writer.gone for writer in writers)


def test_a_disk_that_is_full_is_said_and_the_server_goes_on(run: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    try:
        found = fills(run, tmp_path / "disk", 1)
    except OSError as error:
        pytest.skip(str(error))
    assert found[200] and found[507]


def test_hostile_requests_are_refused_and_tell_nothing(run: Path) -> None:
    found = hostile(run, 300, seed=1)
    assert found[200] and found[400] and found[422]
