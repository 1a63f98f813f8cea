from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import KnowledgeGraph, KnowledgePart, KnowledgeStream, UserError, Vocabulary
from dicgrl.graph import SPLITS
from tests.streams import KnowledgeLists, Triple, knowledge_lists, knowledge_stream


def words(graph: KnowledgeGraph, rows: np.ndarray) -> list[Triple]:
    entity, relation = list(graph.entities), list(graph.relations)
    return [(entity[h], relation[r], entity[t]) for h, r, t in rows.tolist()]


def check(graph: KnowledgeGraph, parts: KnowledgeLists) -> None:
    """Compare with lists of labelled triples that are searched from one end to the other."""
    unique: list[Triple] = []
    by_part: list[list[Triple]] = []
    for part in parts:
        fresh = list(dict.fromkeys(t for t in part["train"] if t not in unique))
        by_part.append(fresh)
        unique += fresh
    assert words(graph, graph.train) == unique
    for split in ("valid", "test"):
        assert words(graph, getattr(graph, split)) == [t for part in parts for t in part[split]]
    for i, part in enumerate(parts):
        assert words(graph, graph.rows("train", i, i + 1)) == by_part[i]
        assert words(graph, graph.rows("valid", i, i + 1)) == part["valid"]
        assert words(graph, graph.rows("test", i, i + 1)) == part["test"]
    assert graph.num_parts == len(parts)

    mentioned = {
        end for part in parts for split in SPLITS for t in part[split] for end in (t[0], t[2])
    }
    assert mentioned <= set(graph.entities)
    everyone = np.arange(len(graph.entities))
    positions, rows = graph.triples_of(everyone)
    for i, label in enumerate(graph.entities):
        expected = [row for row, (head, _, tail) in enumerate(unique) if label in (head, tail)]
        assert sorted(rows[positions == i].tolist()) == expected
        assert graph.degree(everyone)[i] == len(expected)

    size, kinds = len(graph.entities), len(graph.relations)
    possible = np.array(list(np.ndindex(size, kinds, size)), dtype=np.int64).reshape(-1, 3)
    known = graph.contains(possible)
    assert set(words(graph, possible[known])) == set(unique)
    assert known.sum() == len(unique)
    held_out = {t for part in parts for split in ("valid", "test") for t in part[split]}
    assert set(words(graph, possible[graph.holds_out(possible)])) == held_out - set(unique)

    for i, label in enumerate(graph.relations):
        facts = [t for t in unique if t[1] == label]
        for end, side in ((0, "head"), (2, "tail")):
            labels = graph.entities.labels(graph.seen(i, side))
            assert len(labels) == len(set(labels)) and set(labels) == {t[end] for t in facts}
        loops = sum(head == tail for head, _, tail in facts)
        assert graph.is_reflexive(np.array([i])) == [bool(facts) and rate(loops, len(facts)) > 0.05]


def rate(loops: int, facts: int) -> float:
    """The lower end of Wilson's interval of a share, one-sided at 95 %."""
    share, z = loops / facts, 1.645
    middle = share + z * z / (2 * facts)
    width = z * math.sqrt(share * (1 - share) / facts + z * z / (4 * facts * facts))
    return (middle - width) / (1 + z * z / facts)


@pytest.mark.parametrize("facts", [1, 2, 5, 20, 100, 675, 5000])
def test_a_relation_is_reflexive_by_the_share_of_its_self_loops(facts: int) -> None:
    shares = [0, 1, 2, facts // 20, facts // 10, facts // 4, facts]
    for loops in {min(count, facts) for count in shares}:
        graph = KnowledgeGraph()
        rows = [(f"e{i}", "r", f"e{i + (i >= loops)}") for i in range(facts)]
        for some in (rows[::2], rows[1::2]):  # it arrives in two parts
            if some:
                graph.add(KnowledgeStream.from_labels("loops", [some])[0])
        assert graph.is_reflexive(np.array([0])) == [rate(loops, facts) > 0.05]


def test_one_self_loop_among_hundreds_is_noise() -> None:
    found = {}
    for facts in (1, 4, 5, 675):
        graph = KnowledgeGraph()
        rows = [("Obama", "Consult", "Obama")]
        rows += [(f"e{i}", "Consult", f"e{i + 1}") for i in range(facts - 1)]
        graph.add(KnowledgeStream.from_labels("events", [rows])[0])
        found[facts] = bool(graph.is_reflexive(np.array([0]))[0])
    assert found == {1: True, 4: True, 5: False, 675: False}


@given(knowledge_lists())
def test_grows_part_by_part_like_plain_lists(parts: KnowledgeLists) -> None:
    stream = knowledge_stream(parts)
    graph = KnowledgeGraph()
    for i, part in enumerate(stream):
        before = graph.train.copy()
        labels = list(graph.entities)
        added = graph.add(part)
        check(graph, parts[: i + 1])
        # What was there before stays where it was, under the ids it had.
        np.testing.assert_array_equal(graph.train[: len(before)], before)
        assert list(graph.entities)[: len(labels)] == labels
        # A graph that follows one stream has the ids of the stream.
        assert added.index == i
        assert added.new_entities == part.new_entities
        assert added.new_relations == part.new_relations
        assert len(graph.entities) == part.num_entities
        np.testing.assert_array_equal(added.test, part.test)


@given(knowledge_lists(), knowledge_lists(max_parts=2))
def test_other_streams_are_mapped_by_label(first: KnowledgeLists, second: KnowledgeLists) -> None:
    graph = KnowledgeGraph()
    for part in [*knowledge_stream(first), *knowledge_stream(second[::-1])]:
        known = set(graph.entities)
        added = graph.add(part)
        assert known.isdisjoint(added.entities.labels(added.new_entities))
        assert known | set(added.entities.labels(added.new_entities)) == set(graph.entities)
    check(graph, first + second[::-1])


def test_what_is_held_out_is_found_without_a_look_at_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned, held_out = [("a", "r", "b"), ("b", "r", "c")], [("c", "r", "a"), ("a", "r", "b")]
    graph = KnowledgeGraph()
    graph.add(knowledge_stream([{"train": learned, "valid": [], "test": held_out}])[0])
    rows = np.concatenate([graph.train, graph.test])
    for split in ("valid", "test"):
        monkeypatch.delattr(KnowledgeGraph, split)
    assert graph.holds_out(rows).tolist() == [False, False, True, False]


def test_a_part_that_skips_earlier_ones_brings_what_it_mentions() -> None:
    stream = KnowledgeStream.from_labels("s", [[("a", "r", "b")], [("c", "q", "a")]])
    graph = KnowledgeGraph()
    added = graph.add(stream[1])
    assert list(graph.entities) == ["a", "c"]
    assert words(graph, added.train) == [("c", "q", "a")]
    assert added.new_entities == range(2)


def test_entities_without_triples_are_known() -> None:
    entities, none = Vocabulary(["a", "b"]), np.empty((0, 3), dtype=np.int64)
    graph = KnowledgeGraph()
    graph.add(KnowledgePart(0, entities, Vocabulary(), range(2), range(0), none, none, none))
    assert graph.degree(graph.entities.ids(["a", "b"])).tolist() == [0, 0]
    assert graph.train.shape == (0, 3)


def test_self_loop_stays_and_counts_once() -> None:
    graph = KnowledgeGraph()
    graph.add(KnowledgeStream.from_labels("s", [[("a", "r", "a"), ("a", "r", "b")]])[0])
    assert graph.degree(np.array([0, 1])).tolist() == [2, 1]


def test_a_full_graph_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicgrl.graph.knowledge.graph.MAX_ENTITIES", 3)
    stream = KnowledgeStream.from_labels("s", [[("a", "r", "b")], [("c", "r", "d")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    with pytest.raises(UserError, match="at most 3 entities"):
        graph.add(stream[1])
    assert list(graph.entities) == ["a", "b"] and graph.num_parts == 1


def test_a_graph_with_as_many_triples_as_rows_have_numbers_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dicgrl.graph.knowledge.graph.MAX_TRIPLES", 2)
    stream = KnowledgeStream.from_labels(
        "s", [[("a", "r", "b"), ("b", "r", "a")], [("a", "r", "a")]]
    )
    graph = KnowledgeGraph()
    graph.add(stream[0])
    with pytest.raises(UserError, match="at most 2 triples"):
        graph.add(stream[1])
    assert len(graph.train) == 2 and graph.num_parts == 1


def test_a_full_graph_learns_more_of_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts that come by themselves have all of their labels as new ones."""
    graph = KnowledgeGraph()
    graph.add(KnowledgeStream.from_labels("s", [[("a", "r", "b"), ("b", "q", "c")]])[0])
    monkeypatch.setattr("dicgrl.graph.knowledge.graph.MAX_ENTITIES", 3)
    monkeypatch.setattr("dicgrl.graph.knowledge.graph.MAX_RELATIONS", 2)
    graph.add(KnowledgeStream.from_labels("t", [[("c", "r", "a"), ("a", "q", "b")]])[0])
    assert len(graph.train) == 4
    for fact, what in ((("c", "s", "a"), "2 relations"), (("c", "r", "d"), "3 entities")):
        with pytest.raises(UserError, match=f"at most {what}"):
            graph.add(KnowledgeStream.from_labels("u", [[fact]])[0])


@given(knowledge_lists(min_train=1), st.data())
def test_triples_of_the_same_questions_are_found(
    parts: KnowledgeLists, data: st.DataObject
) -> None:
    graph = KnowledgeGraph()
    for part in knowledge_stream(parts):
        graph.add(part)
    entity = st.integers(0, len(graph.entities) - 1)
    triple = st.tuples(entity, st.integers(0, len(graph.relations) - 1), entity)
    asked = data.draw(st.lists(triple, max_size=6))
    found = graph.same_questions(np.array(asked, dtype=np.int64).reshape(-1, 3))
    expected = [
        row
        for row, (head, relation, tail) in enumerate(graph.train.tolist())
        if any(r == relation and (h == head or t == tail) for h, r, t in asked)
    ]
    assert found.tolist() == expected


@given(knowledge_lists(min_train=1), st.integers(1, 3))
def test_a_sample_of_triples_mentions_its_entities(parts: KnowledgeLists, most: int) -> None:
    graph = KnowledgeGraph()
    for part in knowledge_stream(parts):
        graph.add(part)
    everyone = np.arange(len(graph.entities))
    at, rows = graph.sample_of(everyone, most, np.random.default_rng(0))
    assert all(i in graph.train[row, [0, 2]] for i, row in zip(at.tolist(), rows, strict=True))
    drawn = np.bincount(at, minlength=len(everyone)).tolist()
    assert drawn == np.minimum(graph.degree(everyone), most).tolist()


@given(st.integers(0, 149), st.sampled_from(["train", "valid", "test"]))
def test_one_new_triple_anywhere_in_a_part_is_something_new(place: int, split: str) -> None:
    facts = [(f"e{i}", "r", f"e{i + 1}") for i in range(150)]
    graph = KnowledgeGraph()
    graph.add(KnowledgeStream.from_labels("first", [facts])[0])
    (known,) = KnowledgeStream.from_labels("again", [facts])
    assert graph.knows_all_of(known)
    other = [*facts[:place], ("e3", "r", "e77"), *facts[place:]]
    (part,) = KnowledgeStream.from_labels("other", [other])
    given = dict.fromkeys(SPLITS, known.train[:0]) | {split: part.train}
    part = replace(part, **given)
    assert not graph.knows_all_of(part)
