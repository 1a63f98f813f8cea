"""The kernels of a training step against PyTorch: negatives, decoders, losses, Adam.

On a CPU the comparison is this file run as a module, by the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import dicgrl.kernels
from dicgrl.models import Components, KnowledgeModel, Table, TransE
from dicgrl.models.fast import Side
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from dicgrl.training.known import HEAD, TAIL
from tests.kernels.interpreter import interpreted

DIVISIONS = {
    "plain": None,
    "learned": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "by weight": Components(4, 3, order="weight"),
    "all": Components(2, 2),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "l1": ("transe", {"p": 1}),
    "l2": ("transe", {"p": 2}),
    "distmult": ("distmult", {}),
    "complex": ("complex", {}),
    "rotate": ("rotate", {}),
    "mirrored l1": ("transe", {"p": 1}),
    "mirrored l2": ("transe", {"p": 2}),
}
LOSS_OF = dict.fromkeys(DECODERS, "selfadversarial") | {"distmult": "softmax", "complex": "softmax"}
ENTITIES, RELATIONS = 23, 3


class Mirrored(TransE):
    """Another query, which TransE's kernels do not make."""

    def query(self, given: Tensor, relation: Tensor, side: Side) -> Tensor:
        return relation - given


def made(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@contextmanager
def kernels(switch: str) -> Iterator[None]:
    """With or without kernels; memory that is not written to is NaN, and would show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICGRL_KERNELS", switch)
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)


def close(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-5) -> None:
    assert found.shape == expected.shape, what
    off = (found.double().cpu() - expected.double().cpu()).abs().max() if found.numel() else 0
    assert off <= tolerance * max(1.0, expected.abs().max() if found.numel() else 0), (
        f"{what}: {off}"
    )


@dataclass(frozen=True, slots=True)
class Links:
    """A batch of triples with their negatives, and the model that scores them."""

    division: str
    decoder: str
    dim: int = 24
    batch: int = 7
    heads: int = 5
    tails: int = 4
    open: str = "all"
    precision: str = "float32"

    def __str__(self) -> str:
        sizes = f"{self.dim}-{self.batch}-{self.heads}-{self.tails}"
        short = "" if self.precision == "float32" else f"-{self.precision}"
        return f"{self.division}-{self.decoder}-{sizes}-{self.open}{short}"

    def model(self, device: str) -> KnowledgeModel:
        """Vectors in eighths: a sign at the kink does not depend on rounding, and 0 occurs."""
        name, options = DECODERS[self.decoder]
        model = KnowledgeModel(
            name,
            self.dim,
            DIVISIONS[self.division],
            options,
            device=device,
            precision=self.precision,
        )
        if self.decoder.startswith("mirrored"):
            model.scorer = Mirrored(model.active, **options)
        model.grow(ENTITIES, RELATIONS)
        for table in (model.entities, model.relations):
            values = torch.randint(-8, 9, table.rows.shape, generator=made(len(table))) / 8
            table.rows.copy_(values)
        # A triple at distance 0, of which no norm has a gradient.
        model.entities.rows[: model.count] = 0
        model.relations.rows[: model.relation_count] = 0
        for name, ids in OPEN[self.open](model).items():
            model.tables()[name].restrict(ids.to(device))
        return model

    def ids(self, device: str) -> tuple[Tensor, Tensor, Tensor]:
        highs = (ENTITIES, RELATIONS, ENTITIES)
        columns = [torch.randint(high, (self.batch,), generator=made(i)) for i, high in
                   enumerate(highs)]  # fmt: skip
        triples = torch.stack(columns, 1)
        triples[:1] = 0
        others = [torch.randint(ENTITIES, (self.batch, m), generator=made(9 + m)) for m in
                  (self.heads, self.tails)]  # fmt: skip
        return triples.to(device), others[0].to(device), others[1].to(device)


def newcomers(model: KnowledgeModel) -> dict[str, Tensor]:
    """The last entities and the last relation."""
    first = {"entities": 19 * model.count, "relations": 2 * model.relation_count, "attention": 2}
    return {name: torch.arange(first[name], len(t)) for name, t in model.tables().items()}


def scattered(model: KnowledgeModel) -> dict[str, Tensor]:
    """Some rows of entities, whatever entity they belong to, and no relation."""
    step = {"entities": 5, "relations": RELATIONS * model.relation_count, "attention": RELATIONS}
    return {name: torch.arange(step[name], len(t), step[name]) for name, t in
            model.tables().items()}  # fmt: skip


def most(model: KnowledgeModel) -> dict[str, Tensor]:
    """All entities but the first; relations are as they are."""
    return {"entities": torch.arange(model.count, len(model.entities))}


def one_kind(model: KnowledgeModel, kind: str, *, attention: bool = True) -> dict[str, Tensor]:
    """An entity, and of the first relations only what is of one kind."""
    some = {name: torch.arange(0) for name in model.tables() if attention or name != "attention"}
    some["entities"] = torch.arange(5 * model.count, 6 * model.count)
    if kind in model.tables():
        some[kind] = torch.arange(2 * len(model.tables()[kind]) // RELATIONS)
    return some


OPEN: dict[str, Callable[[KnowledgeModel], dict[str, Tensor]]] = {
    "all": lambda _: {},
    "newcomers": newcomers,
    "scattered": scattered,
    "most": most,
    "relations": lambda model: one_kind(model, "relations"),
    "attention": lambda model: one_kind(model, "attention"),
    "attention as ever": lambda model: one_kind(model, "", attention=False),
}
# The interpreter needs about 10 ms for a triple, whatever its size: it takes every branch of the
# kernels once, and the GPU and PyTorch also take the combinations that share a branch.
LINKS = [
    *(Links(division, norm) for division in DIVISIONS for norm in ("l1", "l2")),
    *(Links(division, "l1", open="newcomers") for division in DIVISIONS),
    *(Links("learned", "l1", open=rows) for rows in OPEN if rows not in ("all", "newcomers")),
    *(Links("plain", "l1", open=rows) for rows in ("scattered", "most", "relations")),
    Links("published", "l1", open="relations"),
    Links("learned", "l2", dim=200, batch=9, heads=20, tails=33, open="newcomers"),
    Links("by weight", "l1", dim=48, heads=9),  # four coordinates of a component at a time
    Links("learned", "l1", dim=544, batch=3, heads=9, open="newcomers"),
    Links("plain", "l1", batch=0, open="newcomers"),
    Links("plain", "l1", dim=5, batch=1, heads=0, tails=1),
    Links("plain", "l2", dim=200, batch=3, heads=17, tails=33),  # a tile is 16 negatives
    Links("learned", "l1", dim=200, batch=3, heads=16, tails=48),
    Links("learned", "l2", dim=20, batch=2, heads=2, tails=0),
    Links("plain", "l1", batch=0),
    *(Links(division, name) for division in DIVISIONS for name in ("complex", "rotate")),
    *(
        Links("learned", name, open=rows)
        for name in ("complex", "rotate")
        for rows in OPEN
        if rows != "all"
    ),
    *(Links("plain", name, open="newcomers") for name in ("distmult", "rotate")),
    *(Links("published", name, open="relations") for name in ("distmult", "rotate")),
    *(Links("plain", name, dim=200, batch=3, heads=17, tails=9) for name in ("complex", "rotate")),
    *(Links("plain", name, dim=2, batch=2, heads=0, tails=1) for name in ("complex", "rotate")),
    *(Links("by weight", name, dim=40, heads=2, tails=0) for name in ("distmult", "rotate")),
    Links("learned", "distmult", dim=20),
    Links("plain", "distmult", dim=1, batch=1),
    Links("plain", "rotate", batch=0, open="newcomers"),
    Links("plain", "mirrored l1"),  # a query that no kernel knows
    Links("learned", "mirrored l2", open="newcomers"),
]
MORE_LINKS = [
    Links(division, decoder, open=rows)
    for division in DIVISIONS
    for decoder in ("l1", "distmult", "complex", "rotate")
    for rows in OPEN
    if Links(division, decoder, open=rows) not in LINKS
]


def gradients(model: KnowledgeModel, total: Tensor) -> dict[str, Tensor]:
    total.backward()  # type: ignore[no-untyped-call]
    found = {}
    for name, table in model.tables().items():
        touched = table.touched()
        found[name] = table.gradient.clone()
        if table.sparse:
            found[name] = torch.zeros_like(table.rows, dtype=table.learned)
            if touched is not None:
                found[name][touched] = table.gradient_of(touched)
        rows = torch.zeros(len(table), device=found[name].device)
        if touched is not None:
            rows[touched] = 1
        pace = table.pace()
        if pace is not None:  # the others are nobody's concern
            found[name] *= pace > 0
            rows *= pace[:, 0] > 0
        found[f"touched {name}"] = rows
    return found


def pulled(positive: Tensor, negative: Tensor) -> Tensor:
    pull = [torch.randn(s.shape, generator=made(s.dim())).to(s) for s in (positive, negative)]
    pull[1][..., ::3] = 0  # negatives without a gradient
    return (positive * pull[0]).sum() + (negative * pull[1]).sum()


def outcome(case: Links, device: str, *, slow: bool = False) -> dict[str, Tensor]:
    model = case.model(device)
    positive, negative = scored(model, *case.ids(device), slow=slow)
    found = {"positive": positive.detach(), "negative": negative.detach()}
    return found | gradients(model, pulled(positive, negative))


def scored(
    model: KnowledgeModel, triples: Tensor, other_heads: Tensor, other_tails: Tensor, *, slow: bool
) -> tuple[Tensor, Tensor]:
    """Scores of triples and negatives, by the fast path or one by one."""
    if slow:  # the decoder's `score` and autograd
        h, r, t = triples.unbind(1)
        positive = model.score(h, r, t)
        negative = torch.cat(
            [
                model.score(other_heads, r[:, None], t[:, None]),
                model.score(h[:, None], r[:, None], other_tails),
            ],
            1,
        )
    else:
        positive, negative, _ = model.score_links(triples, other_heads, other_tails)
    return positive, negative


def compare_links(case: Links, device: str) -> None:
    with kernels("0"):
        expected = outcome(case, "cpu", slow=True)
        blocked = outcome(case, device)
    with kernels("1"):
        assert dicgrl.kernels.available(torch.zeros(1, device=device))
        found = outcome(case, device)
    for name, values in expected.items():
        close(blocked[name], values, f"{case}, PyTorch: {name}")
        close(found[name], values, f"{case}: {name}")


LOSS_CASES = [
    (name, rows, width, masked)
    for name in ("softmargin", "margin", "selfadversarial", "softmax", "meanmargin")
    for rows, width, masked in ((5, 3, True), (1, 64, False), (70, 33, True), (3, 1, False))
]


def compare_loss(case: tuple[str, int, int, bool], device: str) -> None:
    name, rows, width, masked = case
    loss = make_loss(name, 2.0, 0.7)
    positive = 9 * torch.randn(rows, generator=made(1))
    negative = 9 * torch.randn(rows, width, generator=made(2))
    mask = torch.rand(rows, width, generator=made(3)) > 0.4 if masked else None
    if mask is not None:
        mask[0] = False  # a question that every entity answers
    weight = torch.rand(rows, generator=made(4))
    for scale in (1.0, -2.5):
        found = []
        for switch in "01":
            with kernels(switch):
                given = [s.to(device).detach().requires_grad_() for s in (positive, negative)]
                there = None if mask is None else mask.to(device)
                total = loss(given[0], given[1], there, weight.to(device))
                found.append([total.detach(), *torch.autograd.grad(scale * total, given)])
        for what, expected, got in zip(("loss", "positive", "negative"), *found, strict=True):
            close(got, expected, f"{case}: {what}", 2e-6)
    negative = negative.detach().clone()
    negative[-1, 0] = torch.nan  # shows in the loss
    with kernels("1"):
        assert loss(positive.to(device), negative.to(device), None, weight.to(device)).isnan()


ADAM_CASES = [
    (rows, width, listed, decay, restricted)
    for rows, width, listed in ((40, 5, 12), (9, 33, 30), (300, 3, 299), (5, 200, 5))
    for decay in (0.0, 0.2)
    for restricted in (False, True)
]


def compare_adam(case: tuple[int, int, int, float, bool], device: str) -> None:
    rows, width, listed, decay, restricted = case
    found = []
    for switch in "01":
        with kernels(switch):
            table = Table(width, device)
            table.grow(torch.randn(rows, width, generator=made(1)).to(device))
            if restricted:
                table.restrict(torch.arange(0, rows, 2, device=device))
            optimiser = RowAdam([table], lr=0.1, weight_decay=decay)
            for step in range(4):
                ids = torch.randint(rows, (listed,), generator=made(step))
                pull = torch.randn(listed, width, generator=made(9 + step))
                # Added in one order, so that both paths are given the same gradient.
                total = torch.zeros(rows, width).index_add_(0, ids, pull)
                table.gradient.copy_(total)
                strided = ids[:, None].expand(-1, 2).contiguous()[:, 0]  # a column of triples
                table.touch(strided.to(device) if step % 2 else ids.to(device))
                optimiser.lr = 0.1 / (1 + step)
                optimiser.step()
                assert table.touched() is None and not table.gradient.any()
            found.append(table.snapshot())
    for name, values in found[0].items():
        close(found[1][name], values, f"{case}: {name}", 2e-6)
        if restricted and name == "rows":
            start = torch.randn(rows, width, generator=made(1))
            assert torch.equal(found[1][name][1::2].cpu(), start[1::2])


def known_triples(entities: int, count: int) -> Tensor:
    columns = [torch.randint(h, (count,), generator=made(h)) for h in (entities, 2, entities)]
    return torch.stack(columns, 1)


SAMPLER_CASES = [  # entities, known triples, the first entity that may be drawn
    (1, 1, 0),
    (3, 40, 0),  # saturated
    (50, 0, 0),
    (50, 400, 0),
    (50, 400, 20),
    (400, 7, 399),
]


def compare_sampler(case: tuple[int, int, int], device: str) -> None:
    entities, count, start = case
    known = known_triples(entities, count)
    asked = torch.cat([known[::2], known_triples(entities, 9)])
    found = []
    for switch in "01":
        with kernels(switch):
            generator = torch.Generator(device).manual_seed(1)
            sampler = NegativeSampler(known.to(device), range(start, entities), 2, generator)
            sides = [sampler.draw(asked.to(device), side, 5) for side in (HEAD, TAIL)]
            found.append([*sides, *sampler.corrupt(asked.to(device), 1)])
    for expected, got in zip(*found, strict=True):
        assert torch.equal(got, expected), case


STEP_CASES = [
    ("l1", "plain", "all"),
    ("l1", "plain", "scattered"),
    ("l1", "learned", "all"),
    ("l1", "learned", "newcomers"),
    ("l1", "learned", "attention"),
    ("l1", "published", "newcomers"),
    ("distmult", "plain", "all"),
    ("complex", "learned", "newcomers"),
    ("rotate", "learned", "all"),
    ("rotate", "published", "newcomers"),
]
MORE_STEP_CASES = [
    ("l1", "published", "all"),
    *(
        (decoder, name, rows)
        for decoder in ("l1", "distmult", "complex", "rotate")
        for name in ("plain", "learned")
        for rows in OPEN
        if (decoder, name, rows) not in STEP_CASES
    ),
]


def compare_step(case: tuple[str, str, str], device: str) -> None:
    """A few steps of everything together end where PyTorch ends."""
    decoder, division, rows = case
    count, steps = (40, 5) if device == "cuda" else (10, 3)
    known = known_triples(ENTITIES, count)
    known[::3, 1] = RELATIONS - 1
    found = []
    for switch in "01":
        with kernels(switch):
            name, options = DECODERS[decoder]
            model = KnowledgeModel(name, 24, DIVISIONS[division], options, seed=1, device=device)
            model.grow(ENTITIES, RELATIONS)
            for kind, ids in OPEN[rows](model).items():
                model.tables()[kind].restrict(ids.to(device))
            generator = torch.Generator(device).manual_seed(3)
            sampler = NegativeSampler(known.to(device), ENTITIES, RELATIONS, generator)
            objective = LinkObjective(sampler, make_loss(LOSS_OF[decoder], 4.0, 1.0), 6)
            optimiser = RowAdam(model.tables().values(), lr=0.02)
            losses = []
            for _ in range(steps):
                loss = objective(model, known.to(device), torch.ones(count, device=device))
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                losses.append(loss.detach())
                assert not any(table.gradient.any() for table in model.tables().values())
            after = {name: table.rows.clone() for name, table in model.tables().items()}
            found.append(after | {"losses": torch.stack(losses)})
    assert rows != "all" or found[0]["losses"][-1] < found[0]["losses"][0]
    for name, values in found[0].items():
        close(found[1][name], values, f"{case}: {name}", 1e-4)


CHECKS: list[tuple[str, Callable[[str], None]]] = [
    *((f"links {case}", partial(compare_links, case)) for case in LINKS),
    *((f"loss {case}", partial(compare_loss, case)) for case in LOSS_CASES),
    *((f"adam {case}", partial(compare_adam, case)) for case in ADAM_CASES),
    *((f"sampler {case}", partial(compare_sampler, case)) for case in SAMPLER_CASES),
    *((f"step {case}", partial(compare_step, case)) for case in STEP_CASES),
]
MORE_CHECKS: list[tuple[str, Callable[[str], None]]] = [
    *((f"links {case}", partial(compare_links, case)) for case in MORE_LINKS),
    *((f"step {case}", partial(compare_step, case)) for case in MORE_STEP_CASES),
]
each = pytest.mark.parametrize(
    "check", [pytest.param(check, id=name) for name, check in CHECKS + MORE_CHECKS]
)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each
def test_kernels_on_the_gpu(check: Callable[[str], None]) -> None:
    pytest.importorskip("triton")
    check("cuda")


def test_kernels_in_the_interpreter() -> None:
    assert interpreted(__name__) == [name for name, _ in CHECKS]


@pytest.mark.parametrize("case", LINKS + MORE_LINKS, ids=str)
def test_scores_in_blocks_are_those_of_autograd(
    case: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dicgrl.models.queries.comparison._BLOCK", 2 * 5 * 24)
    with kernels("0"):
        expected, found = outcome(case, "cpu", slow=True), outcome(case, "cpu")
    for name, values in expected.items():
        close(found[name], values, f"{case}: {name}")


if __name__ == "__main__":
    for label, check in CHECKS:
        check("cpu")
        print(label)
