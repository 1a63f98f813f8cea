"""A sample of what `make torture` does: every command that writes is disturbed once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.torture import COMMANDS, torture


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")
def test_whatever_goes_wrong_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # it works there
    assert torture(tmp_path, len(COMMANDS)) == len(COMMANDS)
