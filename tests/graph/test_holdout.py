from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import UserError
from dicgrl.graph import KnowledgeStreamBuilder
from dicgrl.graph.knowledge.holdout import hold_out_triples
from dicgrl.graph.network.holdout import hold_out_nodes

ids = st.integers(0, 6)
triples = st.lists(st.tuples(ids, st.integers(0, 2), ids), max_size=30)
shares = st.sampled_from([0.0, 0.1, 0.25, 0.45])


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def as_rows(rows: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


@given(triples, shares, shares, st.integers(0, 99))
def test_what_is_asked_about_was_taught(
    rows: list[tuple[int, int, int]], valid: float, test: float, seed: int
) -> None:
    sets = hold_out_triples(as_rows(rows), valid, test, generator(seed))
    train = sets[0].tolist()
    assert sorted(np.concatenate(sets).tolist()) == list(range(len(rows)))
    assert all(chosen.tolist() == sorted(chosen.tolist()) for chosen in sets)
    for column in (0, 1, 2):
        wanted = {row[column] for row in rows}
        columns = (1,) if column == 1 else (0, 2)
        assert wanted <= {rows[i][c] for i in train for c in columns}
    asked = [round(valid * len(rows)), round(test * len(rows))]
    held = [len(chosen) for chosen in sets[1:]]
    assert held[0] <= asked[0] and held[1] <= asked[1]
    single = [row for row in rows if rows.count(row) == 1]
    if len(single) - 7 - 3 >= sum(asked):  # at most one triple per entity and relation has to stay
        assert held == asked
    told = {rows[i] for i in train}
    assert not any(rows[i] in told for chosen in sets[1:] for i in chosen)


def test_a_graph_where_every_triple_is_needed_gives_none_away() -> None:
    star = as_rows([(0, 0, leaf) for leaf in range(1, 21)])
    assert [len(chosen) for chosen in hold_out_triples(star, 0.2, 0.2, generator())] == [20, 0, 0]


def test_what_can_be_spared_is_shared_in_proportion() -> None:
    # 20 relations that need one of their two triples.
    rows = as_rows([(h, r, 1 - h) for r in range(20) for h in (0, 1)])
    train, valid, test = hold_out_triples(rows, 0.4, 0.2, generator())
    assert len(train) == 20
    assert (len(valid), len(test)) == (13, 7)  # 20 by 16 : 8


@given(st.lists(st.integers(-1, 3), max_size=30), shares, shares, st.integers(0, 99))
def test_every_class_keeps_a_training_node(
    labels: list[int], valid: float, test: float, seed: int
) -> None:
    sets = hold_out_nodes(np.array(labels, dtype=np.int64), valid, test, generator(seed))
    labelled = [i for i, label in enumerate(labels) if label >= 0]
    assert sorted(np.concatenate(sets).tolist()) == labelled
    assert {labels[i] for i in sets[0]} == {labels[i] for i in labelled}
    asked = [round(valid * len(labelled)), round(test * len(labelled))]
    held = [len(chosen) for chosen in sets[1:]]
    assert held[0] <= asked[0] and held[1] <= asked[1]
    if len(labelled) - 4 >= sum(asked):
        assert held == asked


def test_the_seed_decides() -> None:
    rows = as_rows([(a, 0, b) for a in range(8) for b in range(8)])
    labels = np.zeros(64, dtype=np.int64)
    for choose in (
        lambda seed: hold_out_triples(rows, 0.2, 0.2, generator(seed)),
        lambda seed: hold_out_nodes(labels, 0.2, 0.2, generator(seed)),
    ):
        chosen = [[positions.tolist() for positions in choose(seed)] for seed in (1, 1, 2)]
        assert chosen[0] == chosen[1] != chosen[2]


@pytest.mark.parametrize(
    ("valid", "test"), [(-0.1, 0.0), (0.0, 1.0), (0.5, 0.5), (float("nan"), 0.1)]
)
def test_shares_that_leave_nothing_are_refused(valid: float, test: float) -> None:
    for choose, rows in ((hold_out_triples, as_rows([(0, 0, 1)])), (hold_out_nodes, np.array([0]))):
        with pytest.raises(UserError, match=f"valid={valid} and test={test}: shares"):
            choose(rows, valid, test, generator())


parts_of_triples = st.lists(triples, min_size=1, max_size=4)


@given(parts_of_triples, shares, shares, st.integers(0, 99))
def test_no_part_gives_away_what_another_asks(
    parts: list[list[tuple[int, int, int]]], valid: float, test: float, seed: int
) -> None:
    """A triple that comes again is not asked when it was taught, nor taught when it was asked."""
    builder = KnowledgeStreamBuilder("again")
    draws = generator(seed)
    for rows in parts:
        heads, relations, tails = ([str(row[i]) for row in rows] for i in range(3))
        builder.add_held_out(builder.rows(heads, relations, tails), valid, test, draws)
    taught, asked = set(), set()
    for part in builder.build():
        taught |= {tuple(row) for row in part.train.tolist()}
        asked |= {tuple(row) for row in (*part.valid.tolist(), *part.test.tolist())}
    assert not taught & asked
    assert len(taught | asked) == len({row for rows in parts for row in rows})
