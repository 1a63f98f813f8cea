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


def sample_of(part: int, size: int, count: int) -> IntArray:
    """Positions, in order, of the examples of a part's test set that a sample of it takes.

    They do not depend on the run; a smaller sample is part of a larger one.

    Args:
        part: Number of the part.
        size: Examples of its test set.
        count: Examples of the sample.
    """
    order = np.random.default_rng((part, size)).permutation(size)
    positions: IntArray = np.sort(order[:count])
    return positions
