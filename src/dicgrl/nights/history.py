"""What a night is compared with: earlier versions of the run, and the nights that made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dicgrl.evaluation.continual import Tested
from dicgrl.graph.change import RETRAIN
from dicgrl.learner import Learner
from dicgrl.nights.gates import FORETOLD, Compared, Look
from dicgrl.nights.held_out import TEST, in_common, split_of
from dicgrl.store.nights import Night
from dicgrl.store.run_folder import RunFolder

_VALUES: dict[str, Callable[[Night], Any]] = {
    "moved": lambda night: night["moved"].get("mean"),
    "newcomers": lambda night: _share(night["facts"]["newcomers"], night["facts"]["learned"]),
    "facts": lambda night: night["facts"]["new"],
    "gain": lambda night: night.get("retraining", {}).get("gain"),
    "seconds": lambda night: night["seconds"]["learn"],
    "retention": lambda night: night.get("held_out", {}).get("retention"),
}


def value_of(night: Night, name: str) -> float | None:
    """A measure of a night that is not compared question by question; None where it has none."""
    if name.startswith(FORETOLD):
        value = night["foretold"].get("metrics", {}).get(name.removeprefix(FORETOLD))
    else:
        value = _VALUES[name](night)
    return None if value is None else float(value)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class History:
    """A run before tonight.

    Attributes:
        versions: Number of the version that each change made.
        trained: Position, from 0, of the last change in which a model learned everything.
        sets: Results on the held-out sets after each change; empty if they were not measured.
        nights: The nights that made these versions, oldest first.
    """

    versions: Sequence[int]
    trained: int
    sets: Sequence[Sequence[Tested]]
    nights: Sequence[Night]

    @classmethod
    def of(cls, learner: Learner, folder: RunFolder) -> History:
        """That of a learner that was loaded from a folder.

        Args:
            learner: Has not taken in tonight's facts.
            folder: Where it is.
        """
        versions = [version.number for version in folder.line()]
        found = folder.nights()
        nights = [each for each in found if each["kept"] and each["version"] in versions]
        sets: list[Sequence[Tested]] = list(learner.tests)
        if (split := split_of(learner)) != TEST:
            measured = {n["version"]: n["held_out"]["sets"] for n in nights if _of(n, split)}
            sets = [measured.get(version, []) for version in versions]
        return cls(versions, last_training(learner), sets, nights)

    def look(self, night: Night, found: list[Tested], then: list[Tested]) -> Look:
        """What gates look at.

        Args:
            night: Tonight, but for what gates say.
            found: What is held out, measured after tonight.
            then: The same before.
        """

        def compared(name: str, since: str) -> list[Compared]:
            if name.startswith(FORETOLD) or name in _VALUES:
                return self._values(night, name, since)
            return [
                Compared(now.metrics.get(name), earlier.metrics.get(name), when)
                for sets, when in self._earlier(since, then)
                for now, earlier in [in_common(found, sets)]
            ] or [Compared(in_common(found, found)[0].metrics.get(name))]

        return compared

    def _values(self, night: Night, name: str, since: str) -> list[Compared]:
        now = value_of(night, name)
        nights = [each for each in self.nights if value_of(each, name) is not None]
        if since == "training":
            nights = [n for n in nights if n["version"] > self.versions[self.trained]][:1]
        elif since == "last":
            nights = nights[-1:]
        found = [Compared(now, value_of(each, name), f"night {each['night']}") for each in nights]
        return found or [Compared(now)]

    def _earlier(self, since: str, then: Sequence[Tested]) -> list[tuple[Sequence[Tested], str]]:
        """Held-out sets at the times that are meant, and what these are called."""
        last = (then, f"version {self.versions[-1]}, before tonight")
        named = [(s, f"version {v}") for s, v in zip(self.sets, self.versions, strict=True) if s]
        if since == "training":
            sets, when = self.sets[self.trained], f"version {self.versions[self.trained]}"
            return [(sets, f"{when}, when everything was learned")]
        return [*named, last] if since == "best" else [last]


def last_training(learner: Learner) -> int:
    """Which change was the last in which a model learned everything so far, from 0."""
    reports = learner.reports
    always = learner.settings.strategy == "upper"
    return max(
        (i for i, r in enumerate(reports) if r.kind == RETRAIN or (always and r.kind == "learn")),
        default=0,
    )


def _of(night: Night, split: str) -> bool:
    return bool(night.get("held_out", {}).get("split") == split)
