from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dicgrl import UserError
from dicgrl.models import Components, ConvKB, Scorer, TransE
from tests.slow import slow_softmax, slow_top

logit_rows = st.lists(
    st.lists(st.integers(-40, 40).map(lambda i: i / 8), min_size=5, max_size=5, unique=True),
    min_size=1,
    max_size=4,
)


@given(logit_rows, st.integers(1, 5), st.sampled_from(["learned", "published"]))
def test_the_n_highest_weights_are_chosen_in_component_order(
    rows: list[list[float]], top: int, routing: str
) -> None:
    route = Components(5, top, routing=routing).route(torch.tensor(rows, dtype=torch.float64))
    for i, row in enumerate(rows):
        weights = slow_softmax(row)
        chosen = slow_top(row, top)
        assert route.chosen[i].tolist() == chosen
        assert route.alpha[i].tolist() == pytest.approx([weights[k] for k in chosen])
    if routing == "learned":
        assert route.gate is not None and torch.equal(route.gate, torch.ones_like(route.alpha))
    else:
        assert route.gate is None


@given(logit_rows, st.integers(1, 5))
def test_order_by_weight_is_by_falling_weight(rows: list[list[float]], top: int) -> None:
    route = Components(5, top, order="weight").route(torch.tensor(rows, dtype=torch.float64))
    for i, row in enumerate(rows):
        weights = slow_softmax(row)
        chosen = sorted(range(5), key=lambda k: -row[k])[:top]
        assert route.chosen[i].tolist() == chosen
        assert route.alpha[i].tolist() == pytest.approx([weights[k] for k in chosen])


def test_the_two_orders_concatenate_differently() -> None:
    logits = torch.tensor([0.0, 5.0, -1.0, 7.0])
    parts = torch.arange(8.0).view(4, 2)
    vectors = {}
    for order in ("component", "weight"):
        route = Components(4, 2, order=order).route(logits)
        vectors[order] = route.apply(parts[route.chosen]).tolist()
    assert vectors == {"component": [2, 3, 6, 7], "weight": [6, 7, 2, 3]}


@given(logit_rows, st.integers(1, 5), st.sampled_from(["component", "weight"]))
def test_concentration_loss_is_what_the_chosen_weights_lack_to_one(
    rows: list[list[float]], top: int, order: str
) -> None:
    loss = Components(5, top, order=order).route(torch.tensor(rows)).concentration_loss()
    expected = [1 - sum(sorted(slow_softmax(row))[-top:]) for row in rows]
    assert loss.tolist() == pytest.approx(expected, abs=1e-5)


def test_all_components_lack_nothing() -> None:
    route = Components(4, 4).route(torch.randn(3, 4, generator=torch.Generator().manual_seed(0)))
    assert route.concentration_loss().tolist() == pytest.approx([0, 0, 0], abs=1e-6)


def test_even_weights_lack_the_share_of_the_others() -> None:
    assert Components(8, 2).route(torch.zeros(8)).concentration_loss().item() == pytest.approx(0.75)


@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=5),
    st.integers(1, 6),
)
def test_ties_are_decided_by_what_relu_was_given_and_then_by_number(
    rows: list[list[int]], top: int
) -> None:
    """Many of these are equal: `topk` may take any of them, and another one in another shape."""
    logits = torch.tensor(rows, dtype=torch.float32)
    expected = [sorted(range(6), key=lambda k: -row[k])[:top] for row in rows]
    division = Components(6, top, "nodes", order="weight")
    assert division.route(logits.relu(), before=logits).chosen.tolist() == expected
    masks = [[k in chosen for k in range(6)] for chosen in expected]
    assert division.mask(logits).tolist() == masks
    alone = [division.mask(row).tolist() for row in logits]  # whatever stands beside it
    assert alone == masks


def test_a_dominant_logit_is_stable() -> None:
    route = Components(3, 1).route(torch.tensor([-1e4, 1e4, 0.0]))
    assert route.chosen.tolist() == [1] and route.alpha.tolist() == [1.0]
    assert route.gate is not None and route.gate.tolist() == [1.0]


# Gradients of the scoring path, as a function of plain tensors.

ENTITIES, SIZE = 4, 3
HEADS, RELATIONS, TAILS = torch.tensor([0, 1, 3]), torch.tensor([0, 1, 0]), torch.tensor([2, 0, 3])


def path(
    scoring: Scorer, division: Components, entities: Tensor, relations: Tensor, logits: Tensor
) -> Tensor:
    route = division.route(logits[RELATIONS])

    def vector(table: Tensor, ids: Tensor) -> Tensor:
        return route.apply(table[ids[:, None], route.chosen])

    return scoring.score(
        vector(entities, HEADS), vector(relations, RELATIONS), vector(entities, TAILS)
    )


def scoring_of(name: str, top: int) -> Scorer:
    if name.startswith("transe"):
        return TransE(top * SIZE, p=int(name[-1]))
    made = ConvKB(top * SIZE, filters=3)
    made.initialise(torch.Generator().manual_seed(5))
    return made.double()


def tensors(count: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    shapes = ((ENTITIES, count, SIZE), (2, count, SIZE), (2, count))
    entities, relations, logits = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes
    )
    return entities, relations, logits


every_scorer = pytest.mark.parametrize("name", ["transe1", "transe2", "convkb"])


@every_scorer
@pytest.mark.parametrize("order", ["component", "weight"])
@pytest.mark.parametrize("routing", ["learned", "published"])
def test_gradients_of_the_vectors_are_right(name: str, order: str, routing: str) -> None:
    division = Components(4, 2, order=order, routing=routing)
    scoring = scoring_of(name, 2)
    entities, relations, logits = tensors(4)

    def function(e: Tensor, r: Tensor) -> Tensor:
        return path(scoring, division, e, r, logits)

    assert torch.autograd.gradcheck(
        function, (entities.requires_grad_(), relations.requires_grad_())
    )


@every_scorer
@pytest.mark.parametrize("order", ["component", "weight"])
def test_the_gradient_of_the_attention_is_that_of_weighted_components(
    name: str, order: str
) -> None:
    """alpha / constant, where the constant is alpha's own value: a function to differentiate."""
    division = Components(4, 2, order=order)
    scoring = scoring_of(name, 2)
    entities, relations, logits = tensors(4)
    ranked = logits.argsort(-1, descending=True)[:, :2]
    chosen = ranked if order == "weight" else ranked.sort(-1).values
    constant = logits.softmax(-1).gather(1, chosen)

    def weighted(values: Tensor) -> Tensor:
        gate = (values.softmax(-1).gather(1, chosen) / constant)[RELATIONS]  # [b, n]

        def vector(table: Tensor, ids: Tensor) -> Tensor:
            return (table[ids[:, None], chosen[RELATIONS]] * gate[..., None]).flatten(-2)

        return scoring.score(
            vector(entities, HEADS), vector(relations, RELATIONS), vector(entities, TAILS)
        )

    assert torch.autograd.gradcheck(weighted, logits.clone().requires_grad_())
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    scores = path(scoring, division, entities, relations, mine)
    torch.testing.assert_close(scores, weighted(theirs))
    scores.sum().backward()
    weighted(theirs).sum().backward()
    assert mine.grad is not None and theirs.grad is not None
    torch.testing.assert_close(mine.grad, theirs.grad)
    assert mine.grad.abs().min() > 0  # also the weights that were not chosen: they share the sum


@pytest.mark.parametrize("order", ["component", "weight"])
@pytest.mark.parametrize("routing", ["learned", "published"])
def test_the_concentration_loss_trains_the_attention(order: str, routing: str) -> None:
    division = Components(4, 2, order=order, routing=routing)

    def function(logits: Tensor) -> Tensor:
        return division.route(logits).concentration_loss()

    logits = tensors(4)[2].requires_grad_()
    assert torch.autograd.gradcheck(function, logits)
    function(logits).sum().backward()
    assert logits.grad is not None
    for row, gradient in zip(logits.tolist(), logits.grad.tolist(), strict=True):
        weights = slow_softmax(row)
        chosen = slow_top(row, 2)
        held = sum(weights[k] for k in chosen)
        # d(1 - held) / d logit_k = -alpha_k ([k chosen] - held)
        expected = [-w * ((k in chosen) - held) for k, w in enumerate(weights)]
        assert gradient == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top": 0}, "top=0"),
        ({"top": 9}, "top=9 of components=8"),
        ({"count": 0, "top": 0}, "components=0"),
        ({"attention": "edge"}, "attention='edge'.*'relation' or 'nodes' or 'triple'"),
        ({"routing": "hard"}, "routing='hard'.*'learned' or 'published'"),
        ({"order": "random"}, "order='random'.*'component' or 'weight'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Components(**changes)  # type: ignore[arg-type]


@given(st.integers(1, 62), st.data(), st.integers(1, 2000))
def test_the_top_components_have_the_active_size(count: int, data: st.DataObject, dim: int) -> None:
    top = data.draw(st.integers(1, count))
    size = Components(count, top).size(dim)
    enough = (n for n in range(1, 2001) if n * top >= dim)
    assert size == next(n for n in enough if n * top == dim or n % 4 == 0)
