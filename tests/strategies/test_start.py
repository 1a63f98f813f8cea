"""Where new rows start: closed forms for TransE."""

from __future__ import annotations

from collections import defaultdict
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import Learner
from dicgrl.models import Components, KnowledgeModel, Scorer
from dicgrl.strategies.start import place_newcomers, scatter_newcomers, start_from_neighbours
from dicgrl.trainers import LinkTrainer
from tests.growing import knowledge_stream, settings_of, strategy_of, trainer_of
from tests.slow import entity_parts, relation_parts, rows_of, slow_chosen

OLD, NEW = 4, 3  # entities
FORMS = [
    None,
    Components(4, 2),
    Components(4, 2, routing="published"),
    Components(4, 2, routing="published", order="weight"),
]
every_form = pytest.mark.parametrize("components", FORMS, ids=["plain", "parts", "paper", "weight"])


def grown(
    components: Components | None, name: str = "transe", relations: int = 2
) -> KnowledgeModel:
    model = KnowledgeModel(name, 8, components, seed=1)
    model.grow(OLD, 2)
    model.grow(NEW, relations - 2)
    return model


def chosen_of(model: KnowledgeModel, triple: tuple[int, int, int]) -> list[int]:
    """Components in the order in which they are concatenated."""
    if model.components is not None and model.components.order == "weight":
        assert model.attention is not None
        row = model.attention.rows[triple[1]].tolist()
        return sorted(range(len(row)), key=lambda k: -row[k])[: model.components.top]
    return slow_chosen(model, triple)


def relation_part(model: KnowledgeModel, triple: tuple[int, int, int], k: int) -> torch.Tensor:
    """What the relation says about component k."""
    parts = torch.tensor(relation_parts(model, triple[1]))
    if len(parts) > 1:
        return parts[k]
    size = model.size
    at = chosen_of(model, triple).index(k)
    return parts[0][at * size : (at + 1) * size]


old = st.integers(0, OLD - 1)
new = st.integers(OLD, OLD + NEW - 1)
relation = st.integers(0, 1)
facts = (
    st.tuples(old, relation, new) | st.tuples(new, relation, old) | st.tuples(old, relation, old)
)


@every_form
@given(triples=st.lists(facts, max_size=10))
def test_a_new_entity_is_the_mean_of_what_its_triples_say(
    components: Components | None, triples: list[tuple[int, int, int]]
) -> None:
    """h + r where it is the tail, t - r where it is the head, component by component."""
    model = grown(components)
    before = model.entities.rows.clone()
    said = defaultdict(list)
    for h, r, t in triples:
        for k in chosen_of(model, (h, r, t)):
            shift = relation_part(model, (h, r, t), k)
            if t >= OLD:
                said[t, k].append(torch.tensor(entity_parts(model, h)[k]) + shift)
            if h >= OLD:
                said[h, k].append(torch.tensor(entity_parts(model, t)[k]) - shift)
    relations = model.relations.rows.clone()
    place_newcomers(model, rows_of(triples), OLD, 2)
    for entity in range(OLD + NEW):
        for k in range(model.count):
            row = model.entities.rows[entity * model.count + k]
            if (entity, k) in said:
                assert torch.allclose(row, torch.stack(said[entity, k]).mean(0), atol=1e-6)
            else:  # old, or nothing is said about it: the random start stays
                assert torch.equal(row, before[entity * model.count + k])
    assert torch.equal(model.relations.rows, relations)


@every_form
def test_chains_of_new_entities_are_reached_one_by_one(components: Components | None) -> None:
    """old - r -> 4 - r -> 5 - r -> 6: each lies one translation farther."""
    model = grown(components)
    place_newcomers(model, rows_of([(5, 0, 6), (4, 0, 5), (0, 0, 4)]), OLD, 2)
    for k in chosen_of(model, (0, 0, 4)):
        shift = relation_part(model, (0, 0, 4), k)
        first = torch.tensor(entity_parts(model, 0)[k])
        for steps, entity in enumerate((4, 5, 6), start=1):
            found = torch.tensor(entity_parts(model, entity)[k])
            assert torch.allclose(found, first + steps * shift, atol=1e-6)


@every_form
def test_a_new_relation_is_the_mean_of_what_fits_between_its_ends(
    components: Components | None,
) -> None:
    model = grown(components, relations=4)
    triples = [(0, 2, 1), (1, 2, 3), (2, 3, 5)]  # of relation 3 one end is not known yet
    before = model.relations.rows.clone()
    place_newcomers(model, rows_of(triples), OLD, 2)
    for k in chosen_of(model, (0, 2, 1)):
        ends = [torch.tensor(entity_parts(model, e)[k]) for e in (0, 1, 1, 3)]
        expected = ((ends[1] - ends[0]) + (ends[3] - ends[2])) / 2
        assert torch.allclose(relation_part(model, (0, 2, 1), k), expected, atol=1e-6)
    size = model.relation_count
    assert torch.equal(model.relations.rows[: 2 * size], before[: 2 * size])  # old ones
    assert torch.equal(model.relations.rows[3 * size :], before[3 * size :])  # nothing is known


def test_a_new_relation_places_new_entities_once_it_is_known() -> None:
    model = grown(None, relations=3)
    place_newcomers(model, rows_of([(0, 2, 1), (3, 2, 4)]), OLD, 2)
    rows = model.entities.rows
    assert torch.allclose(rows[4], rows[3] + rows[1] - rows[0], atol=1e-6)


def test_two_new_ends_that_know_only_each_other_keep_their_random_start() -> None:
    model = grown(None)
    before = model.entities.rows.clone()
    place_newcomers(model, rows_of([(4, 0, 5), (5, 1, 4), (6, 0, 6)]), OLD, 2)
    assert torch.equal(model.entities.rows, before)


@pytest.mark.parametrize("components", [None, Components(4, 2)])
def test_a_scorer_that_cannot_say_keeps_the_random_start(components: Components | None) -> None:
    class Silent(Scorer, name="silent-of-the-tests"):
        def score(
            self, head: torch.Tensor, relation: torch.Tensor, tail: torch.Tensor
        ) -> torch.Tensor:
            return (head * relation * tail).sum(-1)

    try:
        model = grown(components, "silent-of-the-tests", relations=3)
        before = [table.rows.clone() for table in model.tables().values()]
        place_newcomers(model, rows_of([(0, 0, 4), (0, 2, 1), (4, 1, 1)]), OLD, 2)
        after = [table.rows for table in model.tables().values()]
        assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
    finally:
        del Scorer.registry["silent-of-the-tests"]


@pytest.mark.parametrize("start", ["random", "neighbours", "auto"])
@pytest.mark.parametrize("strategy", ["lower", "dicgrl"])
@pytest.mark.parametrize("form", ["transe-divided", "convkb-divided", "transe-nodes"])
def test_a_run_starts_new_rows_as_asked_and_leaves_old_ones(
    form: str, strategy: str, start: str
) -> None:
    trainer = trainer_of(settings_of(form, strategy, start=start))
    other = trainer_of(settings_of(form, strategy, start="random"))
    stream = knowledge_stream()
    for each in (trainer, other):
        assert isinstance(each, LinkTrainer)
        each.take(stream[0])
    assert isinstance(trainer, LinkTrainer) and isinstance(other, LinkTrainer)
    assert torch.equal(
        trainer.model.entities.rows, other.model.entities.rows
    )  # the first is random
    before = trainer.model.entities.rows.clone()
    for each in (trainer, other):
        each.take(stream[1])
        strategy_of(each.settings).prepare(each)
    assert torch.equal(trainer.model.entities.rows[: len(before)], before)
    placed = start == "neighbours" or (start == "auto" and strategy == "dicgrl")
    assert torch.equal(trainer.model.entities.rows, other.model.entities.rows) != placed


def facts_between(count: int, seed: int) -> list[tuple[str, str, str]]:
    drawn = torch.randint(30, (count, 2), generator=torch.Generator().manual_seed(seed))
    return [(f"e{head}", "r", f"e{tail}") for head, tail in drawn.tolist()]


@pytest.mark.parametrize("components", [0, 4])
def test_newcomers_of_few_triples_lie_as_far_off_as_known_answers(components: int) -> None:
    divided = {"components": components, "top": 2} if components else {}
    learner = Learner("transe", "fresh", dim=16, epochs=2, device="cpu", **divided)
    learner.learn(facts_between(200, 1))
    trainer = learner.trainer
    assert isinstance(trainer, LinkTrainer)
    facts = [("e0", "r", "one"), *((f"e{number}", "r", "many") for number in range(30))]
    trainer.take(learner.intake(facts).part)
    model, before = trainer.model, trainer.model.entities.rows.clone()
    start_from_neighbours(trainer)
    placed = model.entities.rows.clone()
    scatter_newcomers(trainer)
    old = trainer.old_rows()["entities"]
    assert torch.equal(model.entities.rows[:old], before[:old])
    moved = (model.entities.rows - placed)[old:].view(2, -1).square().mean(1).sqrt()
    known = trainer.examples("train", 0, 1)
    route = model.route(*known.unbind(1))
    head, tail = (model.entity_vectors(known[:, end], route) for end in (0, 2))
    off = (head + model.relation_vectors(known[:, 1], route) - tail).square().mean().sqrt()
    one, many = moved.tolist()  # in the order of their arrival
    assert one == pytest.approx(0.7 * off.item(), rel=0.6)
    assert many == pytest.approx(0.7 * off.item() / 30, rel=0.6)


def test_only_newcomers_that_would_outdo_every_answer_are_moved() -> None:
    for model, strategy, moves in (
        ("transe", "fresh", True),
        ("rotate", "warm", True),
        ("transe", "dicgrl", False),  # a shield keeps them out of places that are taken
        ("distmult", "fresh", False),
    ):
        learner = Learner(model, strategy, dim=8, epochs=1, device="cpu", start="neighbours")
        learner.learn(facts_between(60, 2))
        learner.trainer.take(learner.intake([("e1", "r", "new")]).part)
        with patch("dicgrl.strategies.base.scatter_newcomers") as scattered:
            learner.strategy.start(learner.trainer)
        before = learner.trainer.model.entities.rows.clone()
        if scattered.called:
            scatter_newcomers(learner.trainer)
        changed = (learner.trainer.model.entities.rows != before).any(1).nonzero()[:, 0]
        first = learner.trainer.old_rows()["entities"]
        assert bool(len(changed)) == moves and (changed >= first).all()
