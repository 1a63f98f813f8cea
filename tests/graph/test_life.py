"""Facts that change: the graph after any sequence of changes, against plain Python lists."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import KnowledgeGraph, KnowledgeStream, Learner, UserError
from dicgrl.graph import SPLITS
from dicgrl.graph.change import FORGET, LEARN, MERGE, RENAME, REPLACE, Change
from dicgrl.graph.knowledge.keys import NARROW_ENTITIES
from dicgrl.graph.knowledge.replay import Replay
from tests.streams import Triple, knowledge_stream

Facts = dict[str, list[Triple]]
ENTITIES, RELATIONS = "abcde", "rs"
triples = st.tuples(
    st.sampled_from(ENTITIES), st.sampled_from(RELATIONS), st.sampled_from(ENTITIES)
)
few = st.lists(triples, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just(LEARN), few, few, few),
        st.tuples(st.just(FORGET), few),
        st.tuples(st.just(REPLACE), few, few),
        st.tuples(st.just(RENAME), st.sampled_from(("entities", "relations")), st.integers(0, 9)),
        st.tuples(
            st.just(MERGE),
            st.sampled_from(("entities", "relations")),
            st.integers(0, 9),
            st.integers(0, 9),
        ),
    ),
    max_size=8,
)

# From which entity on keys are pairs: from the first one, from a later one, or never.
limits = st.sampled_from([0, 3, NARROW_ENTITIES])


@dataclass
class Slow:
    """The same as lists that are searched from one end to the other; facts are triples of ids."""

    parts: list[dict[str, list[tuple[int, ...]]]] = field(default_factory=list)
    labels: dict[str, list[str]] = field(default_factory=lambda: {"entities": [], "relations": []})
    finds: dict[str, dict[str, int]] = field(
        default_factory=lambda: {"entities": {}, "relations": {}}
    )
    touched: dict[str, set[int]] = field(
        default_factory=lambda: {"entities": set(), "relations": set()}
    )
    merged: dict[str, set[int]] = field(
        default_factory=lambda: {"entities": set(), "relations": set()}
    )

    def id_of(self, kind: str, label: str) -> int:
        if label not in self.finds[kind]:
            self.finds[kind][label] = len(self.labels[kind])
            self.labels[kind].append(label)
        return self.finds[kind][label]

    def learn(self, facts: Facts) -> None:
        known = [t for part in self.parts for t in part["train"]]
        rows = {s: [self.ids(t) for t in facts[s]] for s in SPLITS}
        rows["train"] = list(dict.fromkeys(t for t in rows["train"] if t not in known))
        self.parts.append(rows)

    def ids(self, triple: Triple) -> tuple[int, ...]:
        head, relation, tail = triple
        ends = self.id_of("entities", head), self.id_of("entities", tail)
        return ends[0], self.id_of("relations", relation), ends[1]

    def forget(self, gone: list[tuple[int, ...]]) -> None:
        for head, relation, tail in gone:
            self.touched["entities"] |= {head, tail}
            self.touched["relations"].add(relation)
        for part in self.parts:
            for split in SPLITS:
                part[split] = [t for t in part[split] if t not in gone]

    def merge(self, kind: str, kept: int, gone: int) -> None:
        def same(triple: tuple[int, ...]) -> tuple[int, ...]:
            ours = [column % 2 == (kind == "relations") for column in range(3)]
            return tuple(
                kept if mine and x == gone else x for mine, x in zip(ours, triple, strict=True)
            )

        seen: set[tuple[int, ...]] = set()
        for part in self.parts:
            for split in SPLITS:
                part[split] = [same(t) for t in part[split]]
            part["train"] = [t for t in part["train"] if not (t in seen or seen.add(t))]  # type: ignore[func-returns-value]
        self.finds[kind] = {k: kept if v == gone else v for k, v in self.finds[kind].items()}
        self.merged[kind].add(gone)

    def retired(self, kind: str) -> list[int]:
        columns = (0, 2) if kind == "entities" else (1,)
        every = [t for part in self.parts for split in SPLITS for t in part[split]]
        there = {t[column] for t in every for column in columns}
        return sorted((self.touched[kind] | self.merged[kind]) - there)


def part_of(facts: Facts) -> Any:
    return knowledge_stream([facts])[0]


def live(graph: KnowledgeGraph, slow: Slow, sequence: list[Any]) -> list[Change]:
    """Let all steps happen to both; those that make no sense are left out."""
    history = []
    for number, (kind, *given_) in enumerate(sequence):
        change = None
        if kind == LEARN:
            facts = dict(zip(SPLITS, given_, strict=True))
            if any(facts.values()):
                change = Change(LEARN, part_of(facts))
                slow.learn(facts)
        elif kind in (FORGET, REPLACE):
            old = part_of({"train": given_[0], "valid": [], "test": []}) if given_[0] else None
            empty = {"triples": np.empty((0, 3), int)}, 0
            found, asked = graph.known_in(old) if old is not None else empty
            assert asked == len(set(given_[0]))
            new = {"train": given_[1] if kind == REPLACE else [], "valid": [], "test": []}
            if len(found["triples"]) and (kind == FORGET or new["train"]):
                slow.forget([tuple(t) for t in found["triples"].tolist()])
                part = part_of(new) if kind == REPLACE else None
                change = Change(kind, part, found)
                if part is not None:
                    slow.learn(new)
        elif kind == RENAME:
            name, at = given_
            if at < len(slow.labels[name]) and at not in slow.merged[name]:
                new_label = f"{name}{number}"
                labels = {"vocabulary": name, "new": [new_label]}
                change = Change(RENAME, None, {"ids": np.array([at])}, labels)
                slow.finds[name][new_label] = slow.finds[name].pop(slow.labels[name][at])
                slow.labels[name][at] = new_label
        else:
            name, kept, gone = given_
            exist = max(kept, gone) < len(slow.labels[name]) and kept != gone
            if exist and not {kept, gone} & slow.merged[name]:
                labels = {"vocabulary": name}
                change = Change(MERGE, None, {"ids": np.array([[kept, gone]])}, labels)
                slow.merge(name, kept, gone)
        if change is not None:
            history.append(graph.apply(change))
            check(graph, slow)
    return history


def check(graph: KnowledgeGraph, slow: Slow) -> None:
    assert list(graph.entities) == slow.labels["entities"]
    assert list(graph.relations) == slow.labels["relations"]
    assert graph.num_parts == len(slow.parts)
    for name, vocabulary in graph.vocabularies().items():
        assert graph.retired(name).tolist() == slow.retired(name)
        for label, number in slow.finds[name].items():
            assert vocabulary.ids([label]).tolist() == [number]
    for number, part in enumerate(slow.parts):
        for split in SPLITS:
            assert list(map(tuple, graph.rows(split, number, number + 1).tolist())) == part[split]
    train = [t for part in slow.parts for t in part["train"]]
    held_out = {t for part in slow.parts for s in ("valid", "test") for t in part[s]}
    size, kinds = len(graph.entities), len(graph.relations)
    possible = np.array(list(np.ndindex(size, kinds, size)), dtype=np.int64).reshape(-1, 3)
    listed = list(map(tuple, possible.tolist()))
    assert graph.contains(possible).tolist() == [t in train for t in listed]
    assert graph.holds_out(possible).tolist() == [t in held_out and t not in train for t in listed]
    assert graph.times_asked(possible).tolist() == [
        sum(t[:2] == u[:2] for u in train) + sum(t[1:] == u[1:] for u in train) for t in listed
    ]
    everyone, every = np.arange(size), np.arange(kinds)
    positions, rows = graph.triples_of(everyone)
    for entity in range(size):
        mentions = [row for row, t in enumerate(train) if entity in (t[0], t[2])]
        assert sorted(rows[positions == entity].tolist()) == mentions
    for relation in range(kinds):
        facts = [t for t in train if t[1] == relation]
        loops, usual = sum(t[0] == t[2] for t in facts), len(facts) / 20
        many = loops > usual + 1.645 * math.sqrt(usual * 19 / 20)
        assert graph.is_reflexive(every[[relation]]).tolist() == [many]
        for side, end in (("head", 0), ("tail", 2)):
            assert graph.seen(relation, side).tolist() == sorted({t[end] for t in facts})
    if graph.num_parts:
        counts = graph.evidence(every, relations=True)[0].tolist()
        assert counts == [sum(t[1] == r for t in train) for r in range(kinds)]


@given(steps, limits)
def test_any_life_is_that_of_plain_lists(sequence: list[Any], limit: int) -> None:
    with patch("dicgrl.graph.knowledge.keys.NARROW_ENTITIES", limit):
        live(KnowledgeGraph(), Slow(), sequence)


@given(steps, limits)
def test_a_history_makes_the_graph_again(sequence: list[Any], limit: int) -> None:
    with patch("dicgrl.graph.knowledge.keys.NARROW_ENTITIES", limit):
        check_made_again(sequence)


def check_made_again(sequence: list[Any]) -> None:
    graph, slow = KnowledgeGraph(), Slow()
    history = live(graph, slow, sequence)
    again = KnowledgeGraph()
    replayed = again.replay(history)
    check(again, slow)
    everyone = np.arange(len(graph.entities))
    for ours, theirs in zip(graph.triples_of(everyone), again.triples_of(everyone), strict=True):
        assert ours.tolist() == theirs.tolist()  # in the same order, which draws depend on
    for one, other in zip(history, replayed, strict=True):
        assert one.kind == other.kind
        assert (one.part is None) == (other.part is None)
        if one.part is not None and other.part is not None:
            assert one.part.new_labels() == other.part.new_labels()
            assert one.part.index == other.part.index


def test_what_is_forgotten_is_in_no_index_any_more() -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b"), ("a", "r", "c")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    stayed = graph.forget({"triples": np.array([[0, 0, 1]])})
    assert stayed["train"].tolist() == [False, True]
    assert graph.train.tolist() == [[0, 0, 2]]
    assert graph.same_questions(np.array([[0, 0, 1]])).tolist() == [0]
    assert graph.retired("entities").tolist() == [1]


def test_a_fact_about_it_brings_an_entity_back() -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b"), ("a", "r", "c")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    graph.forget({"triples": np.array([[0, 0, 1]])})
    back = KnowledgeStream.from_labels("x", [[("c", "r", "b")]])[0]
    added = graph.add(back)
    assert not len(added.new_entities)
    assert not len(graph.retired("entities"))


def test_who_looked_before_keeps_what_was_there() -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b"), ("a", "r", "c")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    before = graph.train
    graph.forget({"triples": np.array([[0, 0, 1]])})
    assert before.tolist() == [[0, 0, 1], [0, 0, 2]]


def test_a_replacement_that_does_not_fit_changes_nothing() -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b"), ("a", "r", "c")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    wrong = replace(stream[0], train=np.array([[0, 0, 7]]))
    with pytest.raises(UserError, match="7"):
        graph.apply(Change(REPLACE, wrong, {"triples": np.array([[0, 0, 1]])}))
    assert len(graph.train) == 2


def test_a_label_that_is_there_is_no_new_one() -> None:
    stream = KnowledgeStream.from_labels("x", [[("a", "r", "b")]])
    graph = KnowledgeGraph()
    graph.add(stream[0])
    labels = {"vocabulary": "entities", "old": ["a"], "new": ["b"]}
    with pytest.raises(UserError, match="merge"):
        graph.apply(Change(RENAME, None, {"ids": np.array([0])}, labels))
    assert list(graph.entities) == ["a", "b"]


ids = st.integers(0, 6)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=8))
def test_merges_of_a_row_are_done_in_their_order(pairs: list[tuple[int, int]]) -> None:
    slow = list(range(7))
    for kept, gone in pairs:
        slow = [kept if number == gone else number for number in slow]
    left = Replay()
    rows = np.array([[number, 0, 6 - number] for number in range(7)])
    left._left["train"].add(rows, 0)
    left.num_parts = 1
    left.merge("entities", np.array(pairs))
    found = {tuple(row) for row in left.settled()[0]["train"].tolist()}
    assert found == {(slow[number], 0, slow[6 - number]) for number in range(7)}


@pytest.mark.filterwarnings("ignore::dicgrl.errors.ModelWarning")
def test_small_parts_keep_no_old_copies_of_the_graph_alive() -> None:
    facts = [(f"e{i}", "r", f"e{i + 1}") for i in range(500)]
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn(facts)
    for number in range(6):
        learner.learn([(f"e{number}", "s", "e7")])
        learner.forget(facts[number : number + 1])
    arrays = [getattr(part, split) for part in learner.trainer.taken for split in SPLITS]
    buffers = {id(array.base): array.base.nbytes for array in arrays if array.base is not None}
    own = sum(array.nbytes for array in arrays if array.base is None)
    assert own == 12 * 500  # the part of which something was forgotten
    assert len(buffers) <= len(SPLITS)
    part = learner.trainer.taken[3]
    assert part.entities.labels(part.train[:, 0]) == ["e2"]
