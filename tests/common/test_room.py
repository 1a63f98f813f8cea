from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import Learner
from dicgrl.common import room as module
from dicgrl.common.growing import GrowingTensor
from dicgrl.common.room import SPILL_VARIABLE, room
from dicgrl.errors import UserError
from dicgrl.graph import KnowledgeGraph, KnowledgeStream


def is_file(array: np.ndarray) -> bool:
    """Whether an array lies in a mapped file."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


@pytest.fixture
def spilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for arrays, all but the smallest."""
    monkeypatch.setenv(SPILL_VARIABLE, str(tmp_path))
    monkeypatch.setattr(module, "_LEAST", 64)
    return tmp_path


def test_large_arrays_are_files_without_a_name(spilling: Path) -> None:
    made = room((16, 3), np.int32)
    made[:] = 7
    assert is_file(made) and made.sum() == 7 * 48
    assert not is_file(room(4, np.int64))
    if os.name == "posix":
        assert not list(spilling.iterdir())


def test_without_a_folder_they_are_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SPILL_VARIABLE, raising=False)
    monkeypatch.setattr(module, "_LEAST", 64)
    assert not is_file(room((16, 3), np.int32))


def test_a_folder_that_is_not_there_is_refused(
    spilling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SPILL_VARIABLE, str(spilling / "nowhere"))
    for size in (16, 2):  # also while the graph is too small to need it
        with pytest.raises(UserError, match="DICGRL_SPILL="):
            room((size, 3), np.int32)


def test_a_folder_that_is_not_there_is_no_damage_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(dim=4, epochs=1, device="cpu")
    learner.learn([("a", "r", "b")])
    learner.save(tmp_path / "run")
    monkeypatch.setenv(SPILL_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"^DICGRL_SPILL=.*no such folder"):
        Learner.load(tmp_path / "run", device="cpu")


def test_a_graph_in_files_is_the_graph_in_memory(
    spilling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    parts = [random.integers(0, 40, (size, 3)) for size in (300, 20, 200)]
    stream = KnowledgeStream.from_labels("random", parts)

    def graph() -> KnowledgeGraph:
        made = KnowledgeGraph()
        for part in stream:
            made.add(part)
        made.forget({"triples": np.array(made.train[::7])})
        return made

    in_files = graph()
    assert is_file(in_files.train)
    monkeypatch.delenv(SPILL_VARIABLE)
    in_memory = graph()
    assert not is_file(in_memory.train)
    assert np.array_equal(in_files.train, in_memory.train)
    every = np.arange(len(in_memory.entities))
    for mine, theirs in zip(in_files.triples_of(every), in_memory.triples_of(every), strict=True):
        assert np.array_equal(mine, theirs)
    asked = in_memory.train[:50]
    assert np.array_equal(in_files.same_questions(asked), in_memory.same_questions(asked))
    assert in_files.contains(stream[0].train).tolist() == (
        in_memory.contains(stream[0].train).tolist()
    )


def test_a_growing_tensor_may_be_a_file(spilling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def watched(*given: Any) -> np.ndarray:
        made.append(room(*given))
        return made[-1]

    monkeypatch.setattr("dicgrl.common.growing.room", watched)
    rows = GrowingTensor("cpu")
    for size in (5, 30):
        rows.append(torch.full((size, 4), float(size)))
    assert is_file(made[-1]) and rows.view().data_ptr() == made[-1].ctypes.data
    assert rows.view().sum() == 4 * (25 + 900)
