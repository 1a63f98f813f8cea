"""The optimiser's kernel on large tables against PyTorch: places, one number a row, short rows.

On a CPU the comparison is this file run as a module, by the interpreter.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from dicgrl.models import KnowledgeModel, Table
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from tests.kernels.interpreter import interpreted
from tests.kernels.test_training import close, kernels, known_triples, made

ROWS, WIDTH, LISTED = 40, 5, 12
RULES = ("adam", "rowwise", "adagrad")
KINDS = list(itertools.product(RULES, (torch.float32, torch.bfloat16), (False, True)))
DECODERS = ("transe", "distmult")


def stepped(rule: str, dtype: torch.dtype, restricted: bool, device: str) -> dict[str, Tensor]:
    table = Table(WIDTH, device, dtype)
    table.grow(torch.randn(ROWS, WIDTH, generator=made(1)).to(device))
    if restricted:
        table.restrict(torch.arange(0, ROWS, 2, device=device))
    optimiser = RowAdam([table], lr=0.1, weight_decay=0.1, rule=rule)
    for step in range(4):
        ids = torch.randint(ROWS, (LISTED,), generator=made(step))
        pull = torch.randn(LISTED, WIDTH, generator=made(9 + step))
        for some in (slice(0, 5), slice(5, None)):  # a row may be touched twice in a step
            table.accumulate(ids[some].to(device), pull[some].to(device))
        optimiser.lr = 0.1 / (1 + step)
        optimiser.step()
        assert table.touched() is None and not table.claims().any()
    return table.snapshot()


def compare_rows(rule: str, dtype: torch.dtype, restricted: bool, device: str) -> None:
    found = []
    for switch in "01":
        with kernels(switch):
            found.append(stepped(rule, dtype, restricted, device))
    for name, values in found[0].items():
        close(found[1][name], values, f"{rule} {dtype}: {name}", 1e-2 if name == "rows" else 2e-6)
    # Rounded by the same chance: whoever rounds to the nearest is off in every second number.
    differs = (found[0]["rows"] != found[1]["rows"]).float().mean()
    assert dtype != torch.bfloat16 or differs < 0.05


def compare_step(decoder: str, device: str) -> None:
    """A few steps of everything together end where PyTorch ends, the table being dense."""
    known = known_triples(23, 10)
    found = []
    for switch, dense in (("0", 1 << 30), ("1", 0)):
        with kernels(switch), pytest.MonkeyPatch.context() as patch:
            patch.setattr(Table, "dense_bytes", dense)
            model = KnowledgeModel(decoder, 24, seed=1, device=device)
            model.grow(23, 3)
            assert model.entities.sparse == (dense == 0)
            model.entities.restrict(torch.arange(0, 23, 3, device=device))
            generator = torch.Generator(device).manual_seed(3)
            sampler = NegativeSampler(known.to(device), 23, 3, generator)
            objective = LinkObjective(sampler, make_loss("selfadversarial", 4.0, 1.0), 6)
            optimiser = RowAdam(model.tables().values(), lr=0.02)
            for _ in range(3):
                objective(model, known.to(device), torch.ones(10, device=device)).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            found.append(model.entities.rows.clone())
    close(found[1], found[0], decoder, 1e-4)


def check(device: str) -> None:
    for kind in KINDS:
        compare_rows(*kind, device)
        print("rows", *kind)
    for decoder in DECODERS:
        compare_step(decoder, device)
        print("step", decoder)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_kernels_on_the_gpu() -> None:
    pytest.importorskip("triton")
    check("cuda")


def test_kernels_in_the_interpreter() -> None:
    expected = [" ".join(map(str, ("rows", *kind))) for kind in KINDS]
    assert interpreted(__name__) == expected + [f"step {decoder}" for decoder in DECODERS]


if __name__ == "__main__":
    check("cpu")
