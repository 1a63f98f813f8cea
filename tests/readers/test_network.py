"""Layouts of networks, and what is refused."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from dicgrl import DataError, DataWarning, read_stream
from dicgrl.graph import SPLITS
from dicgrl.readers import text
from tests.readers.small_network import (
    CLASSES,
    EDGES,
    LISTS,
    NODES,
    authors,
    check,
    npz,
    put,
    read_network,
    saved,
    tables,
)
from tests.streams import Node, network_in_words


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("blank", [" ", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [2, 1 << 20])
def test_authors_layout(
    tmp_path: Path,
    suffix: str,
    blank: str,
    end: str,
    block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text, "_BLOCK_BYTES", block)
    root = authors(tmp_path / "net", suffix, blank, end)
    check(read_network(root))
    with tarfile.open(tmp_path / "net.tar.gz", "w:gz") as archive:
        archive.add(root, "net")
    stream = read_network(tmp_path / "net.tar.gz")
    check(stream)
    assert stream.name == "net"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(tmp_path: Path, end: str) -> None:
    root = tables(tmp_path, end)
    stream = read_network(root)
    # Without its own part an edge arrives with its later node; n1-n2 is known from the start.
    found = network_in_words(stream)
    assert found.nodes == LISTS.nodes
    assert found.edges == [[*LISTS.edges[0], ("n1", "n2")], LISTS.edges[1][:2]]
    assert list(stream.classes) == CLASSES
    (root / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in EDGES))  # no header
    assert network_in_words(read_network(root)) == found


def test_csv_with_features_in_an_array(tmp_path: Path) -> None:
    rows = ["Node,Class", *(f"{node.label},{node.cls}" for node in NODES)]
    put(tmp_path / "nodes.csv.gz", "\n".join(rows))
    put(tmp_path / "edges.csv", "n0,n1\n")
    np.save(tmp_path / "features.npy", np.array([n.features for n in NODES]))
    put(tmp_path / "labels.tsv", "n0\tAlien\n")
    stream = read_network(tmp_path)
    assert stream.num_features == 2 and len(stream) == 1
    assert stream[0].features.tolist() == [list(n.features) for n in NODES]
    assert stream.names == {"n0": "Alien"}


def test_csv_spaces_around_fields_do_not_count(tmp_path: Path) -> None:
    put(tmp_path / "nodes.csv", 'node , class, split, w\na, x , train, 1 \n "b, c",x,,2\n')
    put(tmp_path / "edges.csv", 'source, target\na , "b, c"\n')
    found = network_in_words(read_network(tmp_path))
    assert found.nodes == [[Node("a", "x", 0, (1.0,)), Node("b, c", "x", -1, (2.0,))]]
    assert found.edges == [[("a", "b, c")]]


def test_csv_needs_only_nodes(tmp_path: Path) -> None:
    put(tmp_path / "nodes.csv", 'node,x\n"a, b",1\nc,2\n')
    put(tmp_path / "edges.csv", '"a, b",c\n')
    stream = read_network(tmp_path)
    assert list(stream.nodes) == ["a, b", "c"]
    assert stream[0].labels.tolist() == [-1, -1]
    assert len(stream[0].train) == 0


def test_shares_where_no_split_is_given(tmp_path: Path) -> None:
    count = 40
    content = {
        "edges": np.array([[0, 1]]),
        "features": np.zeros((count, 1)),
        "classes": np.array([0, 1] * 20),
        "part": np.repeat([0, 1], 20),
    }
    np.savez(tmp_path / "x.npz", **content)
    stream = read_network(tmp_path / "x.npz", valid=0.2, test=0.3, seed=1)
    for part in stream:
        sets = [getattr(part, split).tolist() for split in SPLITS]
        assert [len(chosen) for chosen in sets] == [10, 4, 6]
        assert sorted(node for chosen in sets for node in chosen) == list(part.new_nodes)
    again = read_network(tmp_path / "x.npz", valid=0.2, test=0.3, seed=1)
    other = read_network(tmp_path / "x.npz", valid=0.2, test=0.3, seed=2)
    assert network_in_words(stream) == network_in_words(again) != network_in_words(other)


@pytest.mark.filterwarnings("error::dicgrl.DataWarning")
def test_a_part_gives_up_what_it_does_not_bring(tmp_path: Path) -> None:
    split = np.zeros(100, dtype=int)
    split[[3, 25, 45, 65]] = [1, 2, -1, 1]  # parts 0 and 3 bring valid, 1 test, 2 and 4 neither
    split[80:] = -1
    content = {
        "edges": np.array([[0, 1]]),
        "features": np.zeros((100, 1)),
        "classes": np.array([0, 1] * 50),
        "part": np.repeat(np.arange(5), 20),
        "split": split,
    }
    np.savez(tmp_path / "x.npz", **content)
    stream = read_network(tmp_path / "x.npz", valid=0.2, test=0.3, seed=1)
    sets = [[getattr(part, name).tolist() for name in SPLITS] for part in stream]
    assert [[len(chosen) for chosen in part] for part in sets] == [
        [13, 1, 6],
        [15, 4, 1],
        [9, 4, 6],
        [13, 1, 6],
        [0, 0, 0],
    ]
    assert sets[0][1] == [3] and sets[1][2] == [25] and sets[3][1] == [65]
    given = np.flatnonzero(split >= 0).tolist()
    assert sorted(node for part in sets for chosen in part for node in chosen) == given


def test_a_share_that_nothing_is_done_with(tmp_path: Path) -> None:
    authors(tmp_path / "authors")
    tables(tmp_path / "tables")
    npz(tmp_path / "x.npz")
    for path in (tmp_path / "authors", tmp_path / "tables", tmp_path / "x.npz"):
        with pytest.warns(DataWarning, match=r"test=0\.2 sets nothing aside") as caught:
            stream = read_network(path, test=0.2)
        assert len(caught) == 1
        assert network_in_words(stream).nodes == LISTS.nodes


def test_order_of_classes(tmp_path: Path) -> None:
    numbers = ["0", "00", "1", "01", "2", "\u0663", "4", "10", "9" * 5_000, "1" + "0" * 5_000]
    expected = ["0", "00", "01", "1", *numbers[4:], "-1", "a", "b10", "b9"]
    random = np.random.default_rng(0)
    rows = [f"n{i},{expected[j]},1" for i, j in enumerate(random.permutation(len(expected)))]
    put(tmp_path / "nodes.csv", "\n".join(["node,class,w", *rows]))
    put(tmp_path / "edges.csv", "n0,n1\n")
    assert list(read_network(tmp_path).classes) == expected


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("features.txt", "n3 1 2\nn1 1\n", r":2: node 'n1' has 1 features; expected 2"),
        ("features.txt", "n3 1 2\nn1 1 red\n", r":2: a feature is not a number .*'red'"),
        ("features.txt", "n3 1 2\nn1 nan 2\n", r":2: feature 'nan' is not a finite number"),
        ("features.txt", "n3 1\nn1 2\nn3 3\n", r":3: duplicate node 'n3', first in line 1"),
        ("features.txt", "", r": the file is empty"),
        ("features.txt", b"n3 1\n\xe9 1\n", r":2: not UTF-8 text: byte 0xe9"),
        ("labels.txt", "n3 10\nn3 10\n", r":2: duplicate node 'n3'"),
        ("labels.txt", "n3 10\nn9 10\n", r":2: unknown node 'n9': it has no features"),
        ("labels.txt", "n3 10 x\n", r":1: expected 2 fields separated by blanks, found 3"),
        ("0/train.txt", "n3 10\nn9 10\n", r":2: unknown node 'n9': it has no features"),
        ("0/train.txt", "n3 comedy\n", r":1: unknown class 'comedy' of node 'n3'; .* 9, 10, drama"),
        ("0/train.txt", "n3 9\n", r":1: node 'n3' has class '9' here and '10' in labels.txt"),
        ("0/valid.txt", "n1 9\nn3 10\n", r":2: duplicate node 'n3'"),
        ("1/test.txt", "n4 9\nn1 9\n", r":2: duplicate node 'n1'"),
        ("1/test.txt", "", r": the file is empty"),
        ("0/edgelist.txt", "n1 n3\nn1 n0\n", r":2: unknown node 'n0': it is in no train.*0 to 0"),
        ("0/edgelist.txt", "n1 n9\n", r":1: unknown node 'n9'"),
        ("1/edgelist.txt", "n1\n", r":1: expected 2 fields separated by blanks, found 1: 'n1'"),
    ],
)
def test_bad_authors_layout(tmp_path: Path, file: str, content: str | bytes, message: str) -> None:
    authors(tmp_path)
    put(tmp_path / file, content)
    with pytest.raises(DataError, match=file.replace(".", r"\.") + message):
        read_stream(tmp_path)


def test_missing_pieces_of_the_authors_layout(tmp_path: Path) -> None:
    root = authors(tmp_path)
    (root / "1" / "valid.txt").unlink()
    with pytest.raises(DataError, match=r"/1: valid\.txt \(or valid\.txt\.gz\) is missing"):
        read_stream(root)
    put(root / "1" / "valid.txt", "n4 9\n")
    put(root / "1" / "test.txt", "n0 drama\n")
    put(root / "1" / "train.txt", "n1 9\n")
    with pytest.raises(DataError, match=r"1/train\.txt:1: duplicate node 'n1'"):
        read_stream(root)
    put(root / "1" / "train.txt", "n0 drama\n")
    put(root / "1" / "test.txt", "n5 10\n")
    put(root / "features.txt", (root / "features.txt").read_text() + "n7 0 0\n")
    with pytest.raises(DataError, match=r"node 'n7' of features\.txt arrives in no part"):
        read_stream(root)
    (root / "1").rename(root / "2")
    with pytest.raises(DataError, match=r"sub-folder 1 is missing; found 0, 2"):
        read_stream(root)


HEAD = "node,class,part,split,w\n"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("nodes.csv", "", r": the file is empty"),
        ("nodes.csv", HEAD, r": there are no nodes"),
        ("nodes.csv", "name,class\na,x\n", r":1: expected a header with a column 'node'"),
        ("nodes.csv", ",node,w\n0,a,1\n", r":1: column 1 of 3 has no name;.*index=False"),
        ("nodes.csv", "node, ,w\na,1,1\n", r":1: column 2 of 3 has no name"),
        ("nodes.csv", "Unnamed: 0,node\n0,a\n", r":1: column 1 of 2 has no name"),
        ("nodes.csv", "node,w,w\na,1,1\n", r":1: expected a header .* each once"),
        ("nodes.csv", HEAD + "a,x,0,,1\na,x,0,,1\n", r":3: duplicate node 'a', first in line 2"),
        ("nodes.csv", HEAD + "a,x,0,,1\n,x,0,,1\n", r":3: the node has no label"),
        ("nodes.csv", HEAD + "a,x,0,,1\nb,x,0\n", r":3: expected 5 fields .* found 3: 'b,x,0'"),
        ("nodes.csv", HEAD + "a,x,first,,1\n", r":2: part is 'first'; expected 0, 1, 2"),
        ("nodes.csv", HEAD + "a,x,-1,,1\n", r":2: part is '-1'"),
        ("nodes.csv", HEAD + f"a,x,{10**30},,1\n", r":2: part is '10+'; too large"),
        ("nodes.csv", HEAD + "a,x,0,,1\nb,x,2,,1\n", r": parts must be 0, 1, 2.*found \[0, 2\]"),
        ("nodes.csv", HEAD + "a,x,0,dev,1\n", r":2: split is 'dev'; expected train, valid"),
        ("nodes.csv", HEAD + "a,,0,train,1\n", r": node 'a' has split 0 and class ''"),
        ("nodes.csv", HEAD + "a,x,0,,1\nb,x,0,,tall\n", r":3: w is 'tall'; expected a number"),
        ("nodes.csv", HEAD + "a,x,0,,\n", r":2: w is ''; expected a number"),
        ("nodes.csv", HEAD + "a,x,0,,nan\n", r":2: w is 'nan'; not finite"),
        ("nodes.csv", b"node,w\na,1\n\xe9,1\n", r":3: not UTF-8 text: byte 0xe9"),
        ("edges.csv", "source,target\nn0,n1\nn0,n9\n", r":3: unknown node 'n9': nodes.csv"),
        ("edges.csv", ",source,target\n0,n0,n1\n", r":1: expected 2 fields .*index=False"),
        ("edges.csv", "n0,n1,n2\n", r":1: expected 2 fields separated by comma, found 3"),
        ("edges.csv", "n0,\n", r":1: field 2 of 2 is empty"),
        ("edges.csv", "", r": the file is empty"),
    ],
)
def test_bad_csv(tmp_path: Path, file: str, content: str | bytes, message: str) -> None:
    tables(tmp_path)
    put(tmp_path / file, content)
    if file == "nodes.csv":
        put(tmp_path / "edges.csv", "source,target\n")
    with pytest.raises(DataError, match=file.replace(".", r"\.") + message):
        read_stream(tmp_path)


def test_csv_without_edges_file(tmp_path: Path) -> None:
    tables(tmp_path)
    (tmp_path / "edges.csv").unlink()
    with pytest.raises(DataError, match=r"edges\.csv \(or edges\.csv\.gz\) is missing"):
        read_stream(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (saved(np.array([{}], dtype=object), allow_pickle=True), "not a NumPy file of plain"),
        (b"garbage", "not a NumPy file of plain arrays"),
        (b"", "not a NumPy file of plain arrays"),
        (saved(np.zeros((6, 2)))[:-8], "not a NumPy file of plain arrays"),
        (saved(np.zeros(6)), r"shape \[6\]; expected features \[n, F\]"),
        (saved(np.full((6, 2), "x")), "features must be numbers, not <U1"),
        (saved(np.full((6, 2), 1j)), "features must be numbers, not complex128"),
    ],
)
def test_bad_array_of_features(tmp_path: Path, content: bytes, message: str) -> None:
    put(tables(tmp_path, features=False) / "features.npy", content)
    with pytest.raises(DataError, match=rf"features\.npy: {message}"):
        read_stream(tmp_path)


def test_features_stand_in_one_place(tmp_path: Path) -> None:
    put(tables(tmp_path) / "features.npy", saved(np.zeros((6, 2))))
    with pytest.raises(
        DataError, match=r"nodes\.csv:1: .*'width', 'height'\) and in features\.npy"
    ):
        read_stream(tmp_path)


def test_array_of_features_that_does_not_fit(tmp_path: Path) -> None:
    put(tables(tmp_path, features=False) / "features.npy", saved(np.zeros((5, 2))))
    with pytest.raises(DataError, match="features has 5 rows; expected one for each of 6 nodes"):
        read_stream(tmp_path)
