"""What a learner makes of facts: triples, arrays, files, parts of streams."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeStream, Learner
from dicgrl.errors import UserError
from dicgrl.learner import PartReport
from tests.learner.helpers import FILMS, MORE, assert_same
from tests.tiny import (
    RIVALS,
    STRATEGIES,
    circles,
    learner_of,
    ring,
    stream_of,
    taught,
    write_ring,
)


def test_raw_triples_bring_entities_and_relations_never_seen_before() -> None:
    learner = learner_of("links")
    first = learner.learn(FILMS)
    assert isinstance(first, PartReport)
    assert (first.part, first.new_examples) == (0, 4)
    assert first.learn_seconds > 0 and first.validation is None
    with pytest.raises(UserError, match="unknown entity 'Gilliam'"):
        learner.score([("Brazil", "director", "Gilliam")])
    assert learner.learn(MORE).new_examples == 2
    assert len(learner.score(FILMS + MORE)) == 6
    answers = {a.label for a in learner.predict(head="Gilliam", relation="born in", k=99)}
    assert answers == {label for h, _, t in FILMS + MORE for label in (h, t)} - {"Gilliam"}


def test_a_list_an_array_and_a_file_teach_the_same(tmp_path: Path) -> None:
    path = tmp_path / "more.tsv"
    path.write_text("".join("\t".join(triple) + "\n" for triple in MORE), encoding="utf-8")
    learners = []
    for more in (MORE, np.array(MORE), path, str(path)):
        learner = learner_of("divided", "dicgrl")
        learner.learn(FILMS)
        learner.learn(more)
        learners.append(learner)
    for other in learners[1:]:
        assert_same(learners[0], other)


@pytest.mark.parametrize(
    "wrong",
    [
        ["abc", "def"],
        [("a", "b")],
        [("a", "b", "c", "d")],
        [("a", "", "c")],
        [3],
        np.array([["a", "b"]]),
    ],
    ids=["strings", "pairs", "quadruples", "empty label", "numbers", "array of pairs"],
)
def test_what_is_no_triple_is_refused_and_nothing_is_learned(wrong: Any) -> None:
    learner = learner_of("links")
    learner.learn(FILMS)
    before = learner.score(FILMS)
    with pytest.raises(UserError, match=r"\(head, relation, tail\)"):
        learner.learn(wrong)
    assert learner.num_parts == 1 and learner.score(FILMS) == before


@pytest.mark.parametrize(
    "value", [None, float("nan"), 1.5, True, b"a", np.float64(2), np.bool_(True), ("a",)], ids=repr
)
def test_only_text_and_whole_numbers_are_labels(value: Any) -> None:
    learner = learner_of("links")
    with pytest.raises(
        UserError, match=rf"triples\[1\]: .*{re.escape(str(value))}.* is not a label"
    ):
        learner.learn([("a", "likes", "b"), ("a", "likes", value)])
    with pytest.raises(UserError, match=r"triples\[1\]: .* is not a label"):
        KnowledgeStream.from_labels("mine", [[("a", "likes", "b"), (value, "likes", "b")]])
    assert learner.num_parts == 0
    learner.learn([(1, "likes", np.int64(2)), (np.str_("3"), "likes", "1")])
    assert list(learner.trainer.graph.entities) == ["1", "2", "3"]


def test_a_data_frame_teaches_what_its_rows_say() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FILMS, columns=["film", "relation", "what"])
    learners = [learner_of("links") for _ in range(2)]
    for learner, facts in zip(learners, (frame, FILMS), strict=True):
        learner.learn(facts)
    assert_same(*learners)
    with pytest.raises(UserError, match=r"the columns film, what: call three of them head"):
        learners[0].learn(frame[["film", "what"]])
    frame.loc[2, "what"] = None
    with pytest.raises(UserError, match=r"triples\[2\]: .* is not a label"):
        learners[0].learn(frame)


@pytest.mark.parametrize("sign", ["\t", "\n", "\r", "\x00", "\x1b", "\x85", "\u2028", "\ud800"])
def test_labels_with_control_characters_are_refused(sign: str) -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match=r"triples\[1\]: 'a.*b': a label cannot contain a TAB"):
        learner.learn([("a", "likes", "b"), ("a", "likes", f"a{sign}b")])
    with pytest.raises(UserError, match="cannot contain"):
        Learner(names={"a": f"A{sign}B"})
    learner.learn([("a", "likes", "b\xa0ü \u200d \U0001f600")])


def test_parts_of_the_other_task_and_streams_are_refused(tmp_path: Path) -> None:
    links, nodes = taught(learner_of("links"), 1), taught(learner_of("nodes"), 1)
    with pytest.raises(UserError, match="network"):
        links.learn(circles()[1])
    with pytest.raises(UserError, match="knowledge graph"):
        nodes.learn(ring()[1])
    with pytest.raises(UserError, match="3 parts"):
        links.learn(write_ring(tmp_path / "ring"))
    with pytest.raises(UserError, match="missing"):
        links.learn(tmp_path / "missing.tsv")
    taught(links, 2)
    taught(nodes, 2)


@pytest.mark.parametrize("strategy", [*STRATEGIES, *RIVALS])
def test_a_part_without_anything_new_is_learned(strategy: str) -> None:
    learner = taught(learner_of("links", strategy), 2)
    entities = learner.trainer.model.num_entities
    assert learner.learn([]).new_examples == 0
    learner.evaluate()
    assert learner.learn([("e0", "plus 1", "e3")]).new_examples == 1
    assert learner.learn([("e0", "plus 1", "e3")]).new_examples == 0  # known by now
    assert learner.trainer.model.num_entities == entities
    assert np.isfinite(learner.score([("e0", "plus 1", "e3")])).all()
    assert len(learner.evaluate().tests) == 2


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_an_empty_first_part_is_refused_and_uses_nothing_up(kind: str) -> None:
    learner, part = learner_of(kind), stream_of(kind)[0]
    with pytest.raises(UserError, match="the first part holds no training examples"):
        learner.learn([] if kind == "links" else replace(part, train=part.train[:0]))
    assert learner.num_parts == 0
    assert_same(taught(learner, 1), taught(learner_of(kind), 1))


def test_an_empty_part_moves_nothing() -> None:
    for strategy in ("lower", "ewc", "gem", "dicgrl"):
        learner = taught(learner_of("links", strategy), 2)
        before = learner.trainer.model.entities.rows.clone()
        learner.learn([])
        if strategy in ("lower", "ewc", "gem"):
            assert torch.equal(before, learner.trainer.model.entities.rows), strategy


def test_what_is_no_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of("links")
    with pytest.raises(UserError, match="for part in stream"):
        learner.learn(ring())  # type: ignore[arg-type]

    class Foreign:
        pass

    monkeypatch.setattr(Foreign, "__module__", "torch_geometric.data.data")
    with pytest.raises(UserError, match=r"interop\.from_pyg"):
        learner.learn(Foreign())  # type: ignore[arg-type]


def test_facts_that_are_known_are_no_part() -> None:
    learner = learner_of("links", "emr")
    learner.learn(FILMS)
    before = learner.trainer.model.entities.rows.clone()
    empty = PartReport(0, 0.0, 0, positives={"new": 0, "old": 0})
    assert learner.learn([*FILMS, FILMS[0]]) == empty
    assert learner.num_parts == len(learner.reports) == 1
    assert torch.equal(before, learner.trainer.model.entities.rows)


def test_a_part_that_is_learned_again_is_mentioned() -> None:
    learner = taught(learner_of("links"), 1)
    with pytest.warns(UserWarning, match="part 1: learned before"):
        learner.learn(ring()[0])


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_part_that_does_not_hold_together_is_refused_before_anything_changes(kind: str) -> None:
    learner = learner_of(kind)
    part = stream_of(kind)[0]
    beyond = part.train.copy()
    beyond[0] = 10_000
    news = "new_entities" if kind == "links" else "new_nodes"
    for wrong in (replace(part, train=beyond), replace(part, **{news: range(10_000)})):
        with pytest.raises(UserError, match="expected 0 <= id"):
            learner.learn(wrong)
    taught(learner, 1)
    later = stream_of(kind)[1]
    with pytest.raises(UserError, match="expected 0 <= id"):
        learner.learn(replace(later, train=beyond))
    learner.learn(later)
    assert learner.num_parts == 2


def test_a_new_label_that_is_a_name_is_told() -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu", names={"Q1": "Alien"})
    learner.learn([("Q1", "genre", "horror")])
    with pytest.warns(UserWarning, match="others have these names: 'Alien'"):
        learner.learn([("Alien", "director", "Scott")])
    assert len(learner.trainer.graph.entities) == 4
    learner.learn([("Alien", "genre", "horror")])  # known by now: no warning
