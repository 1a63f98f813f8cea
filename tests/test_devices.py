"""What fits into memory is learned; what cannot is refused before it is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dicgrl.common import devices, memory
from dicgrl.common.devices import check_memory, free_memory, pick_device
from dicgrl.errors import UserError
from dicgrl.trainers import sizes
from tests.tiny import learner_of, taught

CPU = torch.device("cpu")


def test_devices_are_named_or_given() -> None:
    assert pick_device("cpu") == pick_device(CPU) == pick_device("cpu:0") == CPU
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES chooses another"):
        pick_device("cuda:1")
    with pytest.raises(UserError, match=r"expected auto, cpu or cuda$"):
        pick_device("tpu")


def test_free_memory_is_plausible() -> None:
    free = free_memory(CPU)
    assert free is None or 1 << 20 < free < 1 << 50


def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_memory", lambda _: 2_000_000_000)
    check_memory(2_000_000_000, CPU, "it")
    with pytest.raises(UserError, match=r"it takes 2\.5 GB of memory at least; 2\.0 GB are free"):
        check_memory(2_500_000_000, CPU, "it")


def test_where_nothing_tells_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", unreadable)
    monkeypatch.delattr(memory.os, "sysconf", raising=False)
    assert free_memory(CPU) is None
    check_memory(1 << 80, CPU, "it")


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_a_refused_part_leaves_the_learner_as_it_was(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = learner_of(kind)
    with monkeypatch.context() as patch:
        patch.setattr(devices, "free_memory", lambda _: 10)
        with pytest.raises(UserError, match="GB of memory"):
            taught(learner, 1)
    assert learner.num_parts == 0
    assert taught(learner, 1).num_parts == 1


@pytest.mark.parametrize(
    ("meminfo", "limits", "expected"),
    [
        ("MemAvailable: 10 kB\nSwapFree: 4 kB\n", {}, 14 << 10),
        ("MemAvailable: 10 kB\n", {"memory.max": "2048", "memory.swap.max": "1024"}, 3072),
        ("MemAvailable: 10 kB\n", {"memory.max": "2048", "memory.swap.max": "max"}, 2048),
        (
            "MemAvailable: 10 kB\nSwapFree: 4 kB\n",
            {"memory.max": "2048", "memory.swap.max": "max"},
            2048 + (4 << 10),
        ),
        (
            "MemAvailable: 10 kB\n",
            {
                "memory.max": "2048",
                "memory.current": "1800",
                "memory.stat": "anon 5\ninactive_file 300",
                "memory.swap.max": "100",
                "memory.swap.current": "30",
            },
            548 + 70,
        ),
        ("MemAvailable: 10 kB\n", {"memory.max": "max", "memory.swap.max": "0"}, 10 << 10),
    ],
)
def test_free_memory_is_the_least_of_what_system_and_container_allow(
    meminfo: str,
    limits: dict[str, str],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "meminfo").write_text(meminfo)
    for name, text in limits.items():
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert devices.free_memory(torch.device("cpu")) == expected


def test_what_does_not_fit_a_gpu_may_fit_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "free_on_host", lambda: 8_000_000_000)
    said = sizes._instead(["precision=bfloat16 4.0 GB"], "cuda", 7_000_000_000)
    assert said == "with precision=bfloat16 4.0 GB; --device cpu has 8.0 GB free"
    assert sizes._instead([], "cuda", 9_000_000_000) == ""
    assert sizes._instead([], "cpu", 7_000_000_000) == ""
