"""1-vs-all beside a loop over all triples there are, and beside what can be said in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dicgrl import Settings, UserError
from dicgrl.models import Components, KnowledgeModel
from dicgrl.tasks import task_named
from dicgrl.training import RowAdam, all_entities
from dicgrl.training.all_entities import AllEntitiesObjective, Competitors
from tests.slow import rows_of

ENTITIES, RELATIONS = 9, 3
KNOWN = rows_of([(0, 0, 1), (0, 0, 2), (3, 0, 1), (1, 1, 1), (4, 2, 5), (6, 1, 5), (8, 2, 0)])
TRIPLES = KNOWN[[0, 1, 3, 4, 6]]
WEIGHT = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.25])
TWO = Components(4, 2)
FORMS: dict[str, tuple[str, Components | None, dict[str, Any]]] = {
    "distmult": ("distmult", None, {}),
    "complex": ("complex", None, {}),
    "complex, inverses": ("complex", None, {"inverses": True}),
    "complex, divided": ("complex", TWO, {}),
    "distmult, published": ("distmult", Components(4, 2, routing="published", order="weight"), {}),
    "transe": ("transe", None, {}),
    "transe, p=2": ("transe", None, {"options": {"p": 2}}),
    "transe, inverses": ("transe", None, {"inverses": True}),
    "rotate": ("rotate", None, {}),
}
every_form = pytest.mark.parametrize("form", FORMS)


def model_of(form: str) -> KnowledgeModel:
    name, components, others = FORMS[form]
    options = others.get("options", {"n3": 0.0} if name in ("distmult", "complex") else {})
    model = KnowledgeModel(
        name, 8, components, options, seed=3, inverses=others.get("inverses", False)
    )
    model.grow(ENTITIES, RELATIONS)
    for table in model.tables().values():  # scores that are far from each other
        table.rows.normal_(generator=torch.Generator().manual_seed(5))
    return model


def slow_scores(model: KnowledgeModel, triple: list[int], asked: int) -> Tensor:
    """Scores of all entities in the place of the head (0) or the tail (2), one by one."""
    found = []
    for entity in range(ENTITIES):
        ids = torch.tensor(triple)
        ids[asked] = entity
        if not model.inverses:
            found.append(model.score(*ids))
            continue
        h, r, t = (
            table.gather(ids[[column]])[0]
            for table, column in ((model.entities, 0), (model.relations, 1), (model.entities, 2))
        )
        there, back = r.chunk(2)
        score = model.scorer.inner.score  # type: ignore[attr-defined, union-attr, operator]
        found.append(score(h, there, t) if asked == 2 else score(t, back, h))
    return torch.stack(found)


def slow_losses(
    model: KnowledgeModel, known: list[list[int]], among: range, bars: Tensor | None = None
) -> Iterator[Tensor]:
    """Loss of each triple: of the question about its tail and of that about its head."""
    for number, triple in enumerate(TRIPLES.tolist()):
        both = []
        for asked in (0, 2):
            scores, own = slow_scores(model, triple, asked), triple[asked]
            others = []
            for entity in among:
                rival = [*triple]
                rival[asked] = entity
                if entity != own and rival not in known:
                    lead = 0.0
                    if bars is not None:
                        lead = scores[own].detach() - bars[number, asked // 2]
                    others.append(scores[entity] + lead)
            every = torch.stack([scores[own], *others])
            both.append(-every.log_softmax(0)[0])
        yield torch.stack(both).mean()


def gradients(model: KnowledgeModel) -> dict[str, Tensor]:
    found = {name: table.gradient.clone() for name, table in model.tables().items()}
    for table in model.tables().values():
        table.clear()
    return found


def backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


@every_form
@pytest.mark.parametrize("known", [True, False], ids=["filtered", "all"])
def test_it_is_the_cross_entropy_among_all_triples_there_are(
    form: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of three questions, ten of them in all."""
    monkeypatch.setattr(all_entities, "_height", lambda *_, **__: 3)
    model = model_of(form)
    never = KNOWN if known else KNOWN[:0]
    every = range(ENTITIES)
    losses = torch.stack(list(slow_losses(model, never.tolist(), every)))
    expected = (losses * WEIGHT).sum() / WEIGHT.sum()
    backward(expected)
    right = gradients(model)
    objective = AllEntitiesObjective(Competitors(never, every, RELATIONS), beta=0.0)
    got = objective(model, TRIPLES, WEIGHT)
    assert got.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-6)
    backward(got)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, right[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("form", ["complex", "complex, divided", "transe"])
def test_some_entities_behind_bars(form: str) -> None:
    """As where a shield compares old triples with newcomers, which should stay below a score."""
    model, some = model_of(form), range(5, ENTITIES)
    bars = torch.randn(len(TRIPLES), 2, generator=torch.Generator().manual_seed(1))
    losses = torch.stack(list(slow_losses(model, KNOWN.tolist(), some, bars)))
    expected = (losses * WEIGHT).sum() / WEIGHT.sum()
    backward(expected)
    right = gradients(model)
    objective = AllEntitiesObjective(Competitors(KNOWN, some, RELATIONS), beta=0.0)
    got = objective(model, TRIPLES, WEIGHT, bars)
    assert got.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-6)
    backward(got)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, right[name], rtol=1e-4, atol=1e-6)


def test_who_knows_nothing_pays_for_every_entity() -> None:
    """Equal scores: the logarithm of how many there are, those that are retired left out."""
    model = KnowledgeModel("distmult", 4, options={"n3": 0.0})
    model.grow(ENTITIES, RELATIONS)
    model.entities.rows.zero_()
    for retired, count in (([], ENTITIES), ([2, 7], ENTITIES - 2)):
        competitors = Competitors(KNOWN[:0], range(ENTITIES), RELATIONS, torch.tensor(retired))
        loss = AllEntitiesObjective(competitors)(model, TRIPLES[:1], torch.ones(1))
        assert loss.item() == pytest.approx(math.log(count), rel=1e-6)


class _Largest(TorchDispatchMode):
    """Notes the most numbers that any tensor made meanwhile has."""

    numbers = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for made in found if isinstance(found, tuple | list) else [found]:
            if isinstance(made, Tensor):
                self.numbers = max(self.numbers, made.numel())
        return found


def test_a_hub_with_hundreds_of_answers_takes_the_memory_of_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_entities, "_height", lambda *_, **__: 3)
    model = KnowledgeModel("complex", 8, options={"n3": 0.0})
    model.grow(600, 1)
    known = rows_of([(entity, 0, 599) for entity in range(500)])
    objective = AllEntitiesObjective(Competitors(known, range(600), 1))
    with _Largest() as largest:
        backward(objective(model, known, torch.ones(500)))
    assert largest.numbers <= 8 * 1000  # all queries; a place for each answer would be 500,000


def test_an_answer_without_competition_costs_nothing() -> None:
    known = rows_of([(h, 0, t) for h in range(3) for t in range(3)])
    model = KnowledgeModel("complex", 4, options={"n3": 0.0})
    model.grow(3, 1)
    loss = AllEntitiesObjective(Competitors(known, range(3), 1))(model, known, torch.ones(9))
    backward(loss)
    assert loss.item() == 0
    assert not model.entities.gradient.any() and not model.relations.gradient.any()


def test_rows_that_must_not_change_keep_their_bits() -> None:
    """Every row has a gradient; the optimiser moves those that may change."""
    model = model_of("complex")
    before = model.entities.rows.clone()
    model.entities.restrict(torch.tensor([2, 7]))
    optimiser = RowAdam(model.tables().values(), lr=0.1)
    objective = AllEntitiesObjective(Competitors(KNOWN, range(ENTITIES), RELATIONS))
    backward(objective(model, TRIPLES, WEIGHT))
    optimiser.step()
    moved = (model.entities.rows != before).any(1).nonzero()[:, 0]
    assert moved.tolist() == [2, 7]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_table_whose_gradients_are_sparse_learns_the_same(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dicgrl.models.table import Table

    plain = model_of("complex")
    monkeypatch.setattr(Table, "dense_bytes", 0)
    large = KnowledgeModel("complex", 8, None, {"n3": 0.0}, seed=3, precision=dtype)
    large.grow(ENTITIES, RELATIONS)
    for mine, other in zip(large.tables().values(), plain.tables().values(), strict=True):
        other.rows.copy_(other.rows.bfloat16())
        mine.rows.copy_(other.rows)
    assert large.entities.sparse
    objective = AllEntitiesObjective(Competitors(KNOWN, range(ENTITIES), RELATIONS))
    for model in (plain, large):
        backward(objective(model, TRIPLES, WEIGHT))
    every = torch.arange(ENTITIES)
    torch.testing.assert_close(large.entities.gradient_of(every), plain.entities.gradient)


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        ("complex", {"loss": "margin"}, "needs loss=softmax instead of margin"),
        ("transe", {}, "needs loss=softmax instead of selfadversarial"),
        ("complex", {"share": 8}, "share=8 has no effect with negatives=0"),
        ("convkb", {"loss": "softmax"}, "and convkb has no queries; complex, distmult"),
        ("transe", {"loss": "softmax", "normalise": True}, "normalise=true has no queries"),
        ("rotate", {"loss": "softmax", "components": 4, "dim": 8}, "components=0, or complex"),
        ("complex", {"components": 4, "attention": "nodes", "dim": 8}, "attention=relation"),
    ],
)
def test_what_cannot_be_compared_with_all_entities_is_refused(
    model: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        task_named("link-prediction").check(Settings(model, negatives=0, **changes))


@pytest.mark.parametrize("new", [True, False], ids=["PyTorch 2.9", "PyTorch 2.6"])
def test_rounding_is_asked_for_meanwhile_and_no_longer(
    new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    products = SimpleNamespace(fp32_precision="ieee") if new else SimpleNamespace(allow_tf32=False)
    before = dict(vars(products))
    monkeypatch.setattr(torch.backends.cuda, "matmul", products)
    with all_entities._rounded(False):
        assert vars(products) == before
    with all_entities._rounded(True):
        assert vars(products) == ({"fp32_precision": "tf32"} if new else {"allow_tf32": True})
    assert vars(products) == before


def test_tf32_needs_products_with_all_entities() -> None:
    with pytest.raises(UserError, match="tf32=true has no effect without negatives=0"):
        Settings("complex", tf32=True)
