"""What a learner makes of facts before it learns them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from dicgrl import DataWarning, UserError
from dicgrl.readers import NetworkFacts
from tests.tiny import circles, learner_of, ring, taught


def test_what_is_known_or_held_out_is_counted_and_dropped(tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1, evaluate=False)
    rows = {split: getattr(ring()[0], split)[:2] for split in ("train", "test")}
    old = [learner.ask.readable(row) for split in rows.values() for row in split]
    path = tmp_path / "facts.tsv"
    path.write_text("".join("\t".join(t) + "\n" for t in [*old, ("e0", "likes", "new")]))
    intake = learner.intake(path)
    assert (intake.given, intake.known, intake.held_out) == (5, 2, 2)
    assert not intake.is_empty and not intake.is_repeated and len(intake.part.train) == 1
    empty = learner.intake(old)
    assert (empty.given, empty.known, empty.held_out, empty.is_empty) == (4, 2, 2, True)
    assert learner.num_parts == 1  # nothing was learned so far
    assert learner.learn(empty).new_examples == 0 and learner.num_parts == 1
    assert learner.learn(intake).new_examples == 1 and learner.num_parts == 2


def test_an_intake_is_learned_as_its_facts_are() -> None:
    one, other = (taught(learner_of("links"), 1, evaluate=False) for _ in range(2))
    facts = [("e0", "likes", "new"), ("new", "plus 1", "e1")]
    one.learn(facts)
    other.learn(other.intake(facts))
    assert one.score(facts) == other.score(facts)


def test_names_of_others_are_mentioned_to_whoever_learns_facts() -> None:
    learner = taught(learner_of("links"), 1, evaluate=False)
    learner.names = {"e1": "Number One"}
    facts = [("Number One", "plus 1", "e2")]
    intake = learner.intake(facts)
    assert intake.named_alike == ("Number One",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.learn(intake)  # its maker has seen it
    other = taught(learner_of("links"), 1, evaluate=False)
    other.names = {"e1": "Number One"}
    with pytest.warns(UserWarning, match="Number One"):
        other.learn(facts)


def test_a_part_of_a_stream_is_taken_as_it_is() -> None:
    learner = taught(learner_of("links"), 1, evaluate=False)
    again = learner.intake(ring()[0])
    assert again.is_repeated and not again.is_empty
    assert again.given == sum(
        len(rows) for rows in (ring()[0].train, ring()[0].valid, ring()[0].test)
    )
    with pytest.warns(DataWarning, match="nothing in it is new"):
        learner.learn(ring()[0])


def test_edges_of_a_network_are_counted() -> None:
    learner = taught(learner_of("nodes"), 1, evaluate=False)
    ends = circles().nodes.labels(circles()[0].edges[0])
    known = learner.intake(NetworkFacts(edges=[(ends[0], ends[1])]))
    assert (known.given, known.is_empty) == (1, True)


def test_what_is_no_part_is_refused() -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match="part by part"):
        learner.intake(ring())  # type: ignore[arg-type]
