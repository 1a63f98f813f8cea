"""What is gone is pushed to where its ends are beside others, and no further."""

from __future__ import annotations

import pytest
import torch

from dicgrl.models import Components, KnowledgeModel
from dicgrl.training.unlearning import UnlearnedLinks

KNOWN = torch.tensor([[0, 0, 1], [2, 0, 3], [4, 1, 5]])


def model_of(name: str = "transe", components: Components | None = None) -> KnowledgeModel:
    model = KnowledgeModel(name, 8, components, seed=3)
    model.grow(entities=6, relations=3)
    return model


@pytest.mark.parametrize("name", ["transe", "convkb"])
@pytest.mark.parametrize("components", [None, Components(4, 2)])
def test_the_level_is_what_usual_ends_score(name: str, components: Components | None) -> None:
    model = model_of(name, components).eval()
    gone = torch.tensor([[1, 1, 3]])  # of a relation with one triple, so that nothing is random
    found = UnlearnedLinks(model, gone, KNOWN, torch.Generator().manual_seed(0))
    usual = [model.score(*torch.tensor([row]).unbind(1)) for row in ([4, 1, 3], [1, 1, 5])]
    excess = model.score(*gone.unbind(1)) - (usual[0] + usual[1]) / 2
    assert torch.allclose(found(torch.tensor([0]), torch.ones(1)), excess.relu().mean())


def test_what_is_below_its_level_is_left_alone() -> None:
    model = model_of()
    gone = torch.tensor([[h, r, t] for h in range(6) for r in range(3) for t in range(6)])
    objective = UnlearnedLinks(model, gone, KNOWN, torch.Generator().manual_seed(0))
    each = torch.stack(
        [objective(torch.tensor([i]), torch.ones(1)).detach() for i in range(len(gone))]
    )
    assert (each >= 0).all() and (each == 0).any() and (each > 0).any()
    row = int((each == 0).nonzero()[0, 0])
    objective(torch.tensor([row]), torch.ones(1)).backward()
    assert not model.entities.gradient.any()


def test_steps_bring_it_down() -> None:
    model = model_of()
    gone = torch.tensor([[1, 1, 3]])
    with torch.no_grad():  # known by heart, nearly: there is no slope at the very place
        place = model.entities.rows[1] + model.relations.rows[1]
        model.entities.rows[3] = place + torch.linspace(-0.01, 0.02, 8)
    objective = UnlearnedLinks(model, gone, KNOWN, torch.Generator().manual_seed(0))
    before = objective(torch.tensor([0]), torch.ones(1)).item()
    for _ in range(200):
        loss = objective(torch.tensor([0]), torch.ones(1))
        loss.backward()
        with torch.no_grad():
            for table in model.tables().values():
                table.rows.sub_(0.01 * table.gradient)
                table.clear()
    assert before > 0.1
    assert objective(torch.tensor([0]), torch.ones(1)).item() < 0.2 * before
