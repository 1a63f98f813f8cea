"""The kernels compile for a GPU, on a machine that has none.

The interpreter takes what the compiler refuses, such as a variable whose shape changes in a loop.
Run as a module, this file lets the kernels' callers launch into a compiler for the H100, and prints
what each kernel needs of it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dicgrl.kernels
from dicgrl.evaluation import Ranker
from dicgrl.models import Components, KnowledgeModel, Table
from dicgrl.training import LinkObjective, NegativeSampler, RowAdam, make_loss
from tests.kernels.interpreter import printed

TYPES = {
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.bool: "*i1",
    torch.bfloat16: "*bf16",
    int: "i32",
    float: "fp32",
    bool: "i1",
}
EXPECTED = {
    "adam._adam", "claims._claim", "convkb._backward_parameters", "convkb._backward_vectors",
    "convkb._forward", "losses._loss", "query_batch._backward", "query_batch._forward",
    "query_ranks._count", "query_ranks._distances", "query_ranks._truth", "ranking._mask",
    "sampling._draw", "transe_batch._backward", "transe_batch._forward",
}  # fmt: skip


COMPILED: set[str] = set()


def compile_only(kernel: Any, *values: Any, **named: Any) -> None:
    """What a launch does, up to the machine code."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    for name in ("grid", "warmup"):
        named.pop(name)
    options = {name: named.pop(name) for name in ("num_warps", "num_stages") if name in named}
    given = dict(zip(kernel.arg_names, values, strict=False)) | named
    if kernel.fn.__name__ == "_claim":  # PyTorch code reads the places
        given["claims"].fill_(1)
    constant = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    constant |= {name for name, value in given.items() if value is None}
    signature, constants, aligned = {}, {}, {}
    for place, name in enumerate(kernel.arg_names):
        value = given[name]
        if name in constant:
            signature[name], constants[(place,)] = "constexpr", value
        else:
            signature[name] = TYPES[value.dtype if torch.is_tensor(value) else type(value)]
            if torch.is_tensor(value):  # as PyTorch's memory is
                aligned[(place,)] = [["tt.divisibility", 16]]
    name = f"{kernel.fn.__module__.split('.')[-1]}.{kernel.fn.__name__}"
    key = f"{name} {signature} {constants} {options}"
    if key in COMPILED:
        return
    COMPILED.add(key)
    source = ASTSource(kernel, signature, constants, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    assert made.asm["cubin"]
    if "d_entities" in given and given.get("ROUTED") and given["size"] % 4 == 0:
        assert "add.v4.f32" in made.asm["ptx"]  # four coordinates of a component at a time
    shape = " ".join(f"{key}={value}" for key, value in named.items())
    print(name, *needs(made.asm["cubin"]), shape, flush=True)


def needs(machine_code: bytes) -> tuple[int, int]:
    """Registers of a thread, and bytes of its memory beside them."""
    import triton

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(machine_code)
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(file)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", shown)
    assert found, shown
    return int(found[1]), int(found[2])


class Sampler(NegativeSampler):
    """What was not computed must be no row outside the tables."""

    def draw(self, triples: Tensor, asked: int, count: int) -> Tensor:
        return super().draw(triples, asked, count).zero_()


def launch_everything(precision: str = "float32") -> None:
    """Training and ranking with every decoder."""
    known = torch.tensor([[0, 0, 1], [1, 1, 2], [3, 0, 4], [4, 1, 4]])
    for name, length, components, options in (
        ("transe", 200, None, {"p": 1}),
        ("transe", 8, Components(4, 2), {"p": 2}),
        ("transe", 400, Components(8, 4), {"p": 1}),
        ("transe", 268, Components(4, 3, routing="published"), {"p": 1}),
        *((name, length, components, {}) for name in ("distmult", "complex", "rotate")
          for length, components in ((200, None), (8, Components(4, 2)), (400, Components(8, 4)),
                                     (272, Components(4, 3, routing="published")))),
        ("convkb", 8, None, {"filters": 3}),
    ):  # fmt: skip
        model = KnowledgeModel(name, length, components, options, precision=precision)
        model.grow(6, 2)
        Ranker(known, 2).rank(model, known, range(6))
        with torch.no_grad():
            model.candidate_scores(known, "tail", 0, 6)
        for loss, decay in (
            ("softmargin", 0.0), ("margin", 0.1), ("selfadversarial", 0.0), ("softmax", 0.0),
            ("meanmargin", 0.0),
        ):  # fmt: skip
            sampler = Sampler(known, 6, 2, torch.Generator().manual_seed(0))
            sampler.saturated = loss == "margin"  # with a mask
            objective = LinkObjective(sampler, make_loss(loss, 1.0, 1.0), 64)
            total = objective(model, known, torch.ones(4))
            total.backward()  # type: ignore[no-untyped-call]
            RowAdam(model.tables().values(), weight_decay=decay).step()
            # The next step has closed rows, the one after it closed tables.
            for number, table in enumerate(model.tables().values()):
                table.restrict(torch.arange(0 if decay and number else 1))


def launch_large_tables() -> None:
    """Adam's kernel where gradients have places, rows a number each, or numbers 16 bits."""
    for rule in ("adam", "rowwise", "adagrad"):
        for kind in (torch.float32, torch.bfloat16):
            table = Table(200, dtype=kind)
            table.grow(torch.zeros(9, 200))
            for opened in (None, torch.arange(3)):
                table.restrict(opened)
                table.accumulate(torch.arange(5), torch.zeros(5, 200))
                RowAdam([table], rule=rule).step()


def test_kernels_compile_without_a_gpu() -> None:
    lines = [line.split() for line in printed(__name__, TRITON_INTERPRET="0")]
    assert {name for name, *_ in lines} == EXPECTED
    # A few bytes are usual; what does not fit into the registers would be many.
    assert not [line for line in lines if int(line[2]) > 32]


if __name__ == "__main__":
    import triton

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dicgrl.kernels, "_ANYWHERE", True)
        patch.setattr(triton.runtime.jit.JITFunction, "run", compile_only)
        launch_everything()
        patch.setattr(Table, "dense_bytes", 0)
        for precision in ("float32", "bfloat16"):
            launch_everything(precision)
        launch_large_tables()
