"""How well a run answers the facts that it holds out, tonight and earlier.

Test sets are measured, or validation sets if there are no test sets. Two points in time are
compared on the sets for which the same questions were measured both times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.sample import sample_sizes
from dicgrl.learner import Learner
from dicgrl.trainers.measured import measure_tests

TEST, VALID = "test", "valid"
_NO_METRICS = ("part", "count", "sampled")


class Pooled(NamedTuple):
    """Metrics over several sets, each weighted by how many facts it stands for.

    Attributes:
        metrics: By name; empty where no set was measured.
        facts: How many facts the sets have.
        asked: How many of them were measured.
    """

    metrics: dict[str, float]
    facts: int
    asked: int


def pooled(sets: Sequence[Tested]) -> Pooled:
    """The metrics of sets together.

    Example:
        >>> pooled([{"part": 0, "count": 3, "mrr": 0.5}, {"part": 1, "count": 1, "mrr": 0.1}])
        Pooled(metrics={'mrr': 0.4}, facts=4, asked=4)
    """
    total = sum(each["count"] for each in sets)
    names = [name for name in (sets[0] if sets else ()) if name not in _NO_METRICS]
    metrics = {name: sum(each[name] * each["count"] for each in sets) / total for name in names}
    return Pooled(metrics, total, sum(_asked(each) for each in sets))


def in_common(now: Sequence[Tested], then: Sequence[Tested]) -> tuple[Pooled, Pooled]:
    """Both times, on the sets of which both measured the same questions."""
    questions = {_questions(each) for each in now} & {_questions(each) for each in then}
    mine, theirs = (
        [each for each in sets if _questions(each) in questions] for sets in (now, then)
    )
    return pooled(mine), pooled(theirs)


def split_of(learner: Learner) -> str:
    """Which facts measure a run: `test` or `valid`; empty where it holds none out."""
    return next((split for split in (TEST, VALID) if learner.trainer.count(split)), "")


def before(learner: Learner, arriving: int, at_most: int) -> list[Tested]:
    """What the model knows before it learns tonight, on what will be measured then.

    The night before has measured it already, unless tonight's sample is another one.

    Args:
        learner: Has not taken in tonight's facts.
        arriving: How many facts they bring to the sets that are measured.
        at_most: As of `Learner.evaluate`.
    """
    trainer, split = learner.trainer, split_of(learner)
    if not split:
        return []
    counts = [trainer.count(split, part, part + 1) for part in range(trainer.num_parts)]
    bound = at_most if trainer.asks_one_by_one else 0
    sizes = sample_sizes([*counts, arriving], bound)[:-1]
    wanted = {(part, size) for part, size in enumerate(sizes) if counts[part]}
    known = learner.tests[-1] if split == TEST else []
    if wanted <= {_questions(each) for each in known}:
        return list(known)
    found = measure_tests(trainer, at_most, split=split, sizes=sizes)
    return [measured.tested() for measured in found]


def after(learner: Learner, at_most: int) -> list[Tested]:
    """The same once it has learned; test sets are noted by the learner."""
    learner.evaluate(at_most=at_most)
    if split_of(learner) != VALID:
        return list(learner.tests[-1])
    return [each.tested() for each in measure_tests(learner.trainer, at_most, split=VALID)]


def _asked(tested: Tested) -> int:
    asked: int = tested["sampled" if "sampled" in tested else "count"]
    return asked


def _questions(tested: Tested) -> tuple[int, int]:
    return tested["part"], _asked(tested)


def metrics_of(learner: Learner) -> list[str]:
    """Names of what is measured of held-out facts."""
    if learner.trainer.metric == "accuracy":
        return ["accuracy"]
    return ["mrr", "hits@1", "hits@3", "hits@10"]
