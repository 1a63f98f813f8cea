"""`dicgrl evaluate`: triples of one's own as a test set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
)
from tests.cli.helpers import Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_triples_of_ones_own_are_measured_like_a_test_set(cli: Cli) -> None:
    learner = Learner.load("plain", device="cpu")
    expected = learner.evaluation().tests[0]
    found = json.loads(cli("evaluate", "plain", "ring/0/test.txt", "--json", "--by-relation").out)
    names = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank", "count")
    assert {name: found[name] for name in names} == pytest.approx(
        {name: expected[name] for name in names}
    )
    assert (found["known"], found["unknown"]) == (0, 0)
    sides = found["relations"]
    assert sum(side["count"] for side in sides) == 2 * found["count"]
    mean = sum(side["mrr"] * side["count"] for side in sides) / (2 * found["count"])
    assert mean == pytest.approx(found["mrr"])
    learned = json.loads(cli("evaluate", "plain", "ring/0/train.txt", "--json").out)
    assert learned["known"] == learned["count"] > 0 and "relations" not in learned
    table = cli("evaluate", "plain", "ring/0/test.txt", "--by-relation").out
    assert "plus 1" in table and "all" in table
    Path("none.tsv").write_text("nobody\tplus 1\te2\n")
    refused(cli("evaluate", "plain", "none.tsv", "--skip-unknown"), "no triple to measure with")
    refused(cli("evaluate", "nodes", "ring/0/test.txt"), "about triples")


def test_triples_that_are_measured_filter_each_other(cli: Cli) -> None:
    """Two answers to one question that nobody knew of: each is ranked as if alone."""
    both, one = (
        json.loads(cli("evaluate", "plain", name, "--json").out)["mean_rank"]
        for name in _written({"both": ["e1", "e2"], "one": ["e1"]})
    )
    other = json.loads(cli("evaluate", "plain", *_written({"other": ["e2"]}), "--json").out)
    assert both <= (one + other["mean_rank"]) / 2
    learner = Learner.load("plain", device="cpu")
    scores = learner.score([("e9", "plus 5", "e1"), ("e9", "plus 5", "e2")])
    assert scores[0] != scores[1]  # one stands before the other, and is taken out
    assert both < (one + other["mean_rank"]) / 2


def _written(files: dict[str, list[str]]) -> list[str]:
    for name, tails in files.items():
        Path(name).write_text("".join(f"e9\tplus 5\t{tail}\n" for tail in tails))
    return list(files)
