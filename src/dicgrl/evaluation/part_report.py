"""The report of a part: what it took to learn it, and what was measured afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from dicgrl.common.html import html_table
from dicgrl.evaluation.continual import Evaluation


@dataclass(slots=True)
class PartReport:
    """What it took to learn a part.

    Attributes:
        part: Number of the part.
        learn_seconds: Time of learning, without validation.
        new_examples: Number of training examples of the part.
        replayed_examples: Number of old examples that were learned again.
        candidates: Number of old triples or edges that were considered for activation.
        activated: How many of these share a component with new ones.
        epochs: Number of epochs trained, in all stages together.
        evaluate_seconds: Time of the last evaluation after it; 0 before any.
        validation: The best validation value (MRR, or the negative loss); None without any.
        best_epoch: The epoch of the last stage whose weights were kept; 0 if nothing was trained.
        positives: Examples x epochs in all stages together, of the new part (`new`) and of earlier
            parts (`old`); empty in runs of versions that did not count them.
        calibration: Results on held-out examples (`Asking.examine`): the numbers that turn scores
            into probabilities, and how reliable these are on test examples; empty in runs of
            versions that did not measure this.
        warnings: Doubts about the model after it, in words.
        details: Further numbers of the strategy, such as the drift of old rows or nodes.
        kind: What was done: learn, or another kind of `dicgrl.graph.change.Change`.
    """

    part: int
    learn_seconds: float
    new_examples: int
    replayed_examples: int = 0
    candidates: int = 0
    activated: int = 0
    epochs: int = 0
    evaluate_seconds: float = 0.0
    validation: float | None = None
    best_epoch: int = 0
    positives: dict[str, int] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    kind: str = "learn"

    def _repr_html_(self) -> str:
        told = {
            "learned in": f"{self.learn_seconds:.2f} s",
            "new examples": self.new_examples,
            "new edges": self.details.get("edges"),
            "old examples learned again": self.replayed_examples,
            "epochs": self.epochs,
            "validation": self.validation,
            **{f"doubt {i}": each for i, each in enumerate(self.warnings, start=1)},
        }
        shown = [(name, value) for name, value in told.items() if value is not None]
        return html_table(f"{self.kind}: part {self.part}", ("", ""), shown)

    def results(self, found: Evaluation) -> dict[str, Any]:
        """The entry of the part in `results.json`, with the results measured after it."""
        took = {each.name: getattr(self, each.name) for each in fields(self)}
        details = took.pop("details")
        if self.kind == "learn":  # the same format as before there were corrections
            del took["kind"]
        return {
            **took,
            **details,
            "calibration": self._reliability(),
            "sampled": found.sampled,
            "tests": found.tests,
            "whole": found.whole,
            "average": found.average,
            "forgetting": found.forgetting,
            "retention": found.retention,
        }

    def _reliability(self) -> dict[str, Any] | None:
        """How reliable probabilities are; None if not measured.

        `basis` says what they were fitted on, and `fitted` on how many examples; the rest is from
        `dicgrl.evaluation.reliability`.
        """
        looked = self.calibration
        if not looked.get("test"):
            return None
        basis = looked.get("fitted_on", looked["basis"])
        return {"basis": basis, "fitted": looked["facts"], **looked["test"]}
