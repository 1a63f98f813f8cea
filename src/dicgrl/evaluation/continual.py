"""Measures of continual learning: whole, average, forgetting, transfer and retention.

R[i][j] is the metric on part j's test set after part i was learned. With T the newest part:

- whole: the metric pooled over all test examples so far; average: the mean of R[T][j] over j.
- forgetting: mean over j < T of max over i < T of R[i][j], minus R[T][j].
- backward transfer: mean over j < T of R[T][j] - R[j][j].
- forward transfer: mean over j > 0 of the metric on part j before it was learned (its new rows
  exist, at their start), minus that of a random guess.
- retention: of the first part's test questions that were answered right after it was learned, the
  share that still is.

If only a sample of a test set was measured, `sampled` is its size. In `whole` the metric of a
sample counts for the whole test set. It is only compared with that of the same sample, so that a
change of questions is not taken for forgetting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dicgrl.common.html import html_table

Tested = dict[str, Any]  # part, count, sampled if not all were measured, and metrics
_NO_METRICS = ("part", "count", "sampled")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results of a learner after a part.

    Attributes:
        metric: The main metric, such as hits@10.
        tests: Metrics on every part's test set so far; parts without one are left out.
        whole: Metrics pooled over all test examples.
        average: Means of the parts' metrics.
        forgetting: How much was lost since the best result; None before the second part.
        backward_transfer: How much later learning changed the results of earlier parts.
        forward_transfer: Results of parts before they are learned, above chance, if measured.
        retention: Share of the first part's right answers that are still right.
    """

    metric: str
    tests: list[Tested]
    whole: dict[str, float]
    average: dict[str, float]
    forgetting: float | None = None
    backward_transfer: float | None = None
    forward_transfer: float | None = None
    retention: float | None = None

    def __str__(self) -> str:
        if not self.tests:
            return "no test set so far: nothing was measured"
        lines = [f"{'':8} {'count':>7}  {self.metric}"]
        if self.sampled is not None:
            lines.insert(0, f"measured on {self.sampled:,} of {self.count:,} test examples")
        lines += [
            f"part {test['part']:<3} {test['count']:>7,}  {test[self.metric]:.3f}"
            for test in self.tests
        ]
        lines.append(f"{'whole':8} {self.count:>7,}  {self.whole[self.metric]:.3f}")
        lines.append(f"{'average':16}  {self.average[self.metric]:.3f}")
        if self.forgetting is not None:
            lines.append(f"{'forgetting':16}  {self.forgetting:.3f}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = [name for name in self.whole if not name.endswith("_others")]
        told = [(f"part {t['part']}", t["count"], *(t[name] for name in names)) for t in self.tests]
        told += [
            (title, count, *(values[name] for name in names))
            for title, count, values in (
                ("whole", self.count, self.whole),
                ("average", None, self.average),
            )
        ]
        return html_table("test sets so far", ("", "count", *names), told)

    @property
    def count(self) -> int:
        """Number of test examples of all parts."""
        return sum(test["count"] for test in self.tests)

    @property
    def sampled(self) -> int | None:
        """How many of them were measured; None if all were."""
        if not any("sampled" in test for test in self.tests):
            return None
        return sum(_asked(test)[1] for test in self.tests)


def evaluation(
    metric: str,
    history: Sequence[Sequence[Tested]],
    before: Sequence[float | None] = (),
    retention: float | None = None,
    parts: Sequence[int] | None = None,
) -> Evaluation:
    """Summarise the tests after each part.

    Args:
        metric: The main metric.
        history: R: for each part so far, the tests after it; an empty list if there were none.
        before: For each part, its metric before it was learned minus chance; None if unknown.
        retention: Share of the first part's answers that are still right.
        parts: Number of the newest part at each of these times. Only needed if facts were taken
            back; otherwise there is one entry per part.

    Example:
        >>> rows = [[(0.5,)], [(0.3,), (0.9,)]]
        >>> history = [[{"part": j, "count": 10, "x": v} for j, (v,) in enumerate(r)] for r in rows]
        >>> found = evaluation("x", history)
        >>> found.average["x"], round(found.forgetting, 2), round(found.backward_transfer, 2)
        (0.6, 0.2, -0.2)
    """
    past = _Past(metric)
    for number, tests in zip(_numbers(parts, history), history[:-1], strict=False):
        past.add(tests, number)
    return past.compared(history[-1] if history else (), before, retention)


def evaluations(
    metric: str,
    history: Sequence[Sequence[Tested]],
    before: Sequence[float | None],
    retention: Sequence[float | None],
    parts: Sequence[int] | None = None,
) -> Iterator[Evaluation]:
    """The result of `evaluation` after each part, in a single pass over the tests.

    Args:
        metric: The main metric.
        history: As in `evaluation`.
        before: As in `evaluation`.
        retention: The retention after each part.
        parts: As in `evaluation`.
    """
    past = _Past(metric)
    for after, number in enumerate(_numbers(parts, history)):
        yield past.compared(history[after], before[: after + 1], retention[after])
        past.add(history[after], number)


def _numbers(parts: Sequence[int] | None, history: Sequence[Any]) -> Sequence[int]:
    return range(len(history)) if parts is None else parts


_Set = tuple[int, int]
"""Identifies the questions of a test: the part, and how many of its test set were used."""


@dataclass(slots=True)
class _Past:
    """Earlier results: the best of each part, and that right after it was learned."""

    metric: str
    best: dict[_Set, float] = field(default_factory=dict)
    at_first: dict[_Set, float] = field(default_factory=dict)

    def add(self, tests: Sequence[Tested], part: int) -> None:
        for test in tests:
            asked, value = _asked(test), test[self.metric]
            self.best[asked] = max(self.best.get(asked, value), value)
            if test["part"] == part:
                self.at_first.setdefault(asked, value)

    def compared(
        self, tests: Sequence[Tested], before: Sequence[float | None], retention: float | None
    ) -> Evaluation:
        """Evaluate the tests after the next part."""
        tests = list(tests)
        names = [name for name in (tests[0] if tests else {}) if name not in _NO_METRICS]
        total = sum(test["count"] for test in tests)
        whole = {n: sum(t[n] * t["count"] for t in tests) / total for n in names if total}
        average = {n: sum(t[n] for t in tests) / len(tests) for n in names}
        now = {_asked(test): test[self.metric] for test in tests}
        lost = [self.best[asked] - value for asked, value in now.items() if asked in self.best]
        moved = [
            value - self.at_first[asked] for asked, value in now.items() if asked in self.at_first
        ]
        ahead = [value for value in before[1:] if value is not None]
        return Evaluation(
            self.metric, tests, whole, average, _mean(lost), _mean(moved), _mean(ahead), retention
        )


def _asked(test: Tested) -> _Set:
    return test["part"], test["sampled" if "sampled" in test else "count"]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
