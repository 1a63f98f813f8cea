"""Samples of test sets: the same for every run, and for as long as there are as many examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dicgrl.graph.arrays import IntArray


def sample_sizes(sizes: Sequence[int], at_most: int) -> list[int]:
    """How many examples of each test set a sample of all of them takes.

    All take the same share, one by a power of two: it changes seldom while parts arrive, so that
    what was measured after one can be compared with what was measured after the next. None that
    has examples is left out, even where there are more sets than `at_most`.

    Args:
        sizes: Examples of each test set.
        at_most: Examples in all; 0 for no bound.

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
    """As `sample_sizes`, for who need not look at every set: no more than is allowed and one.

    Where there are more sets than `at_most`, one by a power of two of them is asked about, and the
    newest.

    Args:
        sizes: Examples of each set.
        at_most: Examples in all, at least 1.

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
    """Positions, in order, of the examples of a part's test set that a sample of it takes.

    They do not depend on the run; a smaller sample is part of a larger one.

    Args:
        part: Number of the part.
        size: Examples of its test set.
        count: Examples of the sample.
    """
    if not count:
        return np.empty(0, np.int64)
    order = np.random.default_rng((part, size)).permutation(size)
    positions: IntArray = np.sort(order[:count])
    return positions
