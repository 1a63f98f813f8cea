"""Every strategy and decoder that several processes can learn, by a group of one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from dicgrl import Learner, UserError
from dicgrl.parallel import group
from dicgrl.parallel.trainer import STRATEGIES, ShardedTrainer
from tests.tiny import DIVIDED, LINKS, circles, ring
from tests.tiny import STRATEGIES as EVERY

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the only process of a group computes."""
    on_gpu = request.param == "cuda"
    backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    monkeypatch.setattr(group, "_current", group.Group(0, 1, on_gpus=on_gpu))
    yield request.param
    dist.destroy_process_group()


def learned(device: str, model: str, strategy: str, **changes: object) -> Learner:
    learner = Learner(model, strategy, device=device, seed=3, **(LINKS | changes))
    for part in ring()[:2]:
        learner.learn(part, probe=True)
        learner.evaluate()
    return learner


def check(learner: Learner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it measured is what an ordinary learner measures that loads what it saved."""
    assert isinstance(learner.trainer, ShardedTrainer)
    learner.save(folder)
    monkeypatch.setattr(group, "_current", None)
    alone = Learner.load(folder, device="cpu")
    assert not isinstance(alone.trainer, ShardedTrainer)
    found = [dict(test) for test in learner.tests[-1]]
    alone.evaluate()
    if learner.trainer.device.type == "cpu":
        assert [dict(test) for test in alone.tests[-1]] == found
    assert alone.learn(ring()[2]).new_examples == len(ring()[2].train)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies(
    strategy: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(learned(device, "transe", strategy), tmp_path / "run", monkeypatch)


@pytest.mark.parametrize("model", ["distmult", "complex", "rotate"])
def test_decoders(model: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(learned(device, model, "fresh"), tmp_path / "run", monkeypatch)


@pytest.mark.parametrize(
    "changes",
    [
        DIVIDED,
        {"inverses": True},
        {"precision": "bfloat16"},
        {"optimizer": "rowwise"},
        {"optimizer": "adagrad"},
        {"share": 4},
        {"adam": "dense"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_settings(
    changes: dict[str, object], device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(learned(device, "transe", "fresh", **changes), tmp_path / "run", monkeypatch)


def test_what_is_not_supported_is_refused(device: str) -> None:
    for strategy in sorted({*EVERY} - {*STRATEGIES}):
        with pytest.raises(UserError, match=rf"do not learn by strategy {strategy}"):
            Learner("transe", strategy, device=device, **(DIVIDED if strategy == "dicgrl" else {}))
    for changes, said in (({"clip": 1.0}, "clip=0"), ({"negatives": 0}, "negatives=64")):
        with pytest.raises(UserError, match=said):
            Learner("distmult", "fresh", device=device, **changes)
    with pytest.raises(UserError, match="weights besides its vectors"):
        Learner("convkb", "fresh", device=device)
    with pytest.raises(UserError, match="a network is learned by one"):
        Learner("gat", "fresh", device=device).learn(circles()[0])
