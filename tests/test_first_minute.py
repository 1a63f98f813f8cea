"""Settings that the first pages show learn something on real facts; what learns nothing warns."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from dicgrl import KnowledgeStream, Learner, ModelWarning, load_stream

README = {"dim": 32, "lr": 0.05, "epochs": 30}
TUTORIAL = {"dim": 32, "epochs": 30, "components": 4, "top": 2}


def warned(**settings: Any) -> list[str]:
    """What is said of a model of the first films, a tenth of whose facts are held out."""
    part = load_stream("films")[0]
    entities, relations = list(part.entities), list(part.relations)
    facts = [(entities[h], relations[r], entities[t]) for h, r, t in part.train[:3000].tolist()]
    stream = KnowledgeStream.from_labels("films", [facts], valid=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Learner("transe", device="cpu", **settings).learn(stream[0])
    return [str(each.message) for each in caught if issubclass(each.category, ModelWarning)]


@pytest.mark.parametrize("settings", [README, TUTORIAL], ids=["readme", "tutorial"])
def test_what_the_first_pages_show_learns_something(settings: dict[str, Any]) -> None:
    assert not warned(**settings)


def test_what_learns_nothing_warns() -> None:
    (said,) = warned(dim=32, epochs=2, lr=1e-6)
    assert "knows" in said or "hardly" in said
