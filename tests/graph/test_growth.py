"""The kinds of growth that a static graph can be divided by."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dicgrl import KnowledgeStream, UserError
from dicgrl.graph import SPLITS
from tests.graph.test_split import check_ids, check_nothing_lost, in_order
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    Node,
    Triple,
    knowledge_stream,
    labelled,
    network_in_words,
    network_stream,
)

KINDS = ("entities", "relations", "facts", "hybrid", "nightly")
RATIOS = [
    [1.0],
    [0.5, 0.5],
    [0.7, 0.2, 0.1],
    [0.25, 0.25, 0.25, 0.25],
    [0.05, 0.05, 0.9],
    [0.9, 0.05, 0.05],
]
seeds = st.integers(0, 50)
Static = dict[str, list[Triple]]


@st.composite
def static_graph(draw: st.DrawFn) -> Static:
    """Triples in three sets; a chain of training triples mentions all of sixteen entities.

    In whatever order these arrive, at least eight of them come with triples of the chain.
    """
    entity, relation = st.integers(0, 15), st.integers(0, 5)
    chain = [(i, draw(relation), i + 1) for i in range(15)]
    more = draw(st.lists(st.tuples(st.integers(0, 20), relation, entity), max_size=30))
    roles = [0] * 15 + draw(st.lists(st.integers(0, 2), min_size=30, max_size=30))
    found: Static = {split: [] for split in SPLITS}
    for (head, r, tail), role in zip(chain + more, roles, strict=False):
        found[SPLITS[role]].append((f"e{head}", f"r{r}", f"e{tail}"))
    return found


def dense_graph(relations: int = 40) -> Static:
    """1,200 training triples and 300 of each other set, evenly over 60 entities."""
    generator = np.random.default_rng(7)
    every = list(product(range(60), range(relations), range(60)))
    rows = [every[i] for i in generator.choice(len(every), 1800, replace=False)]
    triples = [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in rows]
    return {"train": triples[:1200], "valid": triples[1200:1500], "test": triples[1500:]}


DENSE = dense_graph()


def assume_relations(static: Static, count: int) -> None:
    assume(len({relation for _, relation, _ in static["train"]}) >= count)


def things(triples: list[Triple]) -> set[str]:
    return {label for triple in triples for label in triple}


def sizes_of(ratios: list[float], count: int) -> list[int]:
    ends = [round(share * count) for share in np.cumsum(ratios)]
    return np.diff([0, *ends]).tolist()


def check_questions_wait(parts: KnowledgeLists) -> None:
    """Held-out triples come when training triples have mentioned what they mention, if any do."""
    taught = things([triple for part in parts for triple in part["train"]])
    known: set[str] = set()
    for part in parts:
        known |= things(part["train"])
        assert things(part["valid"] + part["test"]) & taught <= known


def check_first_mentions(stream: KnowledgeStream, parts: KnowledgeLists) -> None:
    """What arrives with a part is mentioned by it and by none before."""
    before: set[str] = set()
    for part, lists in zip(stream, parts, strict=True):
        new = {
            *stream.entities.labels(part.new_entities),
            *stream.relations.labels(part.new_relations),
        }
        assert new == things(in_order(lists)) - before
        before |= new


@given(static_graph(), st.sampled_from(KINDS), st.sampled_from(RATIOS), seeds)
def test_every_kind(static: Static, by: str, ratios: list[float], seed: int) -> None:
    train, whole = static["train"], knowledge_stream([static])
    relations = {relation for _, relation, _ in train}
    whole_ones = by in ("entities", "relations")
    if by == "relations" and len(relations) < len(ratios):
        with pytest.raises(UserError, match=f"parts are too many: only {len(relations)} "):
            whole.split(by, ratios, seed=seed)
        return
    sizes = sizes_of(ratios, len(train))
    if not whole_ones and 0 in sizes:
        with pytest.raises(UserError, match="would be empty"):
            whole.split(by, ratios, seed=seed)
        return
    stream = whole.split(by, ratios, seed=seed)
    parts = labelled(stream)
    assert len(parts) == len(ratios) and all(part["train"] for part in parts)
    check_nothing_lost(static, parts)
    check_ids(stream, parts)
    check_first_mentions(stream, parts)
    check_questions_wait(parts)
    if not whole_ones:
        assert [len(part["train"]) for part in parts] == sizes


@given(static_graph(), st.sampled_from(RATIOS[1:]), seeds)
def test_entities_and_relations_bring_their_triples(
    static: Static, ratios: list[float], seed: int
) -> None:
    assume_relations(static, len(ratios))
    for by, columns in (("entities", (0, 2)), ("relations", (1,))):
        parts = labelled(knowledge_stream([static]).split(by, ratios, seed=seed))
        before: set[str] = set()
        for part in parts:
            assert all({t[c] for c in columns} - before for t in part["train"])
            before |= {t[c] for t in part["train"] for c in columns}


@given(static_graph(), st.integers(2, 4), seeds)
def test_a_question_about_a_taught_relation_comes_as_soon_as_it_can(
    static: Static, count: int, seed: int
) -> None:
    assume_relations(static, count)
    parts = labelled(knowledge_stream([static]).split("relations", parts=count, seed=seed))
    first: dict[str, int] = {}
    for index, part in enumerate(parts):
        for label in things(part["train"]):
            first.setdefault(label, index)
    for index, part in enumerate(parts):
        for triple in part["valid"] + part["test"]:
            if triple[1] in first:
                assert index == max(first.get(label, 0) for label in triple)


@given(static_graph(), st.floats(0.1, 0.8), seeds)
def test_the_first_part_of_facts_mentions_what_it_can(
    static: Static, first: float, seed: int
) -> None:
    parts = labelled(knowledge_stream([static]).split("facts", parts=2, first=first, seed=seed))
    every = things(static["train"])
    mentioned = things(parts[0]["train"])
    # Each triple can mention something that no other one does, until all is mentioned.
    assert len(mentioned) >= min(len(parts[0]["train"]), len(every))


def test_triples_of_rare_entities_leave_the_first_part_small() -> None:
    """Twenty entities of one triple each: these triples mention the twenty others, too."""
    rare = [(f"hub{i}", "r", f"leaf{i}") for i in range(20)]
    among = [(f"hub{i}", "r", f"hub{j}") for i in range(20) for j in range(i)]
    whole = knowledge_stream([{"train": among + rare, "valid": [], "test": []}])
    for seed in range(5):
        parts = labelled(whole.split("facts", [20 / 210, 190 / 210], seed=seed))
        assert sorted(parts[0]["train"]) == sorted(rare)


@pytest.mark.parametrize("by", KINDS)
@given(seed=seeds)
def test_later_parts_bring_what_the_kind_says(by: str, seed: int) -> None:
    stream = knowledge_stream([DENSE]).split(by, parts=5, first=0.6, seed=seed)
    late = stream.parts[1:]
    entities = sum(len(part.new_entities) for part in late)
    relations = sum(len(part.new_relations) for part in late)
    ends, relation = late[-1].train[:, [0, 2]].max(axis=1), late[-1].train[:, 1]
    # All that they mention came with the first part.
    old = np.count_nonzero((ends < stream[0].num_entities) & (relation < stream[0].num_relations))
    assert (entities > 0) == (by in ("entities", "hybrid", "nightly"))
    assert (relations > 0) == (by in ("relations", "hybrid"))
    assert (old > 0) == (by in ("facts", "hybrid", "nightly"))
    if by == "facts":
        assert old == len(late[-1].train)
    for part, share in zip(stream, [0.6, 0.1, 0.1, 0.1, 0.1], strict=True):
        # Entities and relations arrive with about 40 and 30 triples each.
        assert abs(len(part.train) - 1200 * share) <= (40 if by in KINDS[:2] else 1)
        if by in ("facts", "nightly"):
            assert abs(len(part.test) - 300 * share) <= 50


def test_nightly_has_a_large_first_part_and_forty_small_ones() -> None:
    stream = knowledge_stream([DENSE]).split("nightly")
    sizes = [len(part.train) for part in stream]
    assert sizes[0] == 900 and len(sizes) == 41
    assert max(sizes[1:]) - min(sizes[1:]) <= 1


def test_what_would_fill_a_later_part_comes_first() -> None:
    hub = [("hub", "r", f"a{i}") for i in range(50)]
    pairs = [(f"a{i}", f"s{i}", f"a{i + 1}") for i in range(49)]
    whole = knowledge_stream([{"train": pairs + hub, "valid": [], "test": []}])
    for by, seed in product(("entities", "relations", "hybrid", "nightly"), range(5)):
        first = things(labelled(whole.split(by, parts=5, first=0.6, seed=seed))[0]["train"])
        assert "r" in first and "hub" in first


def test_one_large_relation_leaves_even_parts_of_the_others() -> None:
    large = [(f"a{i}", "large", f"b{i}") for i in range(500)]
    small = [(f"a{i}", f"r{i % 8}", f"c{i}") for i in range(80)]
    whole = knowledge_stream([{"train": small + large, "valid": [], "test": []}])
    stream = whole.split("relations", parts=5)
    assert [len(part.train) for part in stream] == [500, 20, 20, 20, 20]


def test_the_largest_relations_come_first_where_all_are_large() -> None:
    sizes = {"a": 20, "b": 100, "c": 20, "d": 60, "e": 20}
    rows = [(f"{r}{i}", r, f"{r}{i + 1}") for r, size in sizes.items() for i in range(size)]
    whole = knowledge_stream([{"train": rows, "valid": [], "test": []}])
    for seed in range(5):
        stream = whole.split("relations", parts=4, first=0.7, seed=seed)
        assert [len(part.train) for part in stream] == [160, 20, 20, 20]


@pytest.mark.parametrize("by", KINDS)
def test_the_seed_decides(by: str) -> None:
    whole = knowledge_stream([DENSE])
    first, again, other = (
        labelled(whole.split(by, parts=4, seed=seed, valid=0.1)) for seed in (3, 3, 4)
    )
    assert first == again != other


@given(static_graph(), st.sampled_from(("facts", "hybrid", "nightly")), seeds)
def test_held_out_shares_come_from_train(static: Static, by: str, seed: int) -> None:
    distinct = {split: list(dict.fromkeys(static[split])) for split in SPLITS}
    asked = {*distinct["valid"], *distinct["test"]}
    distinct["train"] = [triple for triple in distinct["train"] if triple not in asked]
    assume(len(distinct["train"]) >= 4)
    whole = knowledge_stream([distinct])
    plain = labelled(whole.split(by, parts=2, seed=seed))
    held = labelled(whole.split(by, parts=2, seed=seed, valid=0.2, test=0.2))
    for before, after in zip(plain, held, strict=True):
        assert sorted(in_order(before)) == sorted(in_order(after))
        assert things(before["train"]) == things(after["train"])
    check_questions_wait(held)


def test_parts_and_first_stand_for_ratios() -> None:
    whole = knowledge_stream([DENSE])
    for by, given_, ratios in (
        ("order", {}, [0.8, 0.05, 0.05, 0.05, 0.05]),
        ("arrival", {"parts": 4}, [0.25] * 4),
        ("facts", {"parts": 3, "first": 0.5}, [0.5, 0.25, 0.25]),
        ("hybrid", {"first": 0.6}, [0.6, 0.1, 0.1, 0.1, 0.1]),
        ("nightly", {"parts": 6}, [0.75, *[0.05] * 5]),
        ("nightly", {"parts": 1}, [1.0]),
    ):
        assert labelled(whole.split(by, **given_)) == labelled(whole.split(by, ratios))


@pytest.mark.parametrize(
    ("by", "how", "message"),
    [
        ("facts", {"ratios": [0.5, 0.5], "parts": 2}, "give the one or the other"),
        ("order", {"ratios": [0.5, 0.5], "first": 0.5}, "give the one or the other"),
        ("nightly", {"first": 1.0}, "first=1.0: .* between 0 and 1"),
        ("nightly", {"first": 0}, "between 0 and 1"),
        ("nightly", {"first": float("nan")}, "between 0 and 1"),
        ("arrival", {"parts": 0}, "at least one"),
        ("nightly", {"parts": -3}, "at least one"),
        ("nightly", {"parts": 1, "first": 0.5}, "a single part has everything"),
        ("nightly", {}, "part 1 of 41 would be empty: 3 .* are too few"),
        ("nightly", {"ratios": [1.0], "times": [1, 2, 3]}, "times are needed"),
    ],
)
def test_impossible_shares(by: str, how: dict[str, object], message: str) -> None:
    knowledge = KnowledgeStream.from_labels(
        "s", [[("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]]
    )
    nodes = [Node(name, "x", 0, (0.0, 0.0)) for name in "abc"]
    streams = [knowledge, network_stream(NetworkLists([nodes], [[]]))]
    for stream in streams[: 1 if by == "facts" else 2]:
        with pytest.raises(UserError, match=message):
            stream.split(by, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("facts", "would be empty: 4 training triples are too few"),
        ("hybrid", "would be empty: 4 training triples are too few"),
        ("relations", "5 parts are too many: only 2 relations bring training triples"),
        ("entities", "5 parts are too many: only . entities bring training triples"),
        ("fact", "unknown way to split 'fact'; did you mean 'facts'"),
    ],
)
def test_graphs_that_are_too_small(by: str, message: str) -> None:
    rows = [("a", "r", "b"), ("b", "s", "c"), ("c", "r", "a"), ("b", "r", "b")]
    with pytest.raises(UserError, match=message):
        KnowledgeStream.from_labels("s", [rows]).split(by, parts=5)


def test_a_graph_without_training_triples_cannot_grow() -> None:
    whole = knowledge_stream([{"train": [], "valid": [("a", "r", "b")], "test": []}])
    for by in KINDS:
        with pytest.raises(UserError, match=r"would be empty|too many"):
            whole.split(by, parts=1)


def test_nodes_arrive_by_night() -> None:
    nodes = [Node(f"n{i}", "x", 0, (float(i), 0.0)) for i in range(200)]
    edges = [(f"n{i}", f"n{i * 7 % 200}") for i in range(200)]
    whole = network_stream(NetworkLists([nodes], [edges]))
    stream = whole.split("nightly", parts=11, seed=2)
    assert [len(part.new_nodes) for part in stream] == [150, *[5] * 10]
    assert sum(len(part.edges) for part in stream) == 200
    same, other = (whole.split("nightly", parts=11, seed=seed) for seed in (2, 3))
    assert network_in_words(same) == network_in_words(stream) != network_in_words(other)


@pytest.mark.parametrize("by", KINDS[:-1])
def test_networks_grow_by_nodes_alone(by: str) -> None:
    nodes = [Node(name, "x", 0, (0.0, 0.0)) for name in "abc"]
    stream = network_stream(NetworkLists([nodes], [[]]))
    with pytest.raises(UserError, match=f"'{by}': a network can only be split by arrival, class, "):
        stream.split(by)
