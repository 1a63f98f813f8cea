"""The study of wrong facts, on a tiny ring."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dicgrl import KnowledgeStream, UserError, load_stream
from dicgrl.graph.knowledge import triple_keys
from dicgrl.research.cells import Cell
from dicgrl.research.forgetting import KINDS, ROWS, Division, study_forgetting
from dicgrl.research.forgetting_table import ForgettingTable
from dicgrl.research.job import reproduce
from dicgrl.research.target import Options

SMALL = ("epochs=4", "batch=16", "dim=8", "negatives=4")


def test_facts_are_divided_and_wrong_ones_are_wrong(links: str) -> None:
    stream = load_stream(links)
    assert isinstance(stream, KnowledgeStream)
    facts = Division.of(stream, 0.2, np.random.default_rng(0))
    train = np.concatenate([part.train for part in stream])
    assert len(facts.added) == len(facts.removed) == round(0.2 * len(train))
    right = {*triple_keys(facts.kept).tolist(), *triple_keys(facts.added).tolist()}
    assert right == set(triple_keys(train).tolist())
    assert len(facts.kept) + len(facts.added) == len(right)
    true = right | {key for part in stream for key in triple_keys(part.test).tolist()}
    wrong = triple_keys(facts.removed).tolist()
    assert len(set(wrong)) == len(wrong) and not true & set(wrong)
    entities = set(facts.kept[:, [0, 2]].ravel().tolist())
    assert set(facts.removed[:, [0, 2]].ravel().tolist()) <= entities


def test_the_table_has_every_model_and_what_it_cost(links: str, tmp_path: Path) -> None:
    cell = Cell(links, "transe", "fresh", wrong=20.0)
    target = ForgettingTable("forgetting", "Wrong facts", "", (cell,))
    options = Options(seeds=1, changes=SMALL)
    outcome, reports = reproduce([target], options, tmp_path / "out", device="cpu")
    assert not outcome.failed, outcome.failed
    ((report, _),) = reports
    (table,) = report["tables"]
    assert [row["model"] for row in table["rows"]] == list(ROWS)
    rows = {row["model"]: row for row in table["rows"]}
    assert all(kind in rows["never"] for kind in KINDS)
    assert rows["replaced"]["positives"]["mean"] > rows["never"]["positives"]["mean"]
    again, _ = reproduce([target], options, tmp_path / "out", device="cpu")
    assert not again.ran


def test_a_network_has_no_triples_to_get_wrong(nodes: str) -> None:
    recipe = Cell(nodes, "gat", "fresh").settings()
    with pytest.raises(UserError, match="about triples"):
        study_forgetting(load_stream(nodes), recipe, 0.1)
