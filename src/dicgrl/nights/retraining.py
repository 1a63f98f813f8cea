"""Whether a retraining would pay: an estimate of what it would gain."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dicgrl.evaluation.continual import Tested
from dicgrl.learner import Learner
from dicgrl.nights.held_out import in_common, pooled
from dicgrl.nights.history import History


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a run since a model last learned everything.

    Attributes:
        version: The version that did.
        changes: Changes since.
        share: Share of all facts that arrived since.
        moved: How far old rows moved in each of these changes, summed up.
        lost: How much worse the facts that were held out then are answered, as a share of what it
            was; None where they are not measured.
        young: How well those are answered that arrived since, as a share of the others then;
            None where none is measured.
        level: How well held-out facts are answered now: MRR, or accuracy.
        seconds: What learning everything took then, scaled to the facts of now.
    """

    version: int
    changes: int
    share: float
    moved: float
    lost: float | None
    young: float | None
    level: float | None
    seconds: float

    @classmethod
    def of(cls, learner: Learner, found: list[Tested], history: History) -> Evidence:
        """That of a learner after tonight.

        Args:
            learner: Has learned tonight's facts.
            found: What is held out, measured after that.
            history: The run before.
        """
        trainer, trained = learner.trainer, history.trained
        name = "mrr" if trainer.metric != "accuracy" else "accuracy"
        training = learner.reports[trained]
        every = trainer.count("train")
        known = trainer.count("train", 0, training.part + 1)
        now, then = in_common(found, history.sets[trained])
        at_first = then.metrics.get(name, 0.0)
        arrived = pooled([each for each in found if each["part"] > training.part])
        later = learner.reports[trained + 1 :]
        return cls(
            version=history.versions[trained],
            changes=len(later),
            share=1 - known / every,
            moved=sum(report.details.get("moved", {}).get("mean", 0.0) for report in later),
            lost=1 - now.metrics[name] / at_first if at_first else None,
            young=arrived.metrics[name] / at_first if at_first and arrived.facts else None,
            level=pooled(found).metrics.get(name),
            seconds=training.learn_seconds * every / max(known, 1),
        )


def retraining(evidence: Evidence) -> dict[str, Any]:
    """What a retraining would gain, ready for JSON."""
    return {"evidence": asdict(evidence)}
