from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.servers import Server, serving
from tests.tiny import learner_of, taught

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="session")
def run_to_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of links; do not change it."""
    place = tmp_path_factory.mktemp("served") / "ring"
    learner = learner_of("links", "fresh")
    for parts in (1, 2, 3):
        taught(learner, parts, evaluate=False).save(place)
    return place


@pytest.fixture
def run(run_to_copy: Path, tmp_path: Path) -> Path:
    """A run of one's own."""
    shutil.copytree(run_to_copy, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def server(run_to_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for several tests, which ask it and add what nobody else looks at."""
    place = tmp_path_factory.mktemp("server") / "run"
    shutil.copytree(run_to_copy, place)
    options = ("--learn-facts", "1000000", "--learn-seconds", "100000")
    with serving(place, *options) as server:
        yield server
