"""A race of decoders: the one that can express the graph wins."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import dicgrl
from dicgrl import KnowledgeStream, UserError
from dicgrl.jobs.race import RUNNERS, race

FEW = {"dim": 16, "epochs": 100, "lr": 0.05, "negatives": 16, "batch": 64}


def friends(groups: int = 10, size: int = 6) -> KnowledgeStream:
    """Everyone knows everyone of their group: a relation that holds both ways."""
    facts = [
        (f"p{g}.{a}", "knows", f"p{g}.{b}")
        for g in range(groups)
        for a, b in itertools.permutations(range(size), 2)
    ]
    order = np.random.default_rng(0).permutation(len(facts))
    return KnowledgeStream.from_labels("friends", [[facts[i] for i in order]], valid=0.15)


def test_decoders_that_know_symmetry_win_where_everything_is_symmetric() -> None:
    found = race(friends(), changes=FEW, device="cpu")
    assert set(found.validation) == set(RUNNERS)
    assert list(found.validation.values()) == sorted(found.validation.values(), reverse=True)
    assert found.winner != "transe"
    assert found.winner in str(found)
    assert race(friends(), changes=FEW, device="cpu").validation == found.validation


def test_a_run_takes_the_winner_and_goes_on_with_it(tmp_path: Path) -> None:
    asked = {"model": "auto", "strategy": "lower", "device": "cpu", "out": tmp_path / "run", **FEW}
    first = dicgrl.run(friends(), **asked)
    again = dicgrl.run(friends(), resume=True, **asked)
    assert first["model"] == again["model"] == race(friends(), changes=FEW, device="cpu").winner


def test_what_cannot_race() -> None:
    bare = KnowledgeStream.from_labels("bare", [[("a", "r", "b"), ("b", "r", "c")]])
    with pytest.raises(UserError, match=r"the first part has none: .*--valid 0.05"):
        race(bare)
    with pytest.raises(UserError, match="auto is for knowledge graphs; film-genres is not one"):
        race(dicgrl.load_stream("film-genres"))
