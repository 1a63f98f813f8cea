"""ConvKB on a GPU: the Triton kernel beside the PyTorch path, in agreement and in time.

    python benchmarks/convkb_kernel.py

Prints the relative difference of the scores and of every gradient on random inputs, the time of a
forward and backward pass over 1,024 x 33 pairs, and that of scoring 512 questions against 14,541
candidates.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from dicgrl.models import ConvKB

DIM, FILTERS = 200, 50


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")
    scorer = ConvKB(DIM, FILTERS)
    scorer.initialise(torch.Generator().manual_seed(0))
    scorer.cuda()
    vectors = _vectors(300)
    upstream = torch.randn(300, 33, device="cuda")
    plain, fused = (_all_gradients(scorer, vectors, upstream, switch) for switch in "01")
    worst = max(((a - b).norm() / a.norm()).item() for a, b in zip(plain, fused, strict=True))
    print(f"largest relative difference of scores and gradients: {worst:.1e}")
    vectors = _vectors(1024)
    for switch, name in (("0", "PyTorch"), ("1", "kernel")):
        os.environ["DICGRL_KERNELS"] = switch
        spent = _best(lambda: scorer.score(*vectors).sum().backward())  # type: ignore[no-untyped-call]
        print(f"{name}: forward and backward {1e3 * spent:.2f} ms")
    questions, entities = (torch.randn(n, DIM, device="cuda") for n in (512, 14_541))
    with torch.no_grad():
        spent = _best(lambda: scorer.score_tails(questions, questions, entities))
    print(f"kernel: 512 questions against 14,541 candidates {1e3 * spent:.1f} ms")


def _vectors(count: int) -> list[Tensor]:
    shapes = ((count, 1, DIM), (count, 1, DIM), (count, 33, DIM))
    return [torch.randn(shape, device="cuda", requires_grad=True) for shape in shapes]


def _all_gradients(
    scorer: ConvKB, vectors: list[Tensor], upstream: Tensor, switch: str
) -> list[Tensor]:
    os.environ["DICGRL_KERNELS"] = switch
    scores = scorer.score(*vectors)
    inputs = [*vectors, scorer.kernel, scorer.bias, scorer.weight]
    return [scores.detach(), *torch.autograd.grad(scores, inputs, upstream)]


def _best(work: Callable[[], object], repeats: int = 10) -> float:
    times = []
    for _ in range(repeats + 3):
        torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times[3:])


if __name__ == "__main__":
    main()
