"""The disentangled layer's cost follows the edges: time and memory at several sizes.

    python benchmarks/network_scale.py [--device cpu|cuda] [--sizes 100000,1000000]
        [--degree 10] [--repeats 4]

One training step (forward and backward, full batch) of the two-layer disentangled GAT on random
networks, best of several. A cost that followed the square of the nodes would grow a hundredfold for
ten times the nodes; the last column says what it grew by. Edges count in both directions. Random
networks are the worst case for memory: no two edges of a node read rows that lie close together.
"""

from __future__ import annotations

import argparse
import resource
import time

import torch
from rich.console import Console
from rich.table import Table

from dicgrl.models import Components, NetworkModel, PreparedEdges

FEATURES, CLASSES = 32, 8


def step_seconds(nodes: int, edges: int, device: torch.device, repeats: int) -> float:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, edges // 2), generator=generator)
    loops = torch.arange(nodes).expand(2, -1)
    prepared = PreparedEdges(torch.cat([ends, ends.flip(0), loops], 1).to(device), nodes)
    x = torch.randn(nodes, FEATURES, generator=generator).to(device)
    labels = torch.randint(CLASSES, (nodes,), generator=generator).to(device)
    model = NetworkModel("gat", FEATURES, components=Components(8, 4, "nodes"), device=device)
    model.grow(CLASSES)
    best = float("inf")
    for _ in range(repeats):
        _wait(device)
        started = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(x, prepared), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        _wait(device)
        best = min(best, time.perf_counter() - started)
        model.zero_grad()
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=4)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    table = Table(title=f"One training step of the disentangled GAT (K=8, n=4) on {device}")
    for heading in ("nodes", "edges", "seconds", "peak GiB", "edges/s", "times the first"):
        table.add_column(heading, justify="right")
    first = 0.0
    for nodes in (int(size) for size in arguments.sizes.split(",")):
        edges = nodes * arguments.degree
        seconds = step_seconds(nodes, edges, device, arguments.repeats)
        first = first or seconds
        table.add_row(
            f"{nodes:,}",
            f"{edges:,}",
            f"{seconds:.2f}",
            f"{_peak(device):.1f}",
            f"{edges / seconds:,.0f}",
            f"{seconds / first:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
