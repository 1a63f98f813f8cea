"""How much a later part may process: a share of retraining, a multiple of the part, or a number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dicgrl.common.options import Section, option
from dicgrl.strategies.budget import amount_or, examples_within
from dicgrl.trainers import Trainer

AUTO = "auto"
SHARE = "10%"
# A part that is small compared with the history may process so many times its size. An example
# takes a CPU a thousand times as long as a GPU, and an update should not take minutes.
_TIMES = {"cuda": 500.0, "cpu": 12.0}
_LARGE, _STEEP = 320_000.0, 2.5  # added: a factor times a power of the part's share of the whole
_QUICK = 25_000  # one to three seconds on a CPU; up to here it processes as much as a GPU


@dataclass(frozen=True)
class EffortSettings(Section):
    """Settings of how much a later part may process."""

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
        """Number of examples that the newest part may process."""
        new, known = trainer.count("train", trainer.newest), trainer.count("train")
        if self.effort != AUTO:
            retraining = trainer.schedule.epochs * known
            return examples_within(self.effort, retraining, new, "effort")
        return usual_of(trainer.device.type, new, known, trainer.schedule.epochs)


def usual_of(device: str, changed: int, known: int, epochs: int) -> int:
    """Number of examples that a part may process by default.

    Args:
        device: Kind of device.
        changed: Number of examples of the part.
        known: Number of all known examples, including these.
        epochs: Number of epochs of retraining.

    Example:
        >>> [usual_of("cpu", new, 10_000_000, 16) for new in (10, 1000, 10_000)]
        [5000, 25000, 120101]
    """
    wanted = max(_wanted(device, changed, known), min(_TIMES["cuda"] * changed, _QUICK))
    return min(examples_within(SHARE, epochs * known, changed), round(wanted))


def repair_positives(trainer: Trainer, changed: int, effort: float) -> int:
    """Number of examples that the repair of a correction may process.

    Args:
        trainer: The trainer, with the correction applied to its graph.
        changed: Number of corrected examples.
        effort: Multiple of what a part of as many examples may process.
    """
    known = trainer.count("train")
    wanted = effort * _wanted(trainer.device.type, changed, known)
    return min(examples_within(SHARE, trainer.schedule.epochs * known, changed), round(wanted))


def _wanted(device: str, changed: int, known: int) -> float:
    share = changed / max(known, 1)
    return (_TIMES.get(device, _TIMES["cpu"]) + _LARGE * math.pow(share, _STEEP)) * changed
