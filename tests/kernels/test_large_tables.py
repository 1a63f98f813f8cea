"""The kernels on large tables against PyTorch: rows with places, one number a row, short rows.

On a CPU the comparison is this file run as a module, by the interpreter.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dicgrl.models import KnowledgeModel, Table
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from tests.kernels.interpreter import interpreted
from tests.kernels.test_training import DECODERS as DECODERS_OF_LINKS
from tests.kernels.test_training import (
    Links,
    close,
    gradients,
    kernels,
    known_triples,
    made,
    pulled,
    scored,
)

ROWS, WIDTH, LISTED = 40, 5, 12
RULES = ("adam", "rowwise", "adagrad")
KINDS = list(itertools.product(RULES, (torch.float32, torch.bfloat16), (False, True)))
DECODERS = ("transe", "distmult")
LINKS = [
    Links(division, decoder, open=rows, precision=precision, **sizes)
    for precision in ("float32", "bfloat16")
    for division, decoder, rows, sizes in (
        *(("plain", decoder, "all", {}) for decoder in DECODERS_OF_LINKS),
        *(("plain", decoder, "scattered", {}) for decoder in ("l1", "distmult", "rotate")),
        *(("learned", decoder, "all", {}) for decoder in ("l1", "l2", "distmult", "rotate")),
        *(("learned", decoder, "scattered", {}) for decoder in ("l1", "rotate")),
        ("learned", "complex", "newcomers", {}),
        ("learned", "l1", "attention", {}),
        ("published", "l2", "most", {}),
        ("by weight", "l1", "all", {"dim": 48}),  # four coordinates of a component at a time
        ("by weight", "distmult", "newcomers", {"dim": 40}),
        ("plain", "l1", "all", {"dim": 200, "batch": 3, "heads": 17, "tails": 33}),
        ("plain", "rotate", "newcomers", {"dim": 200, "batch": 3, "heads": 17, "tails": 9}),
        ("plain", "l1", "all", {"batch": 0}),
    )
]
FAR = [
    Links(division, decoder, dim=256, precision="bfloat16")
    for division in ("plain", "learned")
    for decoder in ("l1", "rotate")
]


def stepped(rule: str, dtype: torch.dtype, restricted: bool, device: str) -> dict[str, Tensor]:
    table = Table(WIDTH, device, dtype)
    table.grow(torch.randn(ROWS, WIDTH, generator=made(1)).to(device))
    if restricted:
        table.restrict(torch.arange(0, ROWS, 2, device=device))
    # The bias of the moments is a series at first, and an exponential from 500 steps on (beta2).
    before = torch.tensor([0.0, 3.0, 498.0, 20_000.0]).repeat(ROWS // 4)
    table.state("steps", 1)[:, 0] = before.to(device)
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


def passes(case: Links, device: str, *, slow: bool) -> dict[str, Tensor]:
    """Scores, and gradients after two backward passes that share most rows."""
    model = case.model(device)
    assert model.entities.sparse != slow
    assert slow or model.fast_batch() is not None
    found: dict[str, Tensor] = {}
    for number, part in enumerate((case, replace(case, batch=case.batch // 2))):
        triples, other_heads, other_tails = part.ids(device)
        positive, negative = scored(model, triples, other_heads, other_tails, slow=slow)
        found |= {f"positive {number}": positive.detach(), f"negative {number}": negative.detach()}
        last = gradients(model, pulled(positive, negative))
    return found | last


def compare_links(case: Links, device: str) -> None:
    """Vectors are in eighths, which 16 bits hold, so that all find the same."""
    with kernels("0"):
        expected = passes(replace(case, precision="float32"), "cpu", slow=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "dense_bytes", 0)
        for switch in "01":
            with kernels(switch):
                for name, values in passes(case, device, slow=False).items():
                    close(values, expected[name], f"{case}, kernels {switch}: {name}")


def compare_far(case: Links, device: str) -> None:
    """The last rows of a table with more numbers than 32 bits count, as if it had no others."""
    near, far = case.model(device), case.model(device)
    before = (1 << 31) // case.dim
    rows = torch.empty(
        before * far.count + len(near.entities), far.size, dtype=torch.bfloat16, device=device
    )
    rows[before * far.count :] = near.entities.rows
    far.entities = Table(far.size, device, torch.bfloat16)
    far.entities.adopt({"rows": rows})
    triples, *others = case.ids(device)
    moved = triples + before * torch.tensor([1, 0, 1], device=device)
    found = []
    for model, ids, shift in ((near, triples, 0), (far, moved, before)):
        positive, negative, _ = model.score_links(ids, *(each + shift for each in others))
        pulled(positive, negative).backward()  # type: ignore[no-untyped-call]
        touched = torch.unique(near.entities.touched())
        pulls = model.entities.gradient_of(touched + shift * model.count)
        found.append((positive.detach(), negative.detach(), pulls, model.relations.gradient))
    for near_by, far_away in zip(*found, strict=True):
        close(far_away, near_by, f"far {case}")


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
    for case in LINKS:
        compare_links(case, device)
        print("links", case)
    for case in FAR:  # on a CPU, memory that nobody writes to takes none
        compare_far(case, device)
        print("far", case)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_kernels_on_the_gpu() -> None:
    pytest.importorskip("triton")
    check("cuda")


def test_kernels_in_the_interpreter() -> None:
    expected = [" ".join(map(str, ("rows", *kind))) for kind in KINDS]
    expected += [f"step {decoder}" for decoder in DECODERS]
    expected += [f"links {case}" for case in LINKS] + [f"far {case}" for case in FAR]
    assert interpreted(__name__) == expected


if __name__ == "__main__":
    check("cpu")
