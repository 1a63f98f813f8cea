"""How much a later part may process: shares of what retraining would, multiples of the part."""

from __future__ import annotations

from dataclasses import dataclass

from dicgrl.common.options import Section, option
from dicgrl.strategies.budget import amount_or, examples_within
from dicgrl.trainers import Trainer

AUTO = "auto"
SHARE = "10%"
# Of a part that is small beside the history: how many times the part is processed. A positive
# costs a CPU a thousand times what it costs a GPU, and nobody wants to wait for a minute.
_TIMES = {"cuda": 500.0, "cpu": 12.0}
_LARGE = 20_000.0  # and this besides, times the square of the share of what is known that is new


@dataclass(frozen=True)
class EffortSettings(Section):
    """How much a later part may process."""

    effort: str = option(
        AUTO,
        "Examples that a later part may process, new and old, counting each pass: 10% (of what "
        "retraining would process), 50x (times the part), 20000 or all (as much as retraining); "
        "of several separated by commas, the smallest. auto: 10%, and for a part that is small "
        "compared with the history some 500x on a GPU and 12x on a CPU.",
        check=amount_or(AUTO),
        numbers=True,
    )

    def positives(self, trainer: Trainer) -> int:
        """Examples that the newest part may process."""
        new, known = trainer.count("train", trainer.newest), trainer.count("train")
        if self.effort != AUTO:
            retraining = trainer.schedule.epochs * known
            return examples_within(self.effort, retraining, new, "effort")
        return usual_positives(trainer, new)


def usual_positives(trainer: Trainer, changed: int, effort: float = 1.0) -> int:
    """Examples that a change of so many may process, unless one asks for another effort.

    Args:
        trainer: The change has happened to it.
        changed: How many examples came or went.
        effort: A multiple, where a change of its kind needs more; never more than the share.
    """
    known = trainer.count("train")
    return usual_of(trainer.device.type, changed, known, trainer.schedule.epochs, effort)


def usual_of(device: str, changed: int, known: int, epochs: int, effort: float = 1.0) -> int:
    """Examples that a change of so many may process on a kind of device.

    Example:
        >>> usual_of("cpu", 10_000, 10_000_000, 16)
        120200
    """
    times = _TIMES.get(device, _TIMES["cpu"]) + _LARGE * (changed / max(known, 1)) ** 2
    return min(examples_within(SHARE, epochs * known, changed), round(effort * times * changed))
