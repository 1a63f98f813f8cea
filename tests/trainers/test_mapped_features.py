from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dicgrl import Learner, read_stream
from dicgrl.readers import arrays_file

_NODES, _WIDTH = 40_000, 800  # 128 MB


def write_network(folder: Path, nodes: int, width: int) -> None:
    """Nodes in a ring, 100 of which have a class; features in a file of their own."""
    random = np.random.default_rng(0)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (nodes, width))
    for first in range(0, nodes, 1000):
        features[first : first + 1000] = random.random(features[first : first + 1000].shape)
    classes = [f"c{i % 2}" if i < 100 else "" for i in range(nodes)]
    rows = [f"n{i},{label}" for i, label in enumerate(classes)]
    (folder / "nodes.csv").write_text("\n".join(["node,class", *rows]), encoding="utf-8")
    edges = [f"n{i},n{(i + 1) % nodes}" for i in range(nodes)]
    (folder / "edges.csv").write_text("\n".join(edges), encoding="utf-8")


def test_mapped_features_are_those_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_network(tmp_path, 300, 4)
    read = read_stream(tmp_path)[0].features
    monkeypatch.setattr(arrays_file, "_MAPPED", 100)
    mapped = read_stream(tmp_path)[0].features
    assert np.array_equal(read, mapped) and not mapped.flags.writeable


def test_a_mapped_file_that_is_cut_off_is_refused_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_network(tmp_path, 300, 4)
    whole = (tmp_path / "features.npy").read_bytes()
    (tmp_path / "features.npy").write_bytes(whole[:-5])
    monkeypatch.setattr(arrays_file, "_MAPPED", 100)
    with pytest.raises(Exception, match="takes 4,800 bytes"):
        read_stream(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells what is held")
def test_memory_does_not_follow_features_that_lie_in_files(tmp_path: Path) -> None:
    data, spill = tmp_path / "data", tmp_path / "spill"
    data.mkdir()
    spill.mkdir()
    write_network(data, _NODES, _WIDTH)
    environment = os.environ | {"DICGRL_SPILL": str(spill), "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _LEARN, str(data)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    held, features = json.loads(told.stdout)
    assert features == 4 * _NODES * _WIDTH
    assert held < features / 2  # read or copied once, it would be more


_LEARN = """
import json, sys, threading, time
from pathlib import Path
import torch_geometric.nn
from dicgrl import Learner, read_stream

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

begin, most = held(), 0
def watch():
    global most
    while True:
        most = max(most, held())
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
part = read_stream(sys.argv[1])[0]
learner = Learner("sage", "fresh", hidden=4, batch=32, neighbours=5, epochs=2, device="cpu")
learner.learn(part)
print(json.dumps([most - begin, part.features.nbytes]))
"""


def test_a_learner_of_mapped_features_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_network(tmp_path, 300, 4)

    def scores() -> list[list[float]]:
        learner = Learner("sage", "fresh", hidden=4, batch=32, epochs=2, device="cpu")
        learner.learn(read_stream(tmp_path)[0])
        return learner.trainer.scores_by(learner.trainer.model).tolist()

    usual = scores()
    monkeypatch.setattr(arrays_file, "_MAPPED", 100)
    monkeypatch.setattr("dicgrl.common.room._LEAST", 64)
    monkeypatch.setenv("DICGRL_SPILL", str(tmp_path))
    assert scores() == usual
