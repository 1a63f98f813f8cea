"""How much a later part may process: shares of what retraining would, multiples of the part."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dicgrl.common.options import Section, option
from dicgrl.strategies.budget import amount_or, examples_within
from dicgrl.trainers import Trainer

AUTO = "auto"
SHARE = "10%"
# For a part that is small compared with the history: how many times its size it may process. An
# example takes a CPU a thousand times as long as a GPU, and an update should not take minutes.
_TIMES = {"cuda": 500.0, "cpu": 12.0}
_LARGE, _STEEP = 320_000.0, 2.5  # added to it, times a power of the part's share of all examples
_QUICK = 25_000  # takes a CPU one to three seconds; up to here it processes as much as a GPU


@dataclass(frozen=True)
class EffortSettings(Section):
    """How much a later part may process."""

    effort: str = option(
        AUTO,
        "Examples that a later part may process, new and old, counting each pass: 10% (of what "
        "retraining would process), 50x (times the part), 20000 or all (as much as retraining); "
        "of several separated by commas, the smallest. auto: 10%, but for a part that is small "
        "compared with the history about 500x on a GPU; on a CPU 500x up to 25000 examples, or 12x "
        "if that is more; the larger its share, the more: 190x if it is 5% of all that is known.",
        check=amount_or(AUTO),
        numbers=True,
    )

    def positives(self, trainer: Trainer) -> int:
        """Examples that the newest part may process."""
        new, known = trainer.count("train", trainer.newest), trainer.count("train")
        if self.effort != AUTO:
            retraining = trainer.schedule.epochs * known
            return examples_within(self.effort, retraining, new, "effort")
        return usual_of(trainer.device.type, new, known, trainer.schedule.epochs)


def usual_of(device: str, changed: int, known: int, epochs: int) -> int:
    """Examples that a part of so many may process on a kind of device, unless one says otherwise.

    Args:
        device: The kind.
        changed: Examples of the part.
        known: All that are known, with these.
        epochs: Of retraining.

    Example:
        >>> [usual_of("cpu", new, 10_000_000, 16) for new in (10, 1000, 10_000)]
        [5000, 25000, 120101]
    """
    wanted = max(_wanted(device, changed, known), min(_TIMES["cuda"] * changed, _QUICK))
    return min(examples_within(SHARE, epochs * known, changed), round(wanted))


def repair_positives(trainer: Trainer, changed: int, effort: float) -> int:
    """Examples that the repair of a change may process.

    Args:
        trainer: The change has happened to it.
        changed: How many examples it concerns.
        effort: A multiple of what a part of as many takes, however few it has.
    """
    known = trainer.count("train")
    wanted = effort * _wanted(trainer.device.type, changed, known)
    return min(examples_within(SHARE, trainer.schedule.epochs * known, changed), round(wanted))


def _wanted(device: str, changed: int, known: int) -> float:
    share = changed / max(known, 1)
    return (_TIMES.get(device, _TIMES["cpu"]) + _LARGE * math.pow(share, _STEEP)) * changed
