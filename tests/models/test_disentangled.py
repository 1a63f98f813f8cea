from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from dicgrl.models import Components
from dicgrl.models.disentangled import ComponentGAT, ComponentSAGE, EdgeRouter
from dicgrl.models.edges import PreparedEdges
from tests.slow import slow_top

Layer = ComponentGAT | ComponentSAGE
LAYERS: dict[str, type[Layer]] = {"gat": ComponentGAT, "sage": ComponentSAGE}
every_layer = pytest.mark.parametrize("name", LAYERS)


class Case(NamedTuple):
    """A small network with a router and a layer, in double precision."""

    parts: Tensor  # [N, K, inside]
    edge_index: Tensor  # [2, E], self loops and repeated edges may be among them
    router: EdgeRouter
    layer: Layer

    def leaves(self) -> list[Tensor]:
        return [self.parts, *self.layer.parameters(), self.router.weight]

    @property
    def edges(self) -> PreparedEdges:
        return PreparedEdges(self.edge_index, len(self.parts))

    def forward(self) -> tuple[Tensor, Tensor]:
        new, missing = self.layer(self.parts, self.edges, self.router)
        return new, missing

    def chosen(self) -> list[list[int]]:
        """Components of each edge that is no self loop, in the given order."""
        edges = self.edges
        found = self.router.choose(self.parts, edges)
        return found[edges.order.argsort()].tolist()  # type: ignore[no-any-return]

    def in_blocks(self, size: int) -> Case:
        """The same with blocks of at most so many bytes, or one node."""
        self.layer.block_bytes = {"cpu": size}  # type: ignore[misc]
        return self


def make(
    name: str,
    edges: list[tuple[int, int]],
    *,
    nodes: int = 6,
    count: int = 4,
    top: int = 2,
    inside: int = 3,
    outside: int = 2,
    routing: str = "learned",
    seed: int = 0,
) -> Case:
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(nodes, count, inside, generator=generator, dtype=torch.float64)
    router = EdgeRouter(Components(count, top, "nodes", routing), inside)
    router.initialise(generator)
    layer = LAYERS[name](count, inside, outside, 0.0)
    layer.initialise(generator)
    if isinstance(layer, ComponentSAGE):
        for values in layer.norm.parameters():
            nn.init.normal_(values, 0.5, generator=generator)
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return Case(parts.requires_grad_(), edge_index, router.double(), layer.double())


@st.composite
def cases(draw: st.DrawFn, name: str) -> Case:
    nodes, count = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    node = st.integers(0, nodes - 1)
    case = make(
        name,
        draw(st.lists(st.tuples(node, node), max_size=10)),
        nodes=nodes,
        count=count,
        top=draw(st.integers(1, count)),
        inside=draw(st.integers(1, 3)),
        outside=draw(st.integers(1, 3)),
        routing=draw(st.sampled_from(["learned", "published"])),
        seed=draw(st.integers(0, 1000)),
    )
    # A block for each node with edges, blocks of several nodes, one block.
    return case.in_blocks(draw(st.sampled_from([1, 200, 1 << 20])))


# The slow reference: one edge, one node and one component at a time.


class SlowEdge(NamedTuple):
    source: int
    target: int
    alpha: list[Tensor]
    chosen: list[int]


def slow_edges(case: Case) -> list[SlowEdge]:
    """Equation 4 of each edge that is no self loop."""
    router, found = case.router, []
    pairs = [(v, u) for v, u in case.edge_index.T.tolist() if v != u]
    top, count = router.components.top, router.components.count
    for (v, u), chosen in zip(pairs, case.chosen(), strict=True):
        exponents, raw = [], []
        for k in range(count):
            seen = torch.cat([case.parts[u, k], case.parts[v, k]]).detach()
            logit = (router.weight.flatten() * seen).sum()
            raw.append(round(logit.item(), 12))
            exponents.append((logit if logit > 0 else logit * 0).exp())
        alpha = [value / sum(exponents) for value in exponents]
        # ReLU makes ties, which what it was given decides; of equal ones the first is chosen.
        assert chosen == slow_top(raw, top)
        least = min(alpha[k].item() for k in chosen)
        assert all(alpha[k].item() <= least + 1e-12 for k in range(count) if k not in chosen)
        found.append(SlowEdge(v, u, alpha, chosen))
    return found


def slow_senders(case: Case, edges: list[SlowEdge], u: int, k: int) -> list[tuple[int, Tensor]]:
    """Who sends to component k of u, with the gate of its message; u itself always does."""
    found = [(u, torch.ones((), dtype=torch.float64))]
    for edge in edges:
        if edge.target == u and k in edge.chosen:
            gate = edge.alpha[k] / edge.alpha[k].detach()
            found.append((edge.source, gate if case.router.components.learned else gate.detach()))
    return found


def slow_gat(case: Case, edges: list[SlowEdge], u: int, k: int) -> Tensor:
    """Equation 5 of one component of one node."""
    layer, parts = case.layer, case.parts
    assert isinstance(layer, ComponentGAT)
    senders = slow_senders(case, edges, u, k)
    exponents = [(layer.attention * parts[v, k]).sum().exp() for v, _ in senders]
    total = torch.zeros(layer.weight.shape[2], dtype=torch.float64)
    for (v, gate), exponent in zip(senders, exponents, strict=True):
        share = exponent / sum(exponents)
        total = total + share * gate * (parts[v, k] @ layer.weight[k])
    return torch.stack([x if x > 0 else x.exp() - 1 for x in total])


def slow_sage(case: Case, edges: list[SlowEdge], u: int, k: int) -> Tensor:
    layer, parts = case.layer, case.parts
    assert isinstance(layer, ComponentSAGE)
    senders = slow_senders(case, edges, u, k)
    mean = torch.stack([gate * parts[v, k] for v, gate in senders]).sum(0) / len(senders)
    new = parts[u, k] @ layer.own[k] + mean @ layer.neighbours[k]
    middle = new.sum() / len(new)
    spread = ((new - middle) ** 2).sum() / len(new)
    new = (new - middle) / (spread + layer.norm.eps).sqrt()
    new = new * layer.norm.weight + layer.norm.bias
    return torch.stack([x if x > 0 else x * 0 for x in new])


def slow_forward(case: Case) -> tuple[Tensor, Tensor]:
    """New components, and the mean over edges of what their chosen weights lack to 1."""
    edges = slow_edges(case)
    slow = slow_gat if isinstance(case.layer, ComponentGAT) else slow_sage
    nodes, count, _ = case.parts.shape
    new = [torch.stack([slow(case, edges, u, k) for k in range(count)]) for u in range(nodes)]
    lacking = [torch.stack([e.alpha[k] for k in e.chosen]).sum() for e in edges]
    missing = torch.stack([1 - value for value in lacking]).mean() if edges else torch.zeros(())
    return torch.stack(new), missing.double()


def gradients(output: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """Gradients of a fixed linear function of `output`."""
    pull = torch.linspace(-1, 1.5, output.numel(), dtype=output.dtype).view(output.shape)
    return list(
        torch.autograd.grad(
            (output * pull).sum(),
            leaves,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
    )


def close(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, rtol=1e-9, atol=1e-10)


def check(case: Case) -> None:
    (output, missing), (expected, lacking) = case.forward(), slow_forward(case)
    assert close(output, expected) and close(missing, lacking)
    leaves = case.leaves()
    for own, theirs in zip(gradients(output, leaves), gradients(expected, leaves), strict=True):
        assert close(own, theirs)
    if lacking.requires_grad:  # there are edges
        (own,), (theirs,) = (gradients(x, [case.router.weight]) for x in (missing, lacking))
        assert close(own, theirs)


@settings(max_examples=40)
@given(cases("gat"))
def test_gat_is_the_per_edge_reference_with_its_gradients(case: Case) -> None:
    check(case)


@settings(max_examples=40)
@given(cases("sage"))
def test_sage_is_the_per_edge_reference_with_its_gradients(case: Case) -> None:
    check(case)


def pairs_of(index: Tensor) -> list[tuple[int, int]]:
    return [(v, u) for v, u in index.T.tolist()]


RING = [(i, (i + 1) % 6) for i in range(6)] + [((i + 1) % 6, i) for i in range(6)] + [(0, 3)]


@every_layer
def test_a_larger_network(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    edges = pairs_of(torch.randint(0, 20, (2, 60), generator=generator))
    check(make(name, edges, nodes=20, count=5, top=3, inside=4, outside=4))


@every_layer
def test_single_precision_gives_the_same(name: str) -> None:
    case = make(name, RING)
    single = Case(
        case.parts.detach().float(), case.edge_index, case.router.float(), case.layer.float()
    )
    output = single.forward()[0]
    assert output.dtype == torch.float32
    double = Case(case.parts, case.edge_index, case.router.double(), case.layer.double())
    assert torch.allclose(output.double(), slow_forward(double)[0], atol=1e-5)


@every_layer
def test_published_and_learned_routing_differ_in_the_gradient_of_the_attention_alone(
    name: str,
) -> None:
    learned, published = (make(name, RING, routing=how) for how in ("learned", "published"))
    (output, missing), (other, same_missing) = learned.forward(), published.forward()
    assert torch.equal(output, other) and torch.equal(missing, same_missing)
    *rest, attention = gradients(output, learned.leaves())
    *same, nothing = gradients(other, published.leaves())
    assert all(torch.equal(a, b) for a, b in zip(rest, same, strict=True))
    assert attention.abs().max() > 1e-4
    assert nothing.abs().max() == 0
    for loss, case in ((missing, learned), (same_missing, published)):
        # L_norm trains W2 in both, and moves no vector.
        *untouched, moved = gradients(loss, case.leaves())
        assert moved.abs().max() > 1e-4
        assert all(values.abs().max() == 0 for values in untouched)


@every_layer
def test_a_step_down_l_norm_concentrates_the_weights(name: str) -> None:
    case = make(name, RING)
    before = case.forward()[1]
    (slope,) = torch.autograd.grad(before, case.router.weight)
    with torch.no_grad():
        case.router.weight -= 0.01 * slope
    assert case.forward()[1] < before


@every_layer
@pytest.mark.parametrize("routing", ["learned", "published"])
def test_component_k_hears_only_edges_that_chose_k(name: str, routing: str) -> None:
    # With outside=1 a LayerNorm gives a constant; with 3 every input is heard.
    case = make(name, RING, outside=3, routing=routing)
    chosen = case.chosen()
    speaks = {(v, u, k) for (v, u), ks in zip(RING, chosen, strict=True) for k in ks}
    assert 0 < len(speaks) < len(RING) * 4
    heard = set()
    output = case.forward()[0]
    for u in range(6):
        for k in range(4):
            pull = torch.arange(1.0, 4.0, dtype=torch.float64)
            if name == "sage":  # past the ReLU, so that a silent unit does not hide an edge
                output = before_relu(case)
            (slope,) = torch.autograd.grad(
                (output[u, k] * pull).sum(), case.parts, retain_graph=True
            )
            reached = slope.abs().amax(2) > 0  # [N, K]
            assert not reached[:, [j for j in range(4) if j != k]].any()
            heard |= {(v, u, k) for v in range(6) if reached[v, k]}
    assert heard == speaks | {(u, u, k) for u in range(6) for k in range(4)}


def before_relu(case: Case) -> Tensor:
    """The layer with a ReLU that lets everything pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.nn.functional.relu", lambda x: x)
        return case.forward()[0]


@every_layer
def test_a_change_of_a_component_outside_the_top_n_is_not_heard(name: str) -> None:
    case = make(name, [(0, 1)], nodes=2, count=5, top=2)
    parts = case.parts.detach().abs()
    with torch.no_grad():
        case.router.weight.abs_()  # every weight above 0: no ties
    case = case._replace(parts=parts)
    (chosen,) = case.chosen()
    output = case.forward()[0]
    for k in range(5):
        changed = parts.clone()
        changed[0, k] *= 0.5 if k not in chosen else 1.5  # stays outside, stays inside
        other = case._replace(parts=changed)
        assert other.chosen() == [chosen]
        assert torch.equal(other.forward()[0][1], output[1]) == (k not in chosen)


@every_layer
def test_a_node_without_edges_is_its_own_neighbour(name: str) -> None:
    case = make(name, [(0, 1), (1, 0)], nodes=3)
    alone = case._replace(parts=case.parts[2:], edge_index=case.edge_index[:, :0])
    output, missing = alone.forward()
    assert torch.allclose(case.forward()[0][2:], output)
    assert missing == 0
    if isinstance(case.layer, ComponentGAT):
        own = torch.einsum("nki,kio->nko", alone.parts, case.layer.weight)
        assert torch.allclose(output, nn.functional.elu(own))
    assert all(values.isfinite().all() for values in gradients(output, case.leaves()))


@every_layer
def test_self_loops_of_the_network_change_nothing(name: str) -> None:
    without = make(name, RING)
    some = make(name, [(2, 2), *RING, (0, 0), (0, 0)])
    for mine, theirs in zip(without.forward(), some.forward(), strict=True):
        assert torch.equal(mine, theirs)


@settings(max_examples=25)
@given(st.sampled_from(list(LAYERS)), st.data())
def test_the_order_of_nodes_and_edges_does_not_count(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    nodes, edges = len(case.parts), case.edge_index.shape[1]
    order = torch.tensor(data.draw(st.permutations(range(nodes))))
    shuffle = torch.tensor(data.draw(st.permutations(range(edges))), dtype=torch.long)
    other = case._replace(
        parts=case.parts[order],  # new node i is old node order[i]
        edge_index=order.argsort()[case.edge_index[:, shuffle]],
    )
    (output, missing), (permuted, same) = case.forward(), other.forward()
    assert torch.allclose(permuted, output[order], atol=1e-9)
    assert torch.allclose(same, missing)


@every_layer
def test_all_components_of_one_are_ordinary_message_passing(name: str) -> None:
    """K = 1: nothing to route, and L_norm is 0."""
    case = make(name, RING, count=1, top=1)
    assert case.forward()[1] == 0
    check(case)


def test_neighbour_weights_are_dropped_in_training_only() -> None:
    case = make("gat", RING)
    assert isinstance(case.layer, ComponentGAT)
    sure = case.forward()[0]
    case.layer.dropout = 0.5
    assert not torch.equal(case.forward()[0], sure)
    case.layer.eval()
    assert torch.equal(case.forward()[0], sure)


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor):
                # What is stored: an expanded tensor stores less than it shows.
                self.size = max(self.size, value.untyped_storage().nbytes() // value.itemsize)
        return result


def largest(name: str, nodes: int, edges: int, block: int = 1 << 30) -> int:
    """Numbers in the largest tensor of a step."""
    generator = torch.Generator().manual_seed(0)
    case = make(name, [], nodes=nodes, count=4, top=2, inside=2, outside=2).in_blocks(block)
    index = torch.randint(0, nodes, (2, edges), generator=generator)
    case = case._replace(edge_index=index)
    with Largest() as seen:
        output, missing = case.forward()
        (output.sum() + missing).backward()  # type: ignore[no-untyped-call]
    assert output.shape == (nodes, 4, 2) and output.isfinite().all()
    return seen.size


@every_layer
def test_memory_follows_the_edges_and_not_the_square_of_the_nodes(name: str) -> None:
    nodes, edges = 20_000, 40_000
    size = largest(name, nodes, edges)
    assert size <= 2 * 4 * edges  # messages of length 2 in 4 components
    assert largest(name, 2 * nodes, 2 * edges) <= 2.01 * size


@every_layer
def test_in_blocks_memory_follows_the_nodes(name: str) -> None:
    nodes = 5_000
    for edges in (20_000, 100_000):
        size = largest(name, nodes, edges, block=1 << 16)
        assert size <= max(2 * 4 * nodes, 2 * edges)  # messages of all nodes, or the edges' ends


@every_layer
@pytest.mark.parametrize("training", [False, True])
def test_blocks_give_what_one_block_gives(name: str, training: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    edges = pairs_of(torch.randint(0, 30, (2, 200), generator=generator))
    found = []
    for size in (1 << 20, 1000, 1):
        case = make(name, edges, nodes=30, count=4).in_blocks(size)
        case.layer.train(training)
        output, missing = case.forward()
        found.append([output, missing, *gradients(output, case.leaves())])
        found[-1] += gradients(missing, [case.router.weight])
    for blocked in found[1:]:
        assert all(close(*pair) for pair in zip(found[0], blocked, strict=True))


def test_only_what_needs_a_gradient_gets_one_in_blocks() -> None:
    for frozen in ("router", "layer", "parts"):
        case = make("gat", RING).in_blocks(1)
        getattr(case, frozen).requires_grad_(False)
        output, missing = case.forward()
        (output.sum() + missing).backward()  # type: ignore[no-untyped-call]
        assert [leaf.grad is not None for leaf in case.leaves()] == [
            leaf.requires_grad for leaf in case.leaves()
        ]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_is_dropped_is_the_same_in_both_passes(size: int) -> None:
    """A gradient is the slope of the very output that was computed, whatever was dropped."""
    case = make("gat", RING, routing="published").in_blocks(size)
    assert isinstance(case.layer, ComponentGAT)
    case.layer.dropout = 0.5

    def output(step: float) -> Tensor:
        torch.manual_seed(3)
        moved = case._replace(parts=case.parts.detach() + step * direction)
        return moved.forward()[0].sum()

    direction = torch.randn(case.parts.shape, dtype=torch.float64) * 1e-3
    torch.manual_seed(3)
    (slope,) = torch.autograd.grad(case.forward()[0].sum(), case.parts)
    expected = (output(1) - output(-1)) / 2
    assert torch.allclose((slope * direction).sum(), expected, rtol=1e-4)
    torch.manual_seed(4)
    assert not torch.allclose(case.forward()[0].sum(), output(0))


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_the_dropped_share_is_the_one_asked_for(size: int) -> None:
    star = [(leaf, 0) for leaf in range(1, 400)]
    case = make("gat", star, nodes=400, count=2, top=2, outside=1).in_blocks(size)
    assert isinstance(case.layer, ComponentGAT)
    case.layer.dropout = 0.3
    with torch.no_grad():
        case.layer.attention.zero_()  # all neighbours weigh the same
        case.layer.weight.fill_(1 / 3)
    output = case._replace(parts=torch.ones_like(case.parts)).forward()[0]
    kept = output[0] * 400 * 0.7  # of 400 messages of 1 / 400 each
    assert ((kept - 280).abs() < 5 * (400 * 0.3 * 0.7) ** 0.5).all() and kept.unique().numel() == 2
