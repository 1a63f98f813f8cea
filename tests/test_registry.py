"""A name belongs to one class, so that a run means the same wherever it is read."""

from __future__ import annotations

import pytest

from dicgrl import UserError
from dicgrl.models import Scorer, TransE
from dicgrl.strategies import Strategy
from dicgrl.strategies.dicgrl import DiCGRL


def test_a_builtin_cannot_be_replaced() -> None:
    with pytest.raises(UserError, match=r"^model 'transe' is dicgrl\..*\.TransE already"):

        class Other(Scorer, name="transe"):
            pass

    with pytest.raises(UserError, match=r"^strategy 'dicgrl' is dicgrl\..*\.DiCGRL already"):

        class Mine(Strategy, name="dicgrl"):
            pass

    assert Scorer.registry["transe"] is TransE and TransE.name == "transe"
    assert Strategy.registry["dicgrl"] is DiCGRL


@pytest.mark.parametrize("base", [Scorer, Strategy])
def test_a_module_may_define_its_own_again(base: type[Scorer] | type[Strategy]) -> None:
    name = "again-of-the-tests"
    try:
        for _ in range(2):

            class Again(base, name=name):  # type: ignore[misc, valid-type]
                pass

            assert base.registry[name] is Again
    finally:
        base.registry.pop(name, None)
