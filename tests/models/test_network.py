from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, SAGEConv

from dicgrl import UserError
from dicgrl.models import BACKBONES, Components, NetworkModel, PreparedEdges
from dicgrl.models.blockwise import Messages
from dicgrl.models.disentangled import ComponentLayer, EdgeRouter
from dicgrl.models.network import Backbone

FORMS: dict[str, Components | None] = {
    "plain": None,
    "learned": Components(4, 2, "nodes"),
    "published": Components(4, 2, "nodes", "published"),
}
every_model = pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name in BACKBONES for form in FORMS]
)


def made(name: str = "gat", form: str = "plain", classes: int = 3, **changes: Any) -> NetworkModel:
    arguments: dict[str, Any] = {"num_features": 5, "hidden": 4, "heads": 3, "seed": 1}
    model = NetworkModel(name, components=FORMS[form], **(arguments | changes))
    model.grow(classes)
    return model.eval()


def network(
    nodes: int = 9, edges: int = 14, features: int = 5, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Features, and edges in both directions with one self loop per node."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, nodes, (2, edges), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    loops = torch.arange(nodes).expand(2, -1)
    edge_index = torch.cat([pairs, pairs.flip(0)], 1).unique(dim=1)
    return torch.randn(nodes, features, generator=generator), torch.cat([edge_index, loops], 1)


def state(model: NetworkModel) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


@every_model
def test_new_classes_leave_the_weights_of_the_old_ones_bit_for_bit(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    before, scores = state(model), model(x, edges)
    model.grow(2)
    assert model.num_classes == 5
    after, grown = state(model), model(x, edges)
    for key, value in before.items():
        assert torch.equal(after[key][: len(value)], value), key
        assert key.startswith("class_") or after[key].shape == value.shape
    assert grown.shape == (9, 5)
    # The weights are the same to the bit; a product with more columns may round otherwise.
    assert torch.allclose(grown[:, :3], scores, rtol=1e-6, atol=1e-6)
    # The new rows are like the old ones of a new model, and not copies of them.
    assert model.class_weight[3:].abs().max() > 0 and (model.class_bias[3:] == 0).all()
    assert len(model.class_weight.unique(dim=0)) == 5


def test_growing_by_no_class_changes_nothing_and_step_by_step_is_the_same_as_at_once() -> None:
    model = made(classes=4)
    before = state(model)
    model.grow(0)
    assert all(torch.equal(state(model)[key], value) for key, value in before.items())
    stepwise = made(classes=1)
    stepwise.grow(3)
    assert stepwise.num_classes == 4
    assert torch.equal(stepwise.class_weight, model.class_weight)


@every_model
def test_new_classes_are_trained(name: str, form: str) -> None:
    model = made(name, form)
    model.grow(1)
    model(*network())[:, 3].sum().backward()
    assert model.class_weight.grad is not None and model.class_bias.grad is not None
    assert model.class_weight.grad[3].abs().max() > 0 and model.class_bias.grad[3] == 9
    assert (model.class_weight.grad[:3] == 0).all()
    assert {"class_weight", "class_bias"} <= dict(model.named_parameters()).keys()


@every_model
def test_new_nodes_and_edges_need_no_new_weights(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    before, scores = state(model), model(x, edges)
    more, more_edges = network(4, 5, seed=7)
    joined = torch.cat([edges, more_edges + 9], 1)
    grown = model(torch.cat([x, more]), joined)
    # The newcomers are not linked to the old nodes: nothing changes for these.
    assert torch.allclose(grown[:9], scores, atol=1e-6)
    assert torch.allclose(grown[9:], model(more, more_edges), atol=1e-6)
    # With two layers an edge into node 0 is heard by node 0 and its neighbours alone.
    linked = model(torch.cat([x, more]), torch.cat([joined, torch.tensor([[10], [0]])], 1))
    if form == "plain":
        assert not torch.allclose(linked[0], grown[0], atol=1e-6)
    near = {0} | {u for v, u in edges.T.tolist() if v == 0}
    far = [node for node in range(13) if node not in near]
    assert torch.allclose(linked[far], grown[far], atol=1e-6)
    assert all(torch.equal(state(model)[key], value) for key, value in before.items())


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_plain_gat_is_a_stack_of_pytorch_geometric_layers(layers: int) -> None:
    model = made(layers=layers)
    x, edges = network()
    seen = x
    for number in range(layers):
        convolution = GATConv(5 if number == 0 else 12, 4, heads=3, add_self_loops=False)
        weights = model.stack[number].convolution.state_dict()  # type: ignore[union-attr]
        convolution.load_state_dict(weights)
        seen = F.elu(convolution(seen, edges))
    expected = seen @ model.class_weight.T + model.class_bias
    assert torch.allclose(model(x, edges), expected, atol=1e-6)


def test_the_self_loops_of_plain_gat_are_the_ones_of_the_edges() -> None:
    """PyTorch Geometric would add them itself; the network's own are not doubled."""
    model = made(layers=1)
    x, edges = network()
    convolution = GATConv(5, 4, heads=3, add_self_loops=True)
    convolution.load_state_dict(model.stack[0].convolution.state_dict())  # type: ignore[union-attr]
    expected = F.linear(F.elu(convolution(x, edges)), model.class_weight, model.class_bias)
    assert torch.allclose(model(x, edges), expected, atol=1e-6)


def test_plain_sage_is_a_stack_of_pytorch_geometric_layers_with_layer_norm() -> None:
    model = made("sage")
    x, edges = network()
    seen = x
    for number, layer in enumerate(model.stack):
        convolution = SAGEConv(5 if number == 0 else 12, 12)
        convolution.load_state_dict(layer.convolution.state_dict())  # type: ignore[union-attr]
        seen = F.relu(F.layer_norm(convolution(seen, edges), (12,)))
    expected = seen @ model.class_weight.T + model.class_bias
    assert torch.allclose(model(x, edges), expected, atol=1e-6)


@pytest.mark.parametrize("name", BACKBONES)
def test_the_disentangled_form_is_its_layers_one_after_the_other(name: str) -> None:
    model = made(name, "learned", hidden=3)
    x, edges = network()
    assert model.projection is not None
    parts, missing = F.linear(x, model.projection.weight, model.projection.bias), []
    parts = parts.view(9, 4, 3)
    for layer, router in zip(model.stack, model.routers, strict=True):
        parts, loss = layer(parts, PreparedEdges(edges, 9), router)
        missing.append(loss.item())
    expected = parts.reshape(9, 12) @ model.class_weight.T + model.class_bias
    assert torch.allclose(model(x, edges), expected, atol=1e-6)
    concentration = model.take_concentration().item()
    assert concentration == pytest.approx(sum(missing) / 2)
    assert 0 < concentration < 1
    assert model.take_concentration() == 0  # handed out once


def test_a_plain_model_lacks_no_concentration() -> None:
    model = made()
    model(*network())
    assert model.take_concentration() == 0


@pytest.mark.parametrize("name", BACKBONES)
def test_the_task_trains_the_routing_unless_it_is_as_published(name: str) -> None:
    x, edges = network(20, 60)
    for form in ("learned", "published"):
        model = made(name, form, hidden=8)
        F.cross_entropy(model(x, edges), torch.arange(20) % 3).backward()
        for router in model.routers:
            gradient = router.weight.grad
            if form == "published":
                assert gradient is None or gradient.abs().max() == 0
            else:
                assert isinstance(gradient, Tensor) and gradient.abs().max() > 0
    model = made(name, "published", hidden=8)
    model(x, edges)
    model.take_concentration().backward()  # type: ignore[no-untyped-call]
    for router in model.routers:
        gradient = router.weight.grad
        assert isinstance(gradient, Tensor) and gradient.abs().max() > 0


@every_model
def test_every_parameter_that_should_learn_does(name: str, form: str) -> None:
    model = made(name, form, hidden=8)
    x, edges = network(20, 60)
    loss = F.cross_entropy(model(x, edges), torch.arange(20) % 3) + model.take_concentration()
    loss.backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all() and parameter.grad.abs().max() > 0, key


@every_model
def test_the_configuration_builds_the_same_model(name: str, form: str) -> None:
    model = made(name, form, layers=3, dropout=0.25, seed=9)
    kept = json.loads(json.dumps(model.configuration()))
    if kept["components"] is not None:
        kept["components"] = Components(**kept["components"])
    again = NetworkModel(**kept).eval()
    again.grow(3)
    assert again.configuration() == model.configuration()
    assert state(again).keys() == state(model).keys()
    x, edges = network()
    assert torch.equal(again(x, edges), model(x, edges))  # the seed is part of it


@every_model
def test_the_seed_gives_the_weights_and_nothing_else_does(name: str, form: str) -> None:
    torch.manual_seed(123)
    outside = torch.get_rng_state()
    first = made(name, form, seed=5)
    assert torch.equal(torch.get_rng_state(), outside)
    torch.manual_seed(321)
    same, other = made(name, form, seed=5), made(name, form, seed=6)
    for key, value in state(first).items():
        assert torch.equal(state(same)[key], value), key
        constant = key.endswith("bias") or "norm" in key
        assert constant or not torch.equal(state(other)[key], value), key


@every_model
def test_layers_do_not_start_alike(name: str, form: str) -> None:
    model = made(name, form, num_features=12, layers=3)
    for key, value in state(model).items():
        if key.startswith("stack.1.") and value.unique().numel() > 1:
            assert not torch.equal(value, state(model)[key.replace("stack.1.", "stack.2.")]), key


@every_model
def test_dropout_is_for_training_alone(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    assert torch.equal(model(x, edges), model(x, edges))
    sure = model(x, edges)
    model.train()
    assert not torch.allclose(model(x, edges), model(x, edges))
    without = made(name, form, dropout=0.0).train()
    assert torch.allclose(without(x, edges), sure)


@every_model
def test_nodes_without_edges_or_features(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    x = torch.cat([x, torch.zeros(2, 5)])  # node 9 linked to node 0, node 10 to nothing
    edges = torch.cat([edges, torch.tensor([[9, 0, 9, 10], [0, 9, 9, 10]])], 1)
    scores = model(x, edges)
    scores.logsumexp(1).sum().backward()
    assert scores.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    alone = model(x[10:], torch.zeros(2, 1, dtype=torch.long))
    assert torch.allclose(scores[10:], alone, atol=1e-6)


@every_model
@settings(max_examples=10)
@given(order=st.permutations(range(9)))
def test_the_order_of_nodes_does_not_count(name: str, form: str, order: list[int]) -> None:
    model = made(name, form)
    x, edges = network()
    moved = torch.tensor(order)
    scores = model(x[moved], moved.argsort()[edges])
    assert torch.allclose(scores, model(x, edges)[moved], atol=1e-5)


def test_an_unknown_backbone_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown model 'gta'; did you mean 'gat'\?.*sage"):
        NetworkModel("gta", 5)


class Plain(nn.Module):
    def __init__(self, inside: int, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inside, hidden * heads)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        sent: Tensor = self.linear(x)[source]
        return torch.zeros(len(x), sent.shape[1]).index_add(0, target, sent)


class Divided(ComponentLayer):
    def __init__(self, count: int, inside: int, outside: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, inside, outside))

    def initialise(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.weight, generator=generator)

    def send(self, parts: Tensor) -> tuple[Tensor, ...]:
        return (torch.einsum("nki,kio->nko", parts, self.weight),)

    def hear(self, heard: Messages) -> Tensor:
        return heard.sum(heard.own[0], heard.sent[0], heard.chosen.float())

    def finish(self, parts: Tensor, heard: Tensor) -> Tensor:
        return heard


@pytest.mark.parametrize("form", FORMS)
def test_a_backbone_of_ones_own(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Backbone(Plain, Divided)
    monkeypatch.setitem(BACKBONES, "mine", backbone)
    model = made("mine", form)
    x, edges = network()
    scores = model(x, edges)
    F.cross_entropy(scores, torch.arange(9) % 3).backward()
    assert scores.shape == (9, 3) and scores.isfinite().all()
    assert model.configuration()["name"] == "mine"
    assert all(p.grad is not None for n, p in model.named_parameters() if "routers" not in n)
    if form == "plain":
        assert isinstance(model.stack[0], Plain) and len(model.routers) == 0
    else:
        assert isinstance(model.stack[0], Divided) and len(model.routers) == 2
    if form == "learned":
        assert all(router.weight.grad.abs().max() > 0 for router in model.routers)  # type: ignore[union-attr]


# Components of nodes that are closed, and components that edges choose.

divided = pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name in BACKBONES for form in ("learned", "published")]
)


@every_model
def test_prepared_edges_are_the_edges(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    assert torch.equal(model(x, PreparedEdges(edges, 9)), model(x, edges))


@divided
def test_a_closed_component_hands_no_gradient_on(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    x.requires_grad_()

    def slope(mask: Tensor | None) -> Tensor:
        scores = model(x, edges, open=mask)
        assert torch.equal(scores, model(x, edges))  # the value is the same, closed or not
        (found,) = torch.autograd.grad(scores.square().sum(), x)
        return found

    generator = torch.Generator().manual_seed(2)
    mask = torch.rand(9, 4, generator=generator) < 0.5
    # Closing splits the gradient: what is open and what is not add up to all.
    assert torch.allclose(slope(mask) + slope(~mask), slope(None), atol=1e-5)
    assert slope(mask).abs().max() > 0
    assert torch.equal(slope(torch.ones(9, 4, dtype=torch.bool)), slope(None))
    assert slope(torch.zeros(9, 4, dtype=torch.bool)).abs().max() == 0


@divided
def test_a_closed_component_moves_no_weight_before_the_class_layer(name: str, form: str) -> None:
    model = made(name, form)
    scores = model(*network(), open=torch.zeros(9, 4, dtype=torch.bool))
    F.cross_entropy(scores, torch.arange(9) % 3).backward()
    for key, parameter in model.named_parameters():
        moved = parameter.grad is not None and parameter.grad.abs().max() > 0
        assert moved == key.startswith("class_"), key


@divided
def test_an_open_component_is_the_only_way_through(name: str, form: str) -> None:
    """Layers do not mix components: with component 2 open, only its weights move."""
    model = made(name, form)
    mask = torch.zeros(9, 4, dtype=torch.bool)
    mask[:, 2] = True
    F.cross_entropy(model(*network(), open=mask), torch.arange(9) % 3).backward()
    assert model.projection is not None and model.projection.weight.grad is not None
    moved = model.projection.weight.grad.view(4, -1).abs().amax(1) > 0
    assert moved.tolist() == [False, False, True, False]


@pytest.mark.parametrize("name", BACKBONES)
def test_a_plain_model_has_no_components_to_close_or_to_choose(name: str) -> None:
    x, edges = network()
    with pytest.raises(ValueError, match="plain model"):
        made(name)(x, edges, open=torch.ones(9, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="plain model"):
        made(name).edge_components(x, edges)


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[4, 9\], expected \[9, 4\]"):
        made("gat", "learned")(*network(), open=torch.ones(4, 9, dtype=torch.bool))


@divided
def test_edges_name_the_components_that_they_choose(name: str, form: str) -> None:
    model = made(name, form)
    x, edges = network()
    shuffled = edges[:, torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(3))]
    model.train()  # nothing is dropped all the same
    chosen = model.edge_components(x, shuffled)
    assert torch.equal(model.edge_components(x, PreparedEdges(shuffled, 9)), chosen)
    assert model.training and not chosen.requires_grad
    assert model.projection is not None
    parts = model.projection(x).detach().view(9, 4, -1)
    router = model.routers[0]
    assert isinstance(router, EdgeRouter)
    own, other = router.weight.detach()
    pairs = [(v, u) for v, u in shuffled.T.tolist() if v != u]
    assert chosen.shape == (len(pairs), 2)
    for (v, u), row in zip(pairs, chosen.tolist(), strict=True):
        logits = [max(0.0, float(parts[u, k] @ own + parts[v, k] @ other)) for k in range(4)]
        assert row == sorted(set(row)) and len(row) == 2
        assert (
            min(logits[k] for k in row) >= max(logits[k] for k in range(4) if k not in row) - 1e-5
        )
