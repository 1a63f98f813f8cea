from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dicgrl.models import Components, KnowledgeModel
from dicgrl.training import LinkObjective, NegativeSampler, Schedule, TrainingSet, fit, make_loss
from dicgrl.training import stepper as module

ENTITIES, RELATIONS, TRIPLES = 40, 3, 300
OPTIONS: dict[str, dict[str, int]] = {"transe": {}, "convkb": {"filters": 4}}
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Adjusted(TrainingSet):
    def adjust(self) -> None:
        """Something on the host."""


class Declared(Adjusted):
    @property
    def capturable(self) -> bool:
        return True


def test_only_plain_training_sets_and_those_that_say_so_may_be_recorded() -> None:
    given = (lambda _, weight: weight.sum(), torch.zeros(3, 3))
    assert TrainingSet(*given).capturable
    assert not Adjusted(*given).capturable
    assert Declared(*given).capturable


class Fit:
    """A model that is trained on random triples; `spoil` is called in each step."""

    def __init__(
        self,
        components: Components | None,
        name: str = "transe",
        spoil: bool = False,
        open_relations: int | None = None,
    ) -> None:
        generator = torch.Generator().manual_seed(0)
        highs = (ENTITIES, RELATIONS, ENTITIES)
        columns = [torch.randint(high, (TRIPLES,), generator=generator) for high in highs]
        triples = torch.stack(columns, 1).cuda()
        self.model = KnowledgeModel(name, 16, components, OPTIONS[name], device="cuda")
        self.model.grow(ENTITIES, RELATIONS)
        self.model.entities.restrict(torch.arange(len(self.model.entities) // 2, device="cuda"))
        if open_relations is not None:
            for table in list(self.model.tables().values())[1:]:
                each = len(table) // RELATIONS
                table.restrict(torch.arange(open_relations * each, device="cuda"))
        self.steps = 0
        source = torch.Generator("cuda").manual_seed(1)
        sampler = NegativeSampler(triples, ENTITIES, RELATIONS, source)
        objective = LinkObjective(sampler, make_loss("selfadversarial", 3.0, 1.0), 8)

        def step(examples: Tensor, weight: Tensor) -> Tensor:
            self.steps += 1
            loss = objective(self.model, examples, weight)
            return loss * float(loss.isfinite().item()) if spoil else loss

        schedule = Schedule(
            epochs=9, batch=64, lr=0.02, halve_every=2, clip=1.0, dense_rate=0.3, validate_every=100
        )
        report = fit(self.model, TrainingSet(step, triples), schedule, source)
        self.losses = [entry.loss for entry in report.history]


@on_gpu
@pytest.mark.parametrize("kernels", ["1", "0"], ids=["kernels", "pytorch"])
@pytest.mark.parametrize(
    ("name", "components", "open_relations"),
    [
        ("transe", None, None),
        ("transe", Components(4, 2), None),
        ("transe", Components(4, 2), 1),
        ("transe", Components(4, 2), 0),
        ("convkb", None, None),  # with dense weights, too
        ("convkb", Components(4, 2, attention="nodes"), None),
    ],
    ids=["plain", "divided", "divided-one", "divided-none", "filters", "filters-nodes"],
)
def test_replayed_steps_are_steps(
    name: str,
    components: Components | None,
    open_relations: int | None,
    kernels: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kernels == "1":
        pytest.importorskip("triton")
    monkeypatch.setenv("DICGRL_KERNELS", kernels)
    warm_up = module._WARM_UP
    monkeypatch.setattr(module, "_WARM_UP", 1 << 30)
    expected = Fit(components, name, open_relations=open_relations)
    monkeypatch.setattr(module, "_WARM_UP", warm_up)
    found = Fit(components, name, open_relations=open_relations)
    assert expected.steps == 9 * 5
    assert found.steps == 2 * (warm_up + 1)  # full batches and the last, shorter one
    assert found.losses == pytest.approx(expected.losses, rel=1e-3)
    for name, table in expected.model.tables().items():
        torch.testing.assert_close(found.model.tables()[name].rows, table.rows, rtol=0, atol=2e-3)
    for one, other in zip(expected.model.parameters(), found.model.parameters(), strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=2e-3)
    steps = [fitted.model.entities.state("steps", 1) for fitted in (expected, found)]
    assert torch.equal(*steps) and steps[0].any()


@on_gpu
def test_a_step_that_waits_for_the_device_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_WARM_UP", 3)  # another number than the shipped one
    expected, found = Fit(None), Fit(None, spoil=True)
    assert found.steps == 9 * 5
    assert found.losses == pytest.approx(expected.losses, rel=1e-3)
