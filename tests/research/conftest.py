"""A tiny stream of each task, as a user would keep it on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dicgrl import write_stream
from dicgrl.graph import KnowledgeStreamBuilder, NetworkStreamBuilder

SMALL = ("epochs=2", "later_epochs=1")


@pytest.fixture
def links(tmp_path: Path) -> str:
    """Twenty entities in a circle, three parts; the folder `ring`."""
    builder = KnowledgeStreamBuilder("ring")
    for first, last in ((0, 12), (12, 16), (16, 20)):
        triples = [
            (f"e{max(0, i - k)}", f"/{'up' if k < 3 else 'down'}/{k}", f"e{i}")
            for i in range(first, last)
            for k in (1, 2, 3)
        ]
        rows = builder.rows(*(list(column) for column in zip(*triples, strict=True)))
        builder.add(rows[2:], rows[:1], rows[1:2])
    write_stream(builder.build(), tmp_path / "ring")
    return str(tmp_path / "ring")


@pytest.fixture
def nodes(tmp_path: Path) -> str:
    """Twenty-four nodes of two classes, three parts; the file `pairs.npz`."""
    builder = NetworkStreamBuilder("pairs", num_features=3)
    draw = np.random.default_rng(0)
    builder.classes.add(["red", "blue"])
    for part in range(3):
        ids = builder.nodes.add(f"p{part}n{i}" for i in range(8))
        labels = np.arange(8) % 2
        features = np.stack([labels, 1 - labels, draw.random(8)], 1).astype(np.float32)
        edges = np.array([[i, i - 2] for i in ids.tolist() if i >= 2])
        builder.add(edges, features, labels, ids[:4], ids[4:6], ids[6:])
    write_stream(builder.build(), tmp_path / "pairs.npz")
    return str(tmp_path / "pairs.npz")
