"""Networks in NPZ files."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl import DataError, UserError, read_stream
from tests.readers.small_network import (
    CLASSES,
    EDGES,
    LISTS,
    NODES,
    arrays,
    check,
    npz,
    put,
    read_network,
    saved,
)
from tests.streams import network_in_words


def test_npz(tmp_path: Path) -> None:
    check(read_network(npz(tmp_path / "x.npz")))
    ids = np.array([CLASSES.index(node.cls) for node in NODES])
    check(read_network(npz(tmp_path / "y.npz", classes=ids, class_names=np.array(CLASSES))))
    check(read_network(npz(tmp_path / "words.npz", edges=np.array(EDGES))))
    packed = put(tmp_path / "z.npz.gz", (tmp_path / "x.npz").read_bytes())
    check(read_network(packed))


def test_npz_order_of_class_names_is_the_order_of_ids(tmp_path: Path) -> None:
    names = ["drama", "9", "10"]
    ids = np.array([names.index(node.cls) for node in NODES])
    stream = read_network(npz(tmp_path / "x.npz", classes=ids, class_names=np.array(names)))
    assert list(stream.classes) == ["9", "10", "drama"]  # drama arrives later
    assert network_in_words(stream) == LISTS


@pytest.mark.parametrize("names", [None, np.array(["0", "1", "2"])])
@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float32, np.float64, np.longdouble])
def test_npz_numbers_of_classes(tmp_path: Path, kind: type, names: Any) -> None:
    classes = np.array([2, -1, 0, 0, 1, 2], dtype=kind)
    path = npz(tmp_path / "x.npz", classes=classes, class_names=names, split=None)
    stream = read_network(path)
    assert [node.cls for nodes in network_in_words(stream).nodes for node in nodes] == (
        ["2", "", "0", "0", "1", "2"]
    )
    assert [part.train.tolist() for part in stream] == [[0, 2], [3, 4, 5]]


def test_npz_class_that_is_not_a_number_is_not_known(tmp_path: Path) -> None:
    classes = np.array([2, np.nan, 0, -1, 1, 2])
    for names in (None, np.array(["0", "1", "2"])):
        path = npz(tmp_path / "x.npz", classes=classes, class_names=names, split=None)
        stream = read_network(path)
        assert list(stream.classes) == ["0", "2", "1"]
        assert [part.labels.tolist() for part in stream] == [[1, -1, 0], [-1, 2, 1]]


def test_npz_large_numbers_of_classes(tmp_path: Path) -> None:
    classes = np.full(6, 2**64 - 1, dtype=np.uint64)
    assert list(read_network(npz(tmp_path / "x.npz", classes=classes)).classes) == [f"{2**64 - 1}"]


def test_npz_class_with_the_name_of_a_number(tmp_path: Path) -> None:
    words = [["1", "-1", "0"], ["-1", "0", "1"]]
    names = np.array(["-1", "0", "1"])
    ids = np.array([2, 0, 1, 0, 1, 2])
    for classes, class_names in ((ids, names), (names[ids], None)):
        path = npz(tmp_path / "x.npz", classes=classes, class_names=class_names)
        found = network_in_words(read_network(path))
        assert [[node.cls for node in nodes] for nodes in found.nodes] == words
        assert [node.role for nodes in found.nodes for node in nodes] == [n.role for n in NODES]


def test_npz_readable_names(tmp_path: Path) -> None:
    names = np.array(["Alien", "", "Brazil", "", "", "Casablanca"])
    stream = read_network(npz(tmp_path / "x.npz", readable_names=names))
    check(stream)
    assert stream.names == {"n3": "Alien", "n2": "Brazil", "n4": "Casablanca"}
    path = npz(tmp_path / "y.npz", readable_names=["Nine"], readable_names_of=["9"])
    assert read_network(path).names == {"9": "Nine"}
    path = npz(tmp_path / "z.npz", readable_names=["a\nb"], readable_names_of=["9"])
    with pytest.raises(UserError, match=r"z\.npz\[readable_names\]: 'a.nb': a label cannot"):
        read_network(path)


def test_npz_labels_as_lines(tmp_path: Path) -> None:
    lines = np.array("\n".join(node.label for node in NODES))
    check(read_network(npz(tmp_path / "x.npz", nodes=lines)))


def test_npz_part_of_edges_alone(tmp_path: Path) -> None:
    stream = read_network(npz(tmp_path / "x.npz", edge_part=np.array([0, 0, 3, 1, 1, 2])))
    found = network_in_words(stream)
    assert found.nodes == [*LISTS.nodes, [], []]
    assert found.edges == [EDGES[:2], EDGES[3:5], EDGES[5:], EDGES[2:3]]


@pytest.mark.parametrize("key", ["nodes", "classes"])
def test_npz_labels_with_control_characters(tmp_path: Path, key: str) -> None:
    arrays = {"nodes": ["a", "b"], "classes": ["x", "y"]}
    arrays[key][1] = "one\ttwo"
    np.savez(tmp_path / "x.npz", edges=[[0, 1]], features=np.eye(2), **arrays)
    with pytest.raises(UserError, match=rf"x\.npz\[{key}\]: 'one.*two': a label cannot contain"):
        read_network(tmp_path / "x.npz")


def test_npz_minimal(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", edges=[[0, 2]], features=np.eye(3, dtype=bool), classes=[1, -1, 0])
    stream = read_network(tmp_path / "x.npz")
    assert list(stream.nodes) == ["0", "1", "2"]
    assert stream[0].labels.tolist() == [1, -1, 0]
    assert sorted(stream[0].train.tolist()) == [0, 2]
    np.testing.assert_array_equal(stream[0].features, np.eye(3))
    np.savez(tmp_path / "y.npz", edges=np.empty((0, 2)), features=[[1.0]], classes=["x"])
    assert read_network(tmp_path / "y.npz")[0].edges.shape == (0, 2)


def test_memory_follows_the_text_of_classes(tmp_path: Path) -> None:
    count = 5_000
    rows = [f"n{i},{'x' * 4_000 if i == 7 else i % 3},1" for i in range(count)]
    put(tmp_path / "nodes.csv", "\n".join(["node,class,w", *rows]))
    put(tmp_path / "edges.csv", "n0,n1\n")
    tracemalloc.start()
    try:
        stream = read_network(tmp_path, valid=0.1, test=0.1)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20  # padded it is 80 MB and more
    finally:
        tracemalloc.stop()
    assert list(stream.classes) == ["0", "1", "2", "x" * 4_000]
    assert stream[0].labels[:9].tolist() == [0, 1, 2, 0, 1, 2, 0, 3, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": None}, r": array 'edges' is missing; found \['nodes', 'features'"),
        ({"features": None}, r": array 'features' is missing"),
        ({"classes": None}, r": array 'classes' is missing"),
        ({"features": np.zeros(6)}, r"\[features\]: shape \[6\]; expected features \[n, F\]"),
        ({"features": np.full((6, 1), "a")}, r"\[features\]: features must be numbers, not <U1"),
        ({"features": np.zeros((6, 1), complex)}, r"\[features\]: .* numbers, not complex128"),
        ({"features": np.array([[0.0]] * 5 + [[np.nan]])}, r": feature 0 of node 'n4' is nan"),
        ({"features": np.zeros((5, 2))}, r": features has 5 rows; expected one for each of 6"),
        ({"features": np.array([[{}]] * 6, dtype=object)}, r": not a NumPy file of plain arrays"),
        ({"nodes": np.array(["a", "b"] * 3)}, r"\[nodes\]:3: duplicate node 'a'"),
        ({"nodes": np.zeros((6, 2))}, r"\[nodes\]: shape \[6, 2\]; expected a list"),
        ({"edges": np.zeros((2, 3), int)}, r"\[edges\]: shape \[2, 3\]; expected pairs"),
        ({"edges": np.zeros(4, int)}, r"\[edges\]: shape \[4\]; expected pairs"),
        ({"edges": np.array([[0, 1j]])}, r"\[edges\]: whole numbers expected, found complex128"),
        ({"edges": np.array([[0, 0.5]])}, r"\[edges\]: whole numbers expected, found float64"),
        ({"edges": np.array([[b"n0", b"n1"]])}, r"\[edges\]: whole numbers expected, found \|S2"),
        (
            {"edges": np.array([["n0", "n1"], ["n1", "n9"]])},
            r"\[edges\]: edge 1 mentions unknown node 'n9': it is not among the nodes$",
        ),
        ({"edges": np.array([[0, 1]] * 5 + [[0, 6]])}, r": edge 5 \[0, 6\] mentions an unknown"),
        ({"edges": np.array([[-1, 1]] * 6)}, r": edge 0 \[-1, 1\] mentions an unknown node"),
        ({"classes": np.zeros((6, 2))}, r"\[classes\]: shape \[6, 2\]"),
        ({"classes": np.array(5)}, r"\[classes\]: shape \[\]; expected a list"),
        ({"classes": np.zeros(4, int)}, r": classes has 4 rows; expected one for each of 6"),
        ({"classes": np.arange(6), "class_names": ["a"] * 5}, r"\[classes\]: unknown class 5 of"),
        (
            {"classes": np.full(6, -2), "class_names": ["a"]},
            r"\[classes\]: unknown class -2 of node 'n3'",
        ),
        ({"classes": np.full(6, 0.5), "class_names": ["a"]}, r"\[classes\]: whole numbers"),
        (
            {"classes": np.array([0, 1, 2, 0.5, 1, 2])},
            r"\[classes\]: whole numbers expected, found 0\.5 of node 'n0'",
        ),
        ({"classes": np.array([np.inf] * 6)}, r"\[classes\]: whole numbers expected, found inf"),
        ({"classes": np.full(6, 1e300)}, r"\[classes\]: whole numbers expected, found 1e\+300"),
        ({"classes": np.array(["0"] * 6), "class_names": ["a"]}, r"\[classes\]: whole numbers"),
        (
            {"classes": np.array([0] * 7 + [5]), "class_names": ["a"]},
            r": classes has 8 rows; expected one for each of 6",
        ),
        ({"readable_names": np.array(["Alien"])}, r"\[readable_names\]: 1 names for 6 labels"),
        ({"nodes": np.array(5)}, r"\[nodes\]: shape \[\]; expected a list"),
        (
            {"part": np.array([0, 0, 0, 2, 2, 2]), "edge_part": None},
            r": parts must be 0, 1, 2.*\[0, 2\]",
        ),
        ({"part": np.array([-1, 0, 0, 0, 0, 0])}, r": parts must be 0, 1, 2"),
        ({"part": np.array([0, 1])}, r": part has 2 rows; expected one for each of 6 nodes"),
        ({"part": np.array(["0"] * 6)}, r"\[part\]: whole numbers expected"),
        ({"part": np.full(6, np.nan)}, r"\[part\]: whole numbers expected"),
        ({"split": np.array([0])}, r": split has 1 rows"),
        ({"parts": np.zeros(6)}, r": unknown array: 'parts' \(part\?\); rename"),
        (
            {"splits": np.zeros(6), "train_mask": np.zeros(6), "x0": np.zeros(6)},
            r": unknown arrays: 'splits' \(split\?\), 'train_mask' .*, 'x0'; .* Known: edges,",
        ),
        ({"split": np.full(6, 3)}, r": node 'n3' has split 3"),
        ({"edge_part": np.array([0])}, r": edge_part has 1 rows for 6 edges"),
        ({"edge_part": np.zeros(6, int)}, r": edge 3 arrives with part 0, its nodes by part 1"),
        ({"edge_part": np.full(6, 3)}, r": parts must be 0, 1, 2.*\[0, 1, 3\]"),
    ],
)
def test_bad_npz(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = npz(tmp_path / "x.npz", **changes)
    with pytest.raises(DataError, match=rf"x\.npz{message}"):
        read_stream(path)


def test_empty_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", edges=np.empty((0, 2)), features=np.empty((0, 2)), classes=[])
    with pytest.raises(DataError, match=r"x\.npz: there are no nodes"):
        read_stream(tmp_path / "x.npz")


def test_damaged_npz(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", **arrays())
    content = (tmp_path / "x.npz").read_bytes()
    for cut in range(0, len(content), 97):
        put(tmp_path / "cut.npz", content[:cut])
        with pytest.raises(DataError, match=r"cut\.npz: not a NumPy file of plain arrays"):
            read_stream(tmp_path / "cut.npz")
    # A changed byte before the ZIP's directory is found or changes nothing that is read.
    whole = network_in_words(read_network(tmp_path / "x.npz"))
    refused = 0
    for at in range(0, content.index(b"PK\x01\x02"), 7):
        put(tmp_path / "y.npz", content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            found = network_in_words(read_network(tmp_path / "y.npz"))
        except DataError:
            refused += 1
        else:
            assert found == whole
    assert refused > 10


def test_one_array_is_no_npz(tmp_path: Path) -> None:
    put(tmp_path / "x.npz", saved(np.zeros((2, 2))))
    with pytest.raises(DataError, match=r"x\.npz: holds one array without a name"):
        read_stream(tmp_path / "x.npz")


def test_missing_npz(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.npz: no such"):
        read_stream(tmp_path / "x.npz")
