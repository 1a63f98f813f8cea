"""Holding out shares of the data for validation and testing, seeded.

Which facts may be held out differs by kind of data: see `hold_out_triples`, `hold_out_nodes`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dicgrl.common.numbers import whole_number
from dicgrl.errors import DataWarning, UserError, shown_value
from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.part import SPLITS, Part


class HoldOut(NamedTuple):
    """Shares of each part's training examples to hold out, for parts without such sets.

    Attributes:
        valid: Share for validation.
        test: Share for testing.
        seed: Seed of the division.
    """

    valid: float = 0.0
    test: float = 0.0
    seed: int = 0

    def where_missing(self, has_valid: bool, has_test: bool) -> HoldOut:
        """The shares for one part; 0 for a set that it has.

        Example:
            >>> HoldOut(valid=0.1, test=0.2).where_missing(has_valid=False, has_test=True)
            HoldOut(valid=0.1, test=0.0, seed=0)
        """
        return HoldOut(0.0 if has_valid else self.valid, 0.0 if has_test else self.test, self.seed)

    def generator(self, part: int) -> np.random.Generator:
        """Source of randomness for a part, which does not depend on the length of the stream."""
        return np.random.default_rng((whole_number("seed", self.seed, 0), part))

    def warn_if_unused(self, source: object, has: Sequence[tuple[bool, bool]]) -> None:
        """Warn about a share that was requested but not held out anywhere.

        Args:
            source: The source that the warning names.
            has: Whether each part has a set for validation, and one for testing.
        """
        unused = [
            f"{name}={share}"
            for number, (name, share) in enumerate((("valid", self.valid), ("test", self.test)))
            if share and all(sets[number] for sets in has)
        ]
        if unused:
            what = f"{' and '.join(unused)} {'sets' if len(unused) == 1 else 'set'} nothing aside"
            why = f"{what}: every part has such a set already"
            warnings.warn(DataWarning(source, why), stacklevel=2)

    def warn_if_nothing(self, source: object, parts: Iterable[Part]) -> None:
        """Warn about a share that was requested, and that no part could hold out.

        Args:
            source: The source that the warning names.
            parts: The parts, divided.
        """
        sizes = [[len(getattr(part, split)) for split in SPLITS] for part in parts]
        for number, (name, share) in enumerate((("valid", self.valid), ("test", self.test)), 1):
            if not share or any(size[number] for size in sizes):
                continue
            most = max(map(sum, sizes), default=0)
            why = "no example can be spared"
            if not round(share * most):
                why = f"the share is too small for parts of at most {most:,} examples"
            warning = DataWarning(source, f"{name}={share} sets nothing aside: {why}")
            warnings.warn(warning, stacklevel=2)


NOTHING = HoldOut()


def check_shares(valid: float, test: float) -> None:
    """Refuse shares that leave nothing to learn from."""
    for name, share in (("valid", valid), ("test", test)):
        if not isinstance(share, int | float):
            raise UserError(f"{name}={shown_value(share)}: expected a share, a number below 1")
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise UserError(
            f"valid={valid} and test={test}: shares are at least 0 and together below 1"
        )


def divide(
    order: IntArray, free: BoolArray, valid: float, test: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Divide positions into train, valid and test; each keeps the order of the rows.

    Args:
        order: The positions in random order, [n].
        free: Which of them, in that order, may be held out, [n]; the others stay in train.
        valid: Share of all positions for validation; less where too few are free.
        test: Share for testing likewise.

    Example:
        >>> divide(np.array([2, 0, 1]), np.array([True, False, True]), 0.0, 1 / 3)
        (array([0, 1]), array([], dtype=int64), array([2]))
    """
    eligible = order[free]
    count_valid, count_test = round(valid * len(order)), round(test * len(order))
    if count_valid + count_test > len(eligible):  # share out what there is in the same proportion
        count_valid = round(len(eligible) * count_valid / (count_valid + count_test))
        count_test = len(eligible) - count_valid
    held = count_valid + count_test
    return (
        np.sort(np.concatenate([order[~free], eligible[held:]])),
        np.sort(eligible[:count_valid]),
        np.sort(eligible[count_valid:held]),
    )
