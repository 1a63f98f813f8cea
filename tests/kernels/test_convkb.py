"""The Triton kernel of ConvKB against `ConvKB.score` in PyTorch, forward and backward.

On a CPU the comparison is this file run as a module, by the interpreter.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import dicgrl.kernels
from dicgrl.datasets.synthetic import aspect_graph
from dicgrl.jobs.merged import run_merged
from dicgrl.models.convkb import ConvKB
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings
from tests.kernels.interpreter import interpreted


@dataclass(frozen=True, slots=True)
class Case:
    """Shapes of the three vectors, and how many filters look at them."""

    head: tuple[int, ...]
    relation: tuple[int, ...]
    tail: tuple[int, ...]
    filters: int = 3
    strided: bool = False  # vectors that are every second coordinate of others

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, s)) for s in (self.head, self.relation, self.tail))
        return f"{shapes}-{self.filters}{'-strided' if self.strided else ''}"


# A tile is 16 pairs x 64 dimensions; a program of the parameter gradients walks over 1024 pairs.
# The interpreter is slow, so it has small cases and small tiles: see the end of the file.
CASES = [
    Case((8, 16), (8, 16), (8, 16)),  # exactly one of the interpreter's tiles
    Case((1, 1), (1, 1), (1, 1), filters=1),
    Case((7, 5), (7, 5), (7, 5), filters=2),
    Case((17, 18), (17, 18), (17, 18)),
    Case((4, 1, 6), (4, 1, 6), (4, 5, 6)),  # negatives with another tail
    Case((4, 5, 6), (4, 1, 6), (4, 1, 6)),  # and with another head
    Case((2, 1, 20), (2, 1, 20), (1, 5, 20)),  # all tails of some questions
    Case((1, 7, 4), (3, 1, 4), (3, 1, 4), filters=5),
    Case((3, 1, 8), (1, 1, 8), (8,)),
    Case((8,), (8,), (8,)),
    Case((2, 3, 1, 4), (2, 1, 1, 4), (1, 1, 2, 4)),
    Case((4, 1, 6), (4, 1, 6), (4, 5, 6), strided=True),
]
LARGE = [
    Case((16, 64), (16, 64), (16, 64)),
    Case((33, 70), (33, 70), (33, 70)),
    Case((5, 1, 130), (5, 1, 130), (1, 13, 130)),
    Case((2050, 6), (2050, 6), (2050, 6), filters=50),
    Case((70, 1, 200), (70, 1, 200), (70, 64, 200), filters=50),
]
NAMES = ("head", "relation", "tail", "kernel", "bias", "weight")


def inputs(case: Case) -> tuple[ConvKB, list[Tensor]]:
    """Random inputs in eighths, biases between: what a filter sees is exact, and never at its kink.

    Else rounding would decide now and then whether a filter is open, and so move a gradient a lot.
    """
    generator = torch.Generator().manual_seed(sum(map(ord, str(case))))

    def eighths(*shape: int) -> Tensor:
        return torch.randint(-16, 17, shape, generator=generator) / 8

    model = ConvKB(case.head[-1], case.filters)
    with torch.no_grad():
        model.kernel.copy_(eighths(3, case.filters))
        model.bias.copy_(eighths(case.filters) + 1 / 128)  # products are 64ths
        model.weight.normal_(generator=generator)
    vectors = []
    for *shape, dim in (case.head, case.relation, case.tail):
        vectors.append(eighths(*shape, 2 * dim)[..., ::2] if case.strided else eighths(*shape, dim))
    return model, vectors


def outcome(model: ConvKB, vectors: list[Tensor], *, summed: bool) -> dict[str, Tensor]:
    """Scores, and the gradients of everything for some gradient of the scores."""
    given = [vector.detach().requires_grad_() for vector in vectors]
    scores = model.score(*given)
    if summed:  # its gradient is one number seen through strides of 0
        total = scores.sum()
    else:
        pull = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1))
        total = (scores * pull.to(scores)).sum()
    parameters = [model.kernel, model.bias, model.weight]
    gradients = torch.autograd.grad(total, [*given, *parameters])
    return {"scores": scores.detach(), **dict(zip(NAMES, gradients, strict=True))}


def compare(case: Case, device: str) -> None:
    model, vectors = inputs(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICGRL_KERNELS", "0")
        # In double precision: what is off by more than rounding is wrong.
        wide = ConvKB(model.dim, case.filters).double()
        wide.load_state_dict(model.state_dict())
        doubles = [vector.double() for vector in vectors]
        expected = {summed: outcome(wide, doubles, summed=summed) for summed in (False, True)}
        patch.delenv("DICGRL_KERNELS")
        model, vectors = model.to(device), [vector.to(device) for vector in vectors]
        assert dicgrl.kernels.available(*vectors)
        # Memory that is not written to is NaN in this mode, and would show.
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            assert torch.empty(3, device=device).isnan().all()
            for summed, reference in expected.items():
                found = outcome(model, vectors, summed=summed)
                for name, values in reference.items():
                    assert found[name].shape == values.shape, f"{case}: {name}"
                    off = (found[name].cpu().double() - values).abs().max()
                    assert off <= 1e-5 * values.abs().max().clamp(min=1), f"{case}: {name}: {off}"
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", CASES + LARGE, ids=str)
def test_kernel_on_the_gpu(case: Case) -> None:
    pytest.importorskip("triton")
    compare(case, "cuda")


def test_kernel_in_the_interpreter() -> None:
    assert interpreted(__name__) == [str(case) for case in CASES]


SMALL: dict[str, Any] = {
    "model": "convkb", "dim": 8, "filters": 4, "epochs": 2, "batch": 64, "negatives": 4,
    "validate_every": 1,
}  # fmt: skip


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would be used here, were it there; a try to import it fails."""
    monkeypatch.setattr(dicgrl.kernels, "_ANYWHERE", True)
    monkeypatch.setitem(sys.modules, "dicgrl.kernels.convkb", None)


@pytest.fixture(params=["switched off", "without triton"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "switched off":
        monkeypatch.setenv("DICGRL_KERNELS", "0")
    else:
        monkeypatch.setattr(dicgrl.kernels, "_FOUND", False)
    return str(request.param)


@pytest.mark.usefixtures("no_kernel", "way")
@pytest.mark.parametrize("changes", [{}, {"components": 4, "top": 2}], ids=["plain", "divided"])
def test_everything_works_without_kernels(changes: dict[str, Any]) -> None:
    graph = aspect_graph(entities=30, aspects=2, relations_per_aspect=2, levels=4, triples=200)
    recipe = Recipe("test", Settings().changed(SMALL | changes))
    results = run_merged(graph.stream, recipe, device="cpu")
    assert results["epochs"] == 2 and 0 < results["test"]["mrr"] <= 1


@pytest.mark.usefixtures("no_kernel", "way")
def test_memory_is_planned_for_the_path_that_runs() -> None:
    assert not dicgrl.kernels.available(torch.zeros(1))
    assert ConvKB(6, 5).pair_bytes() >= 4 * 6 * 5  # [dim, M] for each pair


@pytest.mark.skipif(not dicgrl.kernels._FOUND, reason="needs Triton")
@pytest.mark.usefixtures("no_kernel")
def test_dropout_is_left_to_pytorch() -> None:
    model = ConvKB(6, 5, dropout=0.5)
    model.initialise(torch.Generator().manual_seed(0))
    vectors = [torch.randn(4, 6) for _ in range(3)]
    assert model.train().score(*vectors).shape == (4,)
    with pytest.raises(ImportError):  # what is not dropped goes through the kernel
        model.eval().score(*vectors)


@pytest.mark.skipif(not dicgrl.kernels._FOUND, reason="needs Triton")
def test_a_cpu_is_no_place_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert not dicgrl.kernels.available(torch.zeros(1))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert dicgrl.kernels.available(torch.zeros(1))


if __name__ == "__main__":
    from dicgrl.kernels import convkb

    # So that small cases have several tiles of everything.
    convkb._PAIRS, convkb._DIMS, convkb._FILTERS, convkb._CHUNK = 8, 16, 2, 5
    for each in CASES:
        compare(each, "cpu")
        print(each)
