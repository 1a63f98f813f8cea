"""Samples of test sets, which are the same in every run as long as the sets do not change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dicgrl.graph.arrays import IntArray


def sample_sizes(sizes: Sequence[int], at_most: int) -> list[int]:
    """How many examples of each test set to sample.

    All have the same share, which is one over a power of two. It rarely changes while parts arrive,
    so that results after one part can be compared with those after the next. No set with examples
    is left out, even if there are more sets than `at_most`.

    Args:
        sizes: Number of examples in each test set.
        at_most: Number of examples in total; 0 for no bound.

    Example:
        >>> sample_sizes([10_000, 600, 0, 1], at_most=2000)
        [1250, 75, 0, 1]
        >>> sample_sizes([900, 600], at_most=2000)
        [900, 600]
    """
    halved, taken = 0, list(sizes)
    while at_most and sum(taken) > at_most and max(taken) > 1:
        halved += 1
        taken = [max(size >> halved, min(size, 1)) for size in sizes]
    return taken


def bounded_sizes(sizes: Sequence[int], at_most: int) -> list[int]:
    """Like `sample_sizes`, but may leave out sets, so that the total is at most `at_most` + 1.

    If there are more sets than `at_most`, one over a power of two of them are used, and the newest.

    Args:
        sizes: Number of examples in each set.
        at_most: Number of examples in total, at least 1.

    Example:
        >>> bounded_sizes([10_000, 600, 0, 1], at_most=2000)
        [1250, 75, 0, 1]
        >>> bounded_sizes([9] * 10, at_most=4)
        [1, 0, 0, 0, 1, 0, 0, 0, 1, 1]
    """
    taken, step = sample_sizes(sizes, at_most), 1
    while sum(taken[::step]) > at_most:
        step *= 2
    newest = len(taken) - 1
    return [
        count if part in (newest, part - part % step) else 0 for part, count in enumerate(taken)
    ]


def sample_of(part: int, size: int, count: int) -> IntArray:
    """Positions, sorted, of a sample of a part's test set.

    They do not depend on the run. A smaller sample is part of a larger one.

    Args:
        part: Number of the part.
        size: Number of examples in its test set.
        count: Number of examples in the sample.
    """
    if not count:
        return np.empty(0, np.int64)
    order = np.random.default_rng((part, size)).permutation(size)
    positions: IntArray = np.sort(order[:count])
    return positions
