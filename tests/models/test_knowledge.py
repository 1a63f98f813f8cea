from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl import UserError
from dicgrl.models import Components, KnowledgeModel
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from tests.slow import relation_parts, slow_attention, slow_chosen, slow_score, slow_softmax

ATTENTION = ("relation", "nodes", "triple")
ROUTING = ("learned", "published")
E, R = 7, 3


def model_of(
    name: str = "transe",
    attention: str | None = None,
    routing: str = "learned",
    top: int = 2,
    seed: int = 0,
    **options: Any,
) -> KnowledgeModel:
    """A model with weights of its own, that do not depend on how the package starts them."""
    components = Components(4, top, attention, routing) if attention else None
    if name == "convkb":
        options = {"filters": 3} | options
    model = KnowledgeModel(name, 12, components, options, seed)
    model.grow(E, R)
    generator = torch.Generator().manual_seed(seed + 100)
    model.entities.rows.normal_(generator=generator)
    model.relations.rows.normal_(generator=generator)
    if model.attention is not None:
        model.attention.rows.normal_(generator=generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
    return model


KINDS = [(None, "learned"), *itertools.product(ATTENTION, ROUTING)]
every_kind = pytest.mark.parametrize(("attention", "routing"), KINDS)
disentangled = pytest.mark.parametrize(("attention", "routing"), KINDS[1:])
every_scorer = pytest.mark.parametrize(
    ("name", "options"), [("transe", {"p": 1}), ("transe", {"p": 2}), ("convkb", {})]
)
TRIPLES = [(h, r, t) for h in range(E) for r in range(R) for t in range(E)]


def clear_choice(model: KnowledgeModel, triple: tuple[int, int, int]) -> bool:
    """Whether the last chosen component leads the first left out by more than rounding.

    ReLU makes equal weights of 0, and which of them is taken is nobody's business.
    """
    if model.components is None:
        return True
    weights = sorted(slow_attention(model, triple), reverse=True)
    top = model.components.top
    return weights[top - 1] - weights[top] > 1e-4


@every_kind
@every_scorer
def test_scores_are_those_of_plain_loops(
    name: str, options: dict[str, Any], attention: str | None, routing: str
) -> None:
    model = model_of(name, attention, routing, **options)
    clear = [triple for triple in TRIPLES if clear_choice(model, triple)]
    assert len(clear) > 60
    got = model.score(*torch.tensor(clear).unbind(1))
    expected = [slow_score(model, triple) for triple in clear]
    assert got.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)


SHAPES = [
    ((4,), (4,), (4,)),
    ((4, 1), (4, 1), (4, 5)),
    ((4, 5), (4, 1), (4, 1)),
    ((5,), (4, 1), (4, 1)),
    ((4, 1), (5,), (1,)),
    ((), (), (6,)),
    ((), (), ()),
    ((2, 1, 3), (1, 4, 1), (3,)),
]


@every_kind
@pytest.mark.parametrize("name", ["transe", "convkb"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_broadcast(
    name: str, attention: str | None, routing: str, shapes: list[tuple[int, ...]]
) -> None:
    model = model_of(name, attention, routing)
    generator = torch.Generator().manual_seed(1)
    ids = [
        torch.randint(high, shape, generator=generator)
        for high, shape in zip((E, R, E), shapes, strict=True)
    ]
    with torch.no_grad():
        scores = model.score(*ids)
        every = torch.broadcast_tensors(*ids)
        assert scores.shape == every[0].shape
        one_by_one = [
            model.score(*(column[None] for column in triple)).item()
            for triple in zip(*(e.flatten() for e in every), strict=True)
        ]
    assert scores.flatten().tolist() == pytest.approx(one_by_one, rel=1e-4, abs=1e-5)


@every_kind
@every_scorer
@pytest.mark.parametrize("side", ["head", "tail"])
def test_candidate_scores_are_the_scores_of_each_candidate(
    name: str, options: dict[str, Any], attention: str | None, routing: str, side: str
) -> None:
    model = model_of(name, attention, routing, **options)
    if model.one_relation_per_block:
        batches = [[[0, r, 1], [4, r, 4], [6, r, 2]] for r in range(R)]
    else:
        batches = [[[0, 0, 1], [4, 1, 4], [6, 2, 2]]]
    for rows, (start, stop) in itertools.product(batches, ((0, E), (2, 5), (6, 7), (3, 3))):
        with torch.no_grad():
            scores = model.candidate_scores(torch.tensor(rows), side, start, stop)  # type: ignore[arg-type]
            assert scores.shape == (3, stop - start)
            for q, (h, r, t) in enumerate(rows):
                for entity in range(start, stop):
                    triple = (entity, r, t) if side == "head" else (h, r, entity)
                    expected = model.score(*torch.tensor([triple]).unbind(1)).item()
                    got = scores[q, entity - start].item()
                    assert got == pytest.approx(expected, rel=1e-4, abs=1e-5)


@every_kind
def test_growth_leaves_old_rows_and_their_state_bit_for_bit(
    attention: str | None, routing: str
) -> None:
    model = model_of("convkb", attention, routing)
    optimiser = RowAdam(model.tables().values(), model.parameters(), lr=0.1)
    ids = torch.tensor([[0, 1, 2], [3, 0, 6]])
    for entities, relations in ((3, 0), (0, 2), (0, 0), (11, 5)):
        model.score(*ids.unbind(1)).sum().backward()
        optimiser.step()
        counts = model.num_entities, model.num_relations
        before = {name: table.snapshot() for name, table in model.tables().items()}
        dense = [parameter.detach().clone() for parameter in model.parameters()]
        with torch.no_grad():
            scores = model.score(*ids.unbind(1))
        model.grow(entities, relations)
        assert model.num_entities == counts[0] + entities
        assert model.num_relations == counts[1] + relations
        for name, table in model.tables().items():
            after = table.snapshot()
            for buffer, values in before[name].items():
                assert torch.equal(after[buffer][: len(values)], values)
        assert all(
            torch.equal(mine, kept) for mine, kept in zip(model.parameters(), dense, strict=True)
        )
        with torch.no_grad():
            assert torch.equal(model.score(*ids.unbind(1)), scores)
    newest = torch.tensor(model.num_entities - 1)
    assert model.score(newest, torch.tensor(model.num_relations - 1), newest).isfinite()


def test_new_rows_are_unlike_old_ones() -> None:
    model = KnowledgeModel("transe", 8, Components(4, 2))
    model.grow(5, 2)
    model.grow(5, 2)
    for table in model.tables().values():
        assert len(table.rows.unique(dim=0)) == len(table)


@every_kind
def test_start_values_follow_the_seed(attention: str | None, routing: str) -> None:
    components = Components(4, 2, attention, routing) if attention else None
    first, same, other = (
        KnowledgeModel("convkb", 12, components, {"filters": 3}, seed) for seed in (1, 1, 2)
    )
    for model in (first, same, other):
        torch.rand(3)  # global state does not count
        model.grow(5, 2)

    def weights(model: KnowledgeModel) -> list[Tensor]:
        return [t.rows for t in model.tables().values()] + [p.detach() for p in model.parameters()]

    for mine, equal, unlike in zip(weights(first), weights(same), weights(other), strict=True):
        assert torch.equal(mine, equal)
        assert not mine.any() or not torch.equal(mine, unlike)


def test_the_relation_has_the_length_that_the_paper_says() -> None:
    published = KnowledgeModel("transe", 200, Components(8, 4, routing="published"))
    assert published.relations.width == 200 * 4 // 8 == published.active
    learned = KnowledgeModel("transe", 200, Components(8, 4))
    assert (learned.relations.width, learned.relation_count) == (25, 8)
    assert learned.scorer.dim == 100


def test_a_configuration_makes_a_model_like_it() -> None:
    model = model_of("convkb", "triple", "published", filters=5, dropout=0.1)
    kept = json.loads(json.dumps(model.configuration()))
    kept["components"] = Components(**kept["components"])
    again = KnowledgeModel(**kept)
    assert again.configuration() == model.configuration()
    assert [p.shape for p in again.parameters()] == [p.shape for p in model.parameters()]


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="length=10: expected a multiple of components=4"):
        KnowledgeModel("transe", 10, Components(4, 2))
    with pytest.raises(UserError, match="p=7"):
        KnowledgeModel("transe", 10, options={"p": 7})


# What learns and what rests.


def attention_gradient(model: KnowledgeModel) -> Tensor:
    if model.attention is not None:
        return model.attention.gradient
    assert model.attention_weight is not None
    grad = model.attention_weight.grad
    return torch.zeros_like(model.attention_weight) if grad is None else grad


def task_loss(model: KnowledgeModel, beta: float, triples: Tensor) -> Tensor:
    sampler = NegativeSampler(triples, E, R, torch.Generator().manual_seed(0))
    objective = LinkObjective(sampler, make_loss("softmargin", 3.0, 1.0), 4, beta)
    return objective(model, triples, torch.ones(len(triples)))


BATCH = torch.tensor([[0, 0, 1], [2, 1, 3], [4, 2, 5], [6, 0, 6]])


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("name", ["transe", "convkb"])
def test_published_routing_learns_from_the_normalisation_loss_alone(
    name: str, attention: str
) -> None:
    model = model_of(name, attention, "published")
    loss = task_loss(model, 0.0, BATCH)
    loss.backward()
    assert torch.equal(attention_gradient(model), torch.zeros_like(attention_gradient(model)))
    if model.attention is not None:
        assert not model.attention.gradient.any()
    task_loss(model, 0.1, BATCH).backward()
    assert attention_gradient(model).any()


def test_published_routing_does_not_move_under_the_task_even_with_weight_decay() -> None:
    model = model_of("transe", "relation", "published")
    assert model.attention is not None
    before = model.attention.rows.clone()
    optimiser = RowAdam(model.tables().values(), lr=0.1)
    for _ in range(3):
        task_loss(model, 0.0, BATCH).backward()
        optimiser.step()
    assert torch.equal(model.attention.rows, before)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("name", ["transe", "convkb"])
def test_learned_routing_learns_from_the_task(name: str, attention: str) -> None:
    model = model_of(name, attention, "learned")
    task_loss(model, 0.0, BATCH).backward()
    gradient = attention_gradient(model)
    assert gradient.isfinite().all()
    if attention == "relation":
        assert gradient.abs().sum(1).min() > 0  # every relation of the batch
    else:
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("attention", ["relation", "nodes"])
@pytest.mark.parametrize("name", ["transe", "convkb"])
def test_learned_routing_scores_as_published_routing_does(name: str, attention: str) -> None:
    learned = model_of(name, attention, "learned")
    published = model_of(name, attention, "published")
    published.entities.rows.copy_(learned.entities.rows)
    published.load_state_dict(learned.state_dict())
    if learned.attention is not None and published.attention is not None:
        published.attention.rows.copy_(learned.attention.rows)
    for triple in TRIPLES[::5]:
        r = triple[1]
        chosen = learned.route(*torch.tensor([triple]).unbind(1))
        assert chosen is not None
        parts = relation_parts(learned, r)
        row = [x for k in chosen.chosen[0].tolist() for x in parts[k]]
        published.relations.rows[r] = torch.tensor(row)
        ids = torch.tensor([triple]).unbind(1)
        assert torch.equal(learned.score(*ids), published.score(*ids))


@disentangled
@pytest.mark.parametrize("name", ["transe", "convkb"])
@pytest.mark.parametrize("copies", [1, 30], ids=["sparse branch", "dense branch"])
def test_a_component_outside_the_top_n_gets_no_gradient_and_does_not_move(
    name: str, attention: str, routing: str, copies: int
) -> None:
    model = model_of(name, attention, routing)
    first = next(x for x in TRIPLES if x[1] == 0 and x[0] < x[2] and clear_choice(model, x))
    second = next(
        x for x in TRIPLES if x[1] == 1 and x[0] != x[2] == first[0] and clear_choice(model, x)
    )
    triples = [first, second]  # an entity is the head of one and the tail of the other
    used = {(e, k) for triple in triples for e in triple[::2] for k in slow_chosen(model, triple)}
    used_relation = {(triple[1], k) for triple in triples for k in slow_chosen(model, triple)}
    optimiser = RowAdam(model.tables().values(), model.parameters(), lr=0.1, weight_decay=0.1)
    # Moments and weight decay must not move them either: first a step that touches all.
    model.score(*torch.tensor(TRIPLES).unbind(1)).sum().backward()
    optimiser.step()
    model.entities.rows.copy_(model_of(name, attention, routing).entities.rows)
    model.relations.rows.copy_(model_of(name, attention, routing).relations.rows)
    if model.attention is not None:
        fresh = model_of(name, attention, routing).attention
        assert fresh is not None
        model.attention.rows.copy_(fresh.rows)
    model.load_state_dict(model_of(name, attention, routing).state_dict())
    before = {key: table.rows.clone() for key, table in model.tables().items()}

    scores = model.score(*torch.tensor(triples * copies).unbind(1))
    (scores * torch.tensor([1.0, 0.7] * copies)).sum().backward()  # so that nothing cancels
    gradient = model.entities.gradient.view(E, 4, -1).clone()
    relation_gradient = model.relations.gradient.view(R, model.relation_count, -1).clone()
    optimiser.step()
    moved = (model.entities.rows != before["entities"]).view(E, 4, -1)
    for entity, k in itertools.product(range(E), range(4)):
        assert bool(gradient[entity, k].any()) == ((entity, k) in used)
        assert bool(moved[entity, k].any()) == ((entity, k) in used)
    moved = (model.relations.rows != before["relations"]).view(R, model.relation_count, -1)
    for relation, k in itertools.product(range(R), range(model.relation_count)):
        if model.relation_count == 1:
            expected = relation in (0, 1)
        else:
            expected = (relation, k) in used_relation
        assert bool(relation_gradient[relation, k].any()) == expected
        assert bool(moved[relation, k].any()) == expected
    if model.attention is not None:
        still = (model.attention.rows == before["attention"]).all(1)
        assert still.tolist() == [routing == "published"] * 2 + [True]


@disentangled
def test_the_normalisation_loss_is_that_of_the_paper(attention: str, routing: str) -> None:
    model = model_of("transe", attention, routing)
    weight = torch.tensor([1.0, 2.0, 0.5, 0.0])

    def loss(beta: float) -> float:
        sampler = NegativeSampler(BATCH, E, R, torch.Generator().manual_seed(0))
        objective = LinkObjective(sampler, make_loss("margin", 3.0, 1.0), 4, beta)
        return objective(model, BATCH, weight).item()

    # 1 - the sum of the n highest weights of each triple, here weighted and averaged
    missing = [
        1 - sum(sorted(slow_softmax(slow_attention(model, (h, r, t))))[-2:])
        for h, r, t in BATCH.tolist()
    ]
    mean = sum(w * m for w, m in zip(weight.tolist(), missing, strict=True)) / weight.sum().item()
    assert loss(0.7) - loss(0.0) == pytest.approx(0.7 * mean, abs=1e-5)


def test_the_normalisation_loss_sharpens_the_choice_of_the_start() -> None:
    model = model_of("transe", "relation", "published")
    route = model.route(*BATCH.unbind(1))
    assert route is not None and model.attention is not None
    optimiser = RowAdam([model.attention], lr=0.1)
    start = route.chosen.clone()
    for _ in range(50):
        now = model.route(*BATCH.unbind(1))
        assert now is not None and torch.equal(now.chosen, start)
        now.concentration_loss().sum().backward()
        optimiser.step()
    last = model.route(*BATCH.unbind(1))
    assert last is not None and last.concentration_loss().max() < 0.02


def test_gradients_of_the_tables_are_those_of_plain_autograd() -> None:
    model = model_of("transe", "relation", "learned")
    assert model.attention is not None and model.components is not None
    plain = {name: table.rows.clone().requires_grad_() for name, table in model.tables().items()}
    h, r, t = torch.tensor(TRIPLES).unbind(1)
    route = model.components.route(plain["attention"][r])

    def vector(rows: Tensor, ids: Tensor) -> Tensor:
        return route.apply(rows[ids[:, None] * 4 + route.chosen])

    coefficient = torch.randn(len(TRIPLES), generator=torch.Generator().manual_seed(3))
    scores = model.scorer.score(
        vector(plain["entities"], h), vector(plain["relations"], r), vector(plain["entities"], t)
    )
    (scores * coefficient).sum().backward()
    (model.score(h, r, t) * coefficient).sum().backward()
    for name, table in model.tables().items():
        grad = plain[name].grad
        assert grad is not None
        torch.testing.assert_close(table.gradient, grad, rtol=1e-4, atol=1e-4)


def test_only_attention_on_relations_lets_negatives_share_a_fast_path() -> None:
    assert model_of().fast_batch() is not None
    assert model_of("transe", "relation").fast_batch() is not None
    for name, attention in (
        ("transe", "nodes"),
        ("transe", "triple"),
        ("convkb", None),
        ("convkb", "relation"),
    ):
        assert model_of(name, attention).fast_batch() is None
