from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

# The arrays of the tests are small, and pytest-xdist already uses every core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("default", max_examples=50, deadline=None)
settings.load_profile("default")

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Places for caches, each for one test; to make one costs no look at the others."""
    root = tmp_path_factory.mktemp("caches")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_cache(_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or fills the user's cache."""
    place = next(_caches)
    place.mkdir()
    monkeypatch.setenv("DICGRL_CACHE", str(place))


@pytest.fixture
def paper_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the paper's datasets, set as DICGRL_DATA."""
    place = Path(os.environ.get("DICGRL_DATA") or _BESIDE)
    if not place.is_dir():
        pytest.skip("the paper's datasets are not here; set DICGRL_DATA to their folder")
    monkeypatch.setenv("DICGRL_DATA", str(place))
    return place
