"""A small network, written to files as a user might have them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl import NetworkStream, read_stream
from dicgrl.graph import SPLITS
from tests.streams import NetworkLists, Node, network_in_words

LISTS = NetworkLists(
    nodes=[
        [
            Node("n3", "10", 0, (1.0, 0.5)),
            Node("n1", "9", 1, (0.0, -2.0)),
            Node("n2", "9", 2, (0.0, 0.0)),
        ],
        [
            Node("n0", "drama", 0, (3.0, 1.0)),
            Node("n5", "10", 1, (1.0, 1.0)),
            Node("n4", "9", 2, (2.0, 1.5)),
        ],
    ],
    edges=[[("n1", "n3"), ("n3", "n1"), ("n2", "n2")], [("n0", "n1"), ("n4", "n5"), ("n1", "n2")]],
)


NODES = [node for nodes in LISTS.nodes for node in nodes]


EDGES = [edge for edges in LISTS.edges for edge in edges]


CLASSES = ["9", "10", "drama"]  # numbers by value and before words


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def read_network(path: Path, **options: float) -> NetworkStream:
    stream = read_stream(path, **options)
    assert isinstance(stream, NetworkStream)
    return stream


def authors(root: Path, suffix: str = "", blank: str = " ", end: str = "\n") -> Path:
    rows = [[n.label, *map(str, n.features)] for n in NODES]
    put(root / f"features.txt{suffix}", "".join(blank.join(row) + end for row in rows))
    put(root / f"labels.txt{suffix}", "".join(f"{n.label}{blank}{n.cls}{end}" for n in NODES))
    for i, (nodes, edges) in enumerate(zip(LISTS.nodes, LISTS.edges, strict=True)):
        put(root / f"{i}/edgelist.txt{suffix}", "".join(f"{a}{blank}{b}{end}" for a, b in edges))
        for number, split in enumerate(SPLITS):
            chosen = [f"{n.label}{blank}{n.cls}{end}" for n in nodes if n.role == number]
            put(root / f"{i}/{split}.txt{suffix}", "".join(chosen))
    return root


def tables(root: Path, end: str = "\n", features: bool = True, **files: str | bytes) -> Path:
    rows = ["node,class,part,split" + ",width,height" * features]
    for i, nodes in enumerate(LISTS.nodes):
        for n in nodes:
            row = [n.label, n.cls, str(i), SPLITS[n.role], *map(str, n.features * features)]
            rows.append(",".join(row))
    put(root / "nodes.csv", end.join(rows))
    put(root / "edges.csv", end.join(["source,target", *(f"{a},{b}" for a, b in EDGES)]) + end)
    for name, content in files.items():
        put(root / name.replace("_", "."), content)
    return root


def arrays() -> dict[str, Any]:
    position = {node.label: i for i, node in enumerate(NODES)}
    return {
        "nodes": np.array([n.label for n in NODES]),
        "edges": np.array([(position[a], position[b]) for a, b in EDGES]),
        "features": np.array([n.features for n in NODES]),
        "classes": np.array([n.cls for n in NODES]),
        "part": np.array([0, 0, 0, 1, 1, 1]),
        "split": np.array([n.role for n in NODES]),
        "edge_part": np.array([0, 0, 0, 1, 1, 1]),
    }


def npz(path: Path, **changes: Any) -> Path:
    content = {**arrays(), **changes}
    np.savez(path, **{key: value for key, value in content.items() if value is not None})
    return path


def check(stream: NetworkStream) -> None:
    assert network_in_words(stream) == LISTS
    assert list(stream.classes) == CLASSES
    assert [part.num_classes for part in stream] == [2, 3]
    assert [part.num_nodes for part in stream] == [3, 6]


def saved(array: Any, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()
