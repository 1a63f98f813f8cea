"""The nightly job on a ring of entities, and on circles of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeStream, Learner, NightOptions, UserError, nightly
from dicgrl.graph import SPLITS
from dicgrl.graph.times import told
from dicgrl.jobs.results import results_of
from dicgrl.jobs.versions import verified
from dicgrl.report.night_text import verdict
from dicgrl.store.run_folder import RunFolder
from tests.runs import files_in
from tests.tiny import learner_of, stream_of

ABOUT = {"dataset": "tiny", "task": "link-prediction", "recipe": "default", "published": {}}
CPU = NightOptions(device="cpu")


def begun(place: Path, kind: str = "links", **changes: Any) -> Learner:
    """A run of the first part of a stream, measured."""
    learner = learner_of(kind, "fresh", **changes)
    learner.learn(stream_of(kind)[0])
    learner.evaluate(at_most=2000)
    learner.save(place, about=ABOUT, results=results_of(learner, ABOUT))
    return learner


@pytest.fixture
def run(tmp_path: Path) -> Path:
    begun(tmp_path / "run")
    return tmp_path / "run"


def by_hand(learner: Learner, part: Any) -> tuple[int, list[float]]:
    """How many facts name only what is known, and their ranks, candidate by candidate."""
    trainer = learner.trainer
    known = {label: i for i, label in enumerate(trainer.graph.entities)}
    relations = {label: i for i, label in enumerate(trainer.graph.relations)}

    def ours(split: str) -> list[tuple[int, int, int]]:
        named = [labelled(part, row) for row in getattr(part, split).tolist()]
        return [(known.get(h, -1), relations.get(r, -1), known.get(t, -1)) for h, r, t in named]

    true = {row for split in SPLITS for row in ours(split)}
    true |= {tuple(row) for split in SPLITS for row in trainer.examples(split).tolist()}
    asked = [row for row in ours("train") if min(row) >= 0]
    ranks = []
    for head, relation, tail in asked:
        for side in (0, 2):
            every = [
                (head, relation, other) if side else (other, relation, tail)
                for other in range(len(known))
            ]
            scores = trainer.model.score(*torch.tensor(every).T).tolist()
            target = scores[tail if side else head]
            rivals = [s for s, row in zip(scores, every, strict=True) if row not in true]
            higher, equal = (sum(s > target for s in rivals), sum(s == target for s in rivals))
            ranks.append(1 + higher + equal / 2)
    return len(asked), ranks


def labelled(part: Any, row: list[int]) -> tuple[str, str, str]:
    head, tail = part.entities.labels([row[0], row[2]])
    return head, part.relations.labels([row[1]])[0], tail


def test_facts_are_asked_before_they_are_learned(run: Path) -> None:
    before = Learner.load(run, device="cpu")
    facts = [("e0", "plus 5", "e9"), ("e3", "plus 2", "e1"), ("e4", "plus 1", "e4")]
    facts += [("newcomer", "plus 1", "e0"), ("e1", "likes", "e2"), ("e1", "plus 2", "newcomer")]
    count, ranks = by_hand(before, KnowledgeStream.from_labels("tonight", [facts])[0])
    night = nightly(run, facts, CPU).night
    foretold = night["foretold"]
    assert (foretold["answerable"], foretold["asked"]) == (count, count)
    assert 3 == count < foretold["facts"] == night["facts"]["learned"]
    assert foretold["metrics"]["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-5)
    assert night["facts"]["newcomers"] == foretold["facts"] - count


def test_a_night_is_one_version_and_its_report(run: Path) -> None:
    outcome = nightly(run, stream_of("links")[1], CPU)
    folder = RunFolder(run)
    assert len(folder.versions()) == 2 == outcome.night["version"] and outcome.kept
    assert folder.nights() == [outcome.night] == [folder.night(1)]
    assert json.loads((run / "nights" / "0001.json").read_text()) == outcome.night
    page = folder.night_page(1)
    assert page == outcome.page.read_text() and page.startswith("<!doctype html>")
    assert "http" not in page.replace("http://www.w3.org", "")  # it needs nothing else
    assert verified(run).clean


def test_a_night_learns_what_learn_would(run: Path, tmp_path: Path) -> None:
    other = Learner.load(run, device="cpu")
    other.learn(stream_of("links")[1])
    nightly(run, stream_of("links")[1], CPU)
    mine = Learner.load(run, device="cpu")
    assert (mine.trainer.model.entities.rows == other.trainer.model.entities.rows).all()


def test_a_gate_that_fails_leaves_the_run_and_a_report(run: Path) -> None:
    before = Learner.load(run, device="cpu")
    options = NightOptions(device="cpu", fail_if=("mrr < 100%", "mrr-drop 100%"))
    outcome = nightly(run, stream_of("links")[1], options)
    assert outcome.failed == ["mrr < 100%"] and not outcome.kept
    folder = RunFolder(run)
    assert len(folder.versions()) == 1 == outcome.night["version"]
    after = Learner.load(run, device="cpu")
    assert (after.trainer.model.entities.rows == before.trainer.model.entities.rows).all()
    assert after.num_entities == before.num_entities
    anyway = NightOptions(device="cpu", fail_if=("mrr < 100%",), keep_anyway=True)
    again = nightly(run, stream_of("links")[1], anyway)
    assert again.failed and again.kept and again.night["version"] == 2
    assert [night["kept"] for night in folder.nights()] == [False, True]


def test_a_mistake_leaves_everything(run: Path) -> None:
    before = files_in(run)
    for options, facts in (
        (NightOptions(device="cpu", fail_if=("mrr-drop",)), stream_of("links")[1]),
        (NightOptions(device="cpu", fail_if=("accuracy < 5%",)), stream_of("links")[1]),
        (NightOptions(device="cpu", test=1.5), stream_of("links")[1]),
        (NightOptions(device="cpu", evaluate="some"), stream_of("links")[1]),
        (NightOptions(device="cpu", evaluate="none", fail_if=("mrr < 5%",)), run),
        (CPU, run / "nothing.tsv"),
        (CPU, stream_of("nodes")[0]),
    ):
        with pytest.raises(UserError):
            nightly(run, facts, options)
        assert files_in(run).keys() - {run / ".lock"} == before.keys() - {run / ".lock"}
        assert len(RunFolder(run).versions()) == 1


def test_nothing_new_is_a_night_without_a_version(run: Path) -> None:
    known = [("e0", "plus 1", "e1")]
    night = nightly(run, known, CPU).night
    assert (night["version"], night["kept"], night["facts"]["new"]) == (1, True, 0)
    assert night["facts"]["known"] + night["facts"]["held_out"] == 1
    assert len(RunFolder(run).versions()) == 1
    silent = NightOptions(device="cpu", fail_if=("facts < 1", "mrr < 100%"))
    assert nightly(run, known, silent).failed == ["facts < 1"]


def test_before_is_measured_on_the_same_questions(run: Path) -> None:
    """The stored measurement of the last night is what its model really knows."""
    before = Learner.load(run, device="cpu")
    mrr = before.trainer.measure(before.trainer.examples("test", 0, 1))["mrr"]
    night = nightly(run, stream_of("links")[1], CPU).night
    assert night["held_out"]["before"]["metrics"]["mrr"] == pytest.approx(mrr)
    after = Learner.load(run, device="cpu")
    mrr = after.trainer.measure(after.trainer.examples("test", 0, 1))["mrr"]
    assert night["held_out"]["same"]["metrics"]["mrr"] == pytest.approx(mrr)


def test_a_share_is_held_out_and_measured_from_then_on(run: Path) -> None:
    facts = [(f"e{i}", "likes", f"e{j}") for i in range(10) for j in range(10) if i != j]
    options = NightOptions(device="cpu", test=0.25)
    night = nightly(run, facts, options).night
    assert night["facts"]["learned"] + round(0.25 * 90) == night["facts"]["new"] == 90
    trainer = Learner.load(run, device="cpu").trainer
    assert trainer.count("test", 1) == round(0.25 * 90)
    taught = set(trainer.examples("train")[:, 1].tolist())
    assert set(trainer.examples("test")[:, 1].tolist()) <= taught
    again = nightly(run, facts, options).night  # what is held out stays so
    assert again["facts"]["held_out"] == round(0.25 * 90) and not again["facts"]["new"]


def test_what_is_held_out_of_dated_facts_takes_its_date_along(tmp_path: Path) -> None:
    learner = learner_of("links")
    learner.learn([("a", "r", f"b{i}", f"2001-01-0{i + 1}") for i in range(8)])
    learner.save(tmp_path / "run")
    facts = [(f"b{i}", "r", f"b{j}", f"2002-01-0{i + 1}") for i in range(8) for j in range(i)]
    night = nightly(tmp_path / "run", facts, NightOptions(device="cpu", test=0.25)).night
    assert (night["facts"]["learned"], night["facts"]["new"]) == (21, 28)
    trainer = Learner.load(tmp_path / "run", device="cpu").trainer
    days = {tuple(fact): day for *fact, day in facts}
    rows = trainer.examples("train", 1).cpu().numpy()
    learned = [labelled(trainer.part, row) for row in rows.tolist()]
    assert [told(moment) for moment in trainer.graph.dates(rows)] == [days[f] for f in learned]


def test_nodes_without_a_class_leave_nothing_to_hold_out(tmp_path: Path) -> None:
    begun(tmp_path / "run", "nodes")
    night = nightly(tmp_path / "run", [("n0", "n9")], NightOptions(device="cpu", test=0.5)).night
    assert night["facts"]["new"] == 1 and not night["facts"]["held_out"]


def test_what_teaches_something_new_is_never_held_out(run: Path) -> None:
    options = NightOptions(device="cpu", test=0.9)
    facts = [(f"new {i}", "plus 1", "e1") for i in range(20)]
    assert nightly(run, facts, options).night["facts"]["learned"] == 20


@pytest.mark.parametrize("killed", ["json", "page"])
def test_what_a_killed_night_did_not_write_is_written_by_the_next(run: Path, killed: str) -> None:
    outcome = nightly(run, stream_of("links")[1], CPU)
    for ending in ("html",) if killed == "page" else ("html", "json"):
        RunFolder(run).night_file(1, ending).unlink()
    nightly(run, stream_of("links")[2], CPU)
    assert outcome.page.exists() and RunFolder(run).night_file(1, "json").exists()


def test_a_copy_has_the_nights(run: Path, tmp_path: Path) -> None:
    nightly(run, stream_of("links")[1], CPU)
    RunFolder(run).backup(tmp_path / "copy")
    copy = RunFolder(tmp_path / "copy")
    assert copy.nights() == RunFolder(run).nights()
    assert copy.night_page(1) == RunFolder(run).night_page(1)


def test_there_is_no_other_night(run: Path) -> None:
    assert RunFolder(run).nights() == []
    for number in (None, 0, 1, 7):
        with pytest.raises(UserError, match="no night"):
            RunFolder(run).night(number)
    assert RunFolder(run.parent / "no run").nights() == []


def test_nodes_are_asked_with_the_edges_that_they_bring(tmp_path: Path) -> None:
    begun(tmp_path / "run", "nodes")
    before = Learner.load(tmp_path / "run", device="cpu")
    classes = before.count("classes")
    night = nightly(tmp_path / "run", stream_of("nodes")[1], CPU).night
    after = Learner.load(tmp_path / "run", device="cpu").trainer
    nodes = after.examples("train", 1)
    assert night["foretold"]["facts"] == len(nodes)
    known = nodes[after.labels[nodes] < classes]
    assert night["foretold"]["answerable"] == len(known)
    guesses = after.scores_by(before.trainer.model)[known].argmax(1)
    right = (guesses == after.labels[known]).double().mean().item()
    assert night["foretold"]["metrics"]["accuracy"] == pytest.approx(right)
    assert set(night["held_out"]["metrics"]) >= {"accuracy"} and night["moved"]["nodes"]
    assert "gain" not in night["retraining"]
    gate = NightOptions(device="cpu", fail_if=("accuracy-drop 99%", "foretold-accuracy < 0%"))
    assert nightly(tmp_path / "run", stream_of("nodes")[2], gate).kept


def test_a_night_of_edges_alone_is_no_night_without_anything_new(tmp_path: Path) -> None:
    """They make a version, though nobody's class is learned from them."""
    begun(tmp_path / "run", "nodes")
    versions = len(RunFolder(tmp_path / "run").versions())
    night = nightly(tmp_path / "run", [("n0", "n9"), ("n1", "n8")], CPU).night
    assert night["facts"]["new"] == 2 and night["facts"]["learned"] == 0
    assert night["version"] == versions + 1
    assert verdict(night) == f"kept as version {versions + 1}"
    gate = NightOptions(device="cpu", fail_if="facts < 1")
    assert nightly(tmp_path / "run", [("n0", "n7")], gate).kept
    again = nightly(tmp_path / "run", [("n0", "n7")], gate)
    assert again.night["gates"][0]["failed"] and again.night["version"] == versions + 2
    assert verdict(again.night) == f"nothing new: the run is version {versions + 2}, as before"


def test_a_night_that_notes_dates_alone_says_that_it_made_a_version(tmp_path: Path) -> None:
    learner = learner_of("links")
    learner.learn([("a", "r", "b", "2001"), ("b", "r", "c", "2001")])
    learner.save(tmp_path / "run")
    night = nightly(tmp_path / "run", [("a", "r", "b", "2002")], CPU).night
    assert (night["version"], verdict(night)) == (2, "kept as version 2")


def test_validation_facts_are_measured_where_there_is_no_test_set(tmp_path: Path) -> None:
    learner = learner_of("links", "fresh")
    part = stream_of("links")[0]
    facts = [labelled(part, row) for row in part.train.tolist()]
    stream = type(stream_of("links")).from_labels("tiny", [facts], valid=0.3)  # type: ignore[attr-defined]
    learner.learn(stream[0])
    learner.save(tmp_path / "run", about=ABOUT)
    options = NightOptions(device="cpu", fail_if=("mrr-drop 100%", "mrr-drop 100% since best"))
    for night in (1, 2):
        found = nightly(tmp_path / "run", [("e1", "likes", f"e{3 + night}")], options).night
        assert found["held_out"]["split"] == "valid" and found["held_out"]["before"]["metrics"]
        assert all("then" in gate for gate in found["gates"])
