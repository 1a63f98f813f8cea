"""Shares that are set aside for validation and testing where the data brings no such set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dicgrl.errors import DataWarning


class SetAside(NamedTuple):
    """Shares of what each part learns from that are set aside where a part has no such set.

    Attributes:
        valid: Share for validation.
        test: Share for testing.
        seed: Seed of the division.
    """

    valid: float = 0.0
    test: float = 0.0
    seed: int = 0

    def where_missing(self, has_valid: bool, has_test: bool) -> SetAside:
        """The shares of one part: nothing for a set that it has.

        Example:
            >>> SetAside(valid=0.1, test=0.2).where_missing(has_valid=False, has_test=True)
            SetAside(valid=0.1, test=0.0, seed=0)
        """
        return SetAside(0.0 if has_valid else self.valid, 0.0 if has_test else self.test, self.seed)

    def generator(self, part: int) -> np.random.Generator:
        """What divides a part; a longer stream divides its first parts as the shorter one did."""
        return np.random.default_rng((self.seed, part))

    def warn_if_unused(self, source: object, has: Sequence[tuple[bool, bool]]) -> None:
        """Warn of a share that is asked for and set aside nowhere.

        Args:
            source: What the warning names.
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


NOTHING = SetAside()
