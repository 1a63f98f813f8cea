"""Estimates whether retraining would pay, and explains why.

Forgetting shows in the facts that were learned when a model last learned everything. The worse a
sample of them is answered now, compared with then, the more a new model gains on held-out facts:

    ln(retrained / now) = SLOPE * ln(learned then / learned now) + LEVEL

LEVEL is below 0, because a new model starts over, without the training that the nights have done.
Other evidence (how far old rows moved, the share of new facts, the held-out facts of then) is also
shown, but does not improve the estimate. SLOPE, LEVEL and ERROR were found by retraining for real:
`python benchmarks/retrain_signal.py` (docs/nightly.md).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from dicgrl.evaluation.continual import Tested
from dicgrl.learner import Learner
from dicgrl.nights.held_out import in_common, pooled
from dicgrl.nights.history import History
from dicgrl.report.night_text import LEAST_GAIN

SLOPE, LEVEL = 0.52, -0.04
ERROR = 0.109  # mean distance of ln(retrained / now) from the truth, on streams that were left out
LOOKED_AT = 1000  # learned facts


@dataclass(frozen=True, slots=True)
class Evidence:
    """How a run has changed since a model last learned everything.

    Attributes:
        version: The version that did.
        changes: Changes since.
        share: Share of all facts that arrived since.
        moved: How far old rows moved in each of these changes, summed up.
        learned_then: How well a sample of what it learned was answered then, or when the first
            night looked.
        learned_now: The same now.
        newer_now: How well a sample of what was learned since is answered now; None where there is
            none.
        held_out_then: How well those were answered that were held out then; None where they are
            not measured.
        held_out_now: The same now.
        arrived_now: How well those are answered that arrived since; None where there are none.
        level: How well all are answered now; None where nothing is held out.
        seconds: What learning everything took then, scaled to the facts of now.
    """

    version: int
    changes: int
    share: float
    moved: float
    learned_then: float
    learned_now: float
    newer_now: float | None
    held_out_then: float | None
    held_out_now: float | None
    arrived_now: float | None
    level: float | None
    seconds: float

    @classmethod
    def of(
        cls, learner: Learner, found: list[Tested], history: History, learned_then: float
    ) -> Evidence:
        """That of a learner after tonight.

        Args:
            learner: Has learned tonight's facts.
            found: What is held out, measured after that.
            history: The run before.
            learned_then: What `learned_before` gave.
        """
        trainer, trained = learner.trainer, history.trained
        name = metric_of(learner)
        training, later = learner.reports[trained], learner.reports[trained + 1 :]
        every = trainer.count("train")
        known = trainer.count("train", 0, training.part + 1)
        now, then = in_common(found, history.sets[trained])
        arrived = pooled([each for each in found if each["part"] > training.part])
        return cls(
            version=history.versions[trained],
            changes=len(later),
            share=1 - known / every,
            moved=sum(report.details.get("moved", {}).get("mean", 0.0) for report in later),
            learned_then=learned_then,
            learned_now=learned(learner, training.part),
            newer_now=_answered(learner, known, every, every) if every > known else None,
            held_out_then=then.metrics.get(name),
            held_out_now=now.metrics.get(name),
            arrived_now=arrived.metrics.get(name),
            level=pooled(found).metrics.get(name),
            seconds=training.learn_seconds * every / max(known, 1),
        )


def learned_before(learner: Learner, history: History) -> float:
    """How well what was learned by the last training was answered then.

    The first night after it looks; later ones read what it found.

    Args:
        learner: Has not taken in tonight's facts.
        history: The run so far.
    """
    version = history.versions[history.trained]
    for night in history.nights[::-1]:
        evidence = night.get("retraining", {}).get("evidence", {})
        if evidence.get("version") == version:
            return float(evidence["learned_then"])
    return learned(learner, learner.reports[history.trained].part)


def learned(learner: Learner, part: int) -> float:
    """How well a sample of the training examples up to a part is answered; always the same ones."""
    return _answered(learner, 0, learner.trainer.count("train", 0, part + 1), part)


def _answered(learner: Learner, first: int, last: int, seed: int) -> float:
    """How well a sample of the training examples from `first` to `last` is answered."""
    trainer, count = learner.trainer, last - first
    some = np.random.default_rng(seed).choice(count, min(count, LOOKED_AT), replace=False)
    with torch.no_grad():
        return trainer.measure(trainer.old_examples(first + np.sort(some)))[metric_of(learner)]


def metric_of(learner: Learner) -> str:
    """What the estimate is about."""
    return "mrr" if learner.trainer.metric == "hits@10" else learner.trainer.metric


def retraining(evidence: Evidence, metric: str) -> dict[str, Any]:
    """What a retraining would gain, ready for JSON.

    Args:
        evidence: How the run has changed since the last full training.
        metric: What it is about.

    Returns:
        `gain`, what would be added to the metric, its `error`, whether it is `resolved`, that is
        larger than its error, and whether it `pays`; or `why` nothing is said; and the `evidence`.
    """
    told = {"metric": metric, "evidence": asdict(evidence)}
    if metric != "mrr":
        return told | {"why": "what retraining would gain is estimated for links alone"}
    if not evidence.level or not evidence.learned_now or not evidence.learned_then:
        return told | {"why": "too little is known to tell whether a retraining would pay"}
    ratio = SLOPE * math.log(evidence.learned_then / evidence.learned_now) + LEVEL
    gain = evidence.level * math.expm1(ratio)
    error = evidence.level * math.expm1(ERROR)
    resolved, pays = abs(gain) > error, gain - error > LEAST_GAIN
    return told | {"gain": gain, "error": error, "resolved": resolved, "pays": pays}
