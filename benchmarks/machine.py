"""What a machine can do at most, and the models and data of the speed benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from dicgrl.datasets import load_stream
from dicgrl.graph import KnowledgePart
from dicgrl.models import Components

# What is measured beside PyKEEN: our options, its class, its options, and the numbers of an entity
# for each of its dimensions: two where these are complex.
MODELS: dict[str, tuple[dict[str, Any], str, dict[str, Any], int]] = {
    "transe": ({"p": 1}, "TransE", {"scoring_fct_norm": 1}, 1),
    "distmult": ({"n3": 0.0}, "DistMult", {}, 1),
    "complex": ({"n3": 0.0}, "ComplEx", {}, 2),
    "rotate": ({}, "RotatE", {}, 2),
}


def pykeen_model(name: str, length: int, **options: Any) -> Any:
    """PyKEEN's model of the same name, with as many numbers for an entity."""
    from pykeen import models

    _, kind, own, numbers = MODELS[name]
    return getattr(models, kind)(embedding_dim=length // numbers, random_seed=0, **own, **options)


def halved(name: str) -> Components:
    """Components of 200 numbers, of which a triple uses half; pairs of numbers stay together."""
    return Components(10, 5) if MODELS[name][3] > 1 else Components(8, 4)


def whole(dataset: str) -> KnowledgePart:
    """All parts of a dataset as one."""
    part = load_stream(dataset).merged()[0]
    assert isinstance(part, KnowledgePart)
    return part


def wait(device: torch.device) -> None:
    """Until the device has done all work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def best(work: Callable[[], object], device: torch.device, repeats: int, warm_up: int = 1) -> float:
    """Seconds of the fastest of several runs, the first ones left out."""
    times = []
    for _ in range(warm_up + repeats):
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - started)
    return min(times[warm_up:])


def busy(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the cheapest of several runs, all threads; other work hardly counts."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def bandwidth(device: torch.device) -> float:
    """Bytes read and written per second by a copy of half a gigabyte."""
    source = torch.ones(1 << 27, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / best(lambda: target.copy_(source), device, 5)


def instructions(device: torch.device) -> float:
    """Single-precision additions or multiply-adds per second, by a matrix product."""
    size = 8192 if device.type == "cuda" else 2048
    a = torch.randn(size, size, device=device)
    return size**3 / best(lambda: a @ a, device, 3)


def name_of(device: torch.device) -> str:
    """The device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {torch.get_num_threads()} threads"
