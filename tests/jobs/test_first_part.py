"""Runs that share their first part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dicgrl import (
    KnowledgeStream,
    UserError,
)
from tests.runs import measured, recipe_of, run
from tests.tiny import (
    ring,
    stream_of,
)


@pytest.mark.parametrize("kind", ["links", "nodes"])
@pytest.mark.parametrize("strategy", ["frozen", "emr", "gem", "upper"])
def test_a_run_that_takes_over_the_first_part_gives_the_same_numbers(
    tmp_path: Path, kind: str, strategy: str
) -> None:
    stream, first = stream_of(kind), tmp_path / "first"
    run(stream, recipe_of(kind, "lower"), first=first)
    recipe = recipe_of(kind, strategy, **({"budget": "3"} if strategy in ("emr", "gem") else {}))
    shared = run(stream, recipe, first=first, out=tmp_path / "run")
    assert measured(shared) == measured(run(stream, recipe))
    # What was taken over is in the run's own folder: it can be resumed and loaded.
    again = run(stream, recipe, out=tmp_path / "run", resume=True)
    assert measured(again) == measured(shared)


def test_ewc_takes_over_a_first_part_and_leaves_none(tmp_path: Path) -> None:
    stream, first = ring(), tmp_path / "first"
    run(stream, recipe_of("links", "ewc"), first=first)
    assert not first.exists()  # its Fisher information lies in the tables
    run(stream, recipe_of("links", "lower"), first=first)
    taken = run(stream, recipe_of("links", "ewc", strength=1e6), first=first)
    lower = run(stream, recipe_of("links", "lower"))
    assert taken["parts"][0]["tests"] == lower["parts"][0]["tests"]
    assert taken["parts"][-1]["tests"] != lower["parts"][-1]["tests"]


def test_a_first_part_of_other_settings_is_not_taken_over(tmp_path: Path) -> None:
    run(ring(), recipe_of("links", "lower"), first=tmp_path / "first")
    with pytest.raises(UserError, match="cannot be shared: lr"):
        run(ring(), recipe_of("links", "emr", lr=0.5), first=tmp_path / "first")


def test_a_first_part_of_another_seed_or_stream_is_not_taken_over(tmp_path: Path) -> None:
    stream, recipe, first = ring(), recipe_of("links", "lower"), tmp_path / "first"
    run(stream, recipe, first=first)
    with pytest.raises(UserError, match="learned with seed 0"):
        run(stream, recipe, first=first, seed=1)
    shorter = replace(stream[0], train=stream[0].train[:-1])
    other = KnowledgeStream(stream.name, [shorter, *list(stream)[1:]])
    with pytest.raises(UserError, match="part 0 of the run there is not that of this stream"):
        run(other, recipe, first=first)
