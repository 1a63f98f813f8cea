"""What a learner finds out about itself after every part: probabilities to fit, and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from dicgrl.ask.asking import Asking
from dicgrl.ask.doubts import doubts
from dicgrl.errors import ModelWarning
from dicgrl.evaluation.part_report import PartReport
from dicgrl.graph.change import FORGET, RETRAIN


def informed(asking: Asking, reports: Sequence[PartReport]) -> Asking:
    """Let answers know what was found after the newest part.

    Where an earlier version learned it, it is looked at when somebody asks.
    """

    def examined_last() -> Mapping[str, Any]:
        newest = reports[-1]
        if not newest.calibration:
            asking.unseen = asking.unseen_change = 0
            newest.calibration = examined(asking)
        return newest.calibration

    asking.examined = examined_last
    return asking


def examine(
    asking: Asking, reports: Sequence[PartReport], foreseen: Mapping[str, Any], level: int
) -> None:
    """Look at what was learned; the newest report gets what is found, the caller the warnings.

    Args:
        asking: Answers for the learner as it is now.
        reports: Of all parts so far.
        foreseen: What `Asking.foresee` said before the newest part was learned.
        level: Calls between this one and the one that is to be warned.
    """
    newest = reports[-1]
    earlier = reports[:-1]
    places = [i for i, each in enumerate(earlier) if each.calibration.get("found")]
    looked = earlier[places[-1]] if places else None
    retrained = newest.kind == RETRAIN
    # A model that learned everything anew is looked at, however little arrived last.
    unseen = 0 if retrained or looked is None else looked.part + 1
    # What was taken back counts by itself; after other changes the newest part is counted again.
    asking.unseen = unseen if newest.kind == FORGET else min(unseen, newest.part)
    asking.unseen_change = 0 if retrained or looked is None else places[-1] + 1
    before = earlier[-1].calibration if earlier else {}
    newest.calibration = examined(asking, before, foreseen)
    past = looked.calibration if looked else {}
    newest.warnings = doubts(newest.calibration, past, retrained=retrained)
    for doubt in newest.warnings:
        warnings.warn(ModelWarning(newest.part, doubt), stacklevel=2 + level)


def examined(
    asking: Asking,
    before: Mapping[str, Any] | None = None,
    foreseen: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What `Asking.examine` finds; without held-out examples probabilities are those foreseen.

    Args:
        asking: Answers for the learner as it is now.
        before: What was found after the part before, if there was one.
        foreseen: What `Asking.foresee` said of the newest part.
    """
    found = asking.examine()
    if "fit" in found:
        return found
    kept = {name: value for name, value in (before or {}).items() if name not in ("found", "test")}
    if not found and "fit" in kept:  # too little has arrived to look again
        return kept
    for other in (foreseen or {}, before or {}):
        if "fit" in other:
            named = {name: other[name] for name in ("basis", "facts")}
            return named | found | {"fit": other["fit"], "fitted_on": "arrivals"}
    return found or kept  # never empty once somebody has looked, or every question would look again
