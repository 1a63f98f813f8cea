"""Two processes, started once for all tests that look at what they wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parallel.launch import torchrun


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes have written what `worker` does."""
    place = tmp_path_factory.mktemp("two")
    done = torchrun("tests.parallel.worker", str(place))
    assert done.returncode == 0, done.stderr
    return place
