"""What decoders can and cannot express: patterns of relations, learned from a part of the facts."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

from dicgrl import Learner

MANY = 24
Fact = tuple[str, str, str]


def shifted(relation: str, by: int) -> list[Fact]:
    """Everyone on a ring, and who sits so many seats further."""
    return [(f"e{i}", relation, f"e{(i + by) % MANY}") for i in range(MANY)]


def friends() -> list[Fact]:
    """Pairs of neighbours on a ring."""
    return shifted("friend of", 1)


def turned(facts: list[Fact]) -> list[Fact]:
    return [(tail, relation, head) for head, relation, tail in facts]


PATTERNS = {
    # Of each pair of friends one direction is told of, of three pairs out of four the other too.
    "symmetry": (
        friends() + turned(friends())[: 3 * MANY // 4],
        turned(friends())[3 * MANY // 4 :],
    ),
    "antisymmetry": (friends(), friends()),
    # Two seats and three seats are five seats; of a half it is said.
    "composition": (
        shifted("2", 2) + shifted("3", 3) + shifted("5", 5)[::2],
        shifted("5", 5)[1::2],
    ),
}


@cache
def learned(model: str, pattern: str) -> Learner:
    own = {"n3": 0.01} if model in ("distmult", "complex") else {"margin": 3.0}
    learner = Learner(
        model, "lower", dim=32, epochs=200, batch=32, lr=0.02, negatives=16, device="cpu", **own
    )
    learner.learn(PATTERNS[pattern][0])
    return learner


def ids(learner: Learner, facts: list[Fact]) -> Tensor:
    graph = learner.trainer.graph
    known = (graph.entities, graph.relations, graph.entities)
    columns = zip(known, zip(*facts, strict=True), strict=True)
    return torch.stack([torch.from_numpy(names.ids(labels)) for names, labels in columns], 1)


def asked(model: str, pattern: str) -> tuple[Learner, Tensor]:
    learner = learned(model, pattern)
    return learner, ids(learner, PATTERNS[pattern][1])


@pytest.mark.parametrize("model", ["distmult", "complex", "rotate"])
def test_symmetry_is_learned(model: str) -> None:
    learner, triples = asked(model, "symmetry")
    assert learner.trainer.ranks(triples).realistic.median() == 1


def test_a_translation_there_and_back_leads_nowhere() -> None:
    """TransE finds who asks nearer than the friend: its relation is nearly zero."""
    learner, triples = asked("transe", "symmetry")
    assert learner.trainer.ranks(triples).realistic.median() > 2


@pytest.mark.parametrize("model", ["complex", "rotate", "transe"])
def test_antisymmetry_is_learned(model: str) -> None:
    learner, triples = asked(model, "antisymmetry")
    score = learner.trainer.model.score
    there, back = score(*triples.unbind(1)), score(*triples.flip(1).unbind(1))
    assert (there > back).float().mean() > 0.95


def test_distmult_knows_no_direction() -> None:
    learner, triples = asked("distmult", "antisymmetry")
    score = learner.trainer.model.score
    assert torch.allclose(score(*triples.unbind(1)), score(*triples.flip(1).unbind(1)), atol=1e-5)


def test_rotations_compose() -> None:
    learner, triples = asked("rotate", "composition")
    assert learner.trainer.ranks(triples).realistic.median() == 1
