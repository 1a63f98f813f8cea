from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dicgrl import Learner, NightOptions, nightly
from dicgrl.nights import retraining as signal
from dicgrl.nights.retraining import Evidence, retraining
from dicgrl.report.night_text import retraining_text
from dicgrl.store.run_folder import RunFolder
from tests.nights.test_nightly import begun
from tests.tiny import stream_of

CPU = NightOptions(device="cpu", evaluate="all")
KNOWN = Evidence(3, 5, 0.2, 0.4, 0.6, 0.3, 0.5, 0.3, 0.28, 0.2, 0.3, 12.0)


def test_the_estimate_is_what_its_page_says() -> None:
    found = retraining(KNOWN, "mrr")
    ratio = (0.6 / 0.3) ** signal.SLOPE * math.exp(signal.LEVEL)
    assert found["gain"] == pytest.approx(0.3 * (ratio - 1))
    assert found["pays"] and found["resolved"] and found["evidence"]["seconds"] == 12.0


def test_what_is_still_known_does_not_pay() -> None:
    assert not retraining(replace(KNOWN, learned_now=0.6), "mrr")["pays"]
    assert not retraining(replace(KNOWN, learned_now=0.9), "mrr")["pays"]


@pytest.mark.parametrize(
    ("learned_now", "said"),
    [
        (0.05, "a retraining would pay: it would change MRR by +"),
        (0.6, "no sign that a retraining would pay: the estimate for MRR, "),
        (30.0, "a retraining would hardly pay: it would change MRR by -"),
    ],
)
def test_what_is_within_its_error_is_called_so(learned_now: float, said: str) -> None:
    found = retraining(replace(KNOWN, learned_now=learned_now), "mrr")
    assert found["resolved"] == (abs(found["gain"]) > found["error"]) == ("no sign" not in said)
    assert retraining_text({"retraining": found}).startswith(said)


@pytest.mark.parametrize("missing", ["level", "learned_now", "learned_then"])
def test_where_nothing_tells_it_says_so(missing: str) -> None:
    found = retraining(replace(KNOWN, **{missing: 0.0}), "mrr")
    assert "gain" not in found and found["why"]


def test_evidence_is_since_a_model_learned_everything(tmp_path: Path) -> None:
    run = tmp_path / "run"
    begun(run)
    stream = stream_of("links")
    first = nightly(run, stream[1], CPU).night["retraining"]["evidence"]
    second = nightly(run, stream[2], CPU).night["retraining"]["evidence"]
    counts = [len(part.train) for part in stream.parts]
    assert (first["version"], first["changes"]) == (1, 1)
    assert (second["version"], second["changes"]) == (1, 2)
    assert second["share"] == pytest.approx(1 - counts[0] / sum(counts))
    assert second["learned_then"] == first["learned_then"]  # it is looked at once
    moved = [night["moved"]["mean"] for night in RunFolder(run).nights()]
    assert second["moved"] == pytest.approx(sum(moved))
    learner = Learner.load(run, device="cpu")
    learner.retrain()
    learner.evaluate()
    learner.save(run)
    third = nightly(run, [("e1", "likes", "e5")], CPU).night["retraining"]["evidence"]
    assert (third["version"], third["changes"]) == (4, 1)
    assert third["share"] == pytest.approx(1 / (sum(counts) + 1))
    trainer = Learner.load(run, at=4, device="cpu").trainer
    mrr = trainer.measure(trainer.examples("train"))["mrr"]  # fewer than a sample
    assert third["learned_then"] == pytest.approx(mrr, abs=1e-6)
    trainer = Learner.load(run, device="cpu").trainer
    newest = trainer.measure(trainer.examples("train")[-1:])["mrr"]  # one fact came since
    assert third["newer_now"] == pytest.approx(newest, abs=1e-6)
    trainer = Learner.load(run, at=4, device="cpu").trainer
    assert third["held_out_then"] == pytest.approx(
        trainer.measure(trainer.examples("test"))["mrr"], abs=1e-6
    )
