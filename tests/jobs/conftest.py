from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs import recipe_of, run
from tests.tiny import ring


@pytest.fixture(scope="session")
def _two_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("two parts") / "run"
    run(ring()[:2], recipe_of("links"), out=place)
    return place


@pytest.fixture
def begun(_two_parts: Path, tmp_path: Path) -> Path:
    """A folder with the first two parts of a run, to do with as one likes."""
    return shutil.copytree(_two_parts, tmp_path / "run")
