from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl import DataError, DataWarning, NetworkStream, UserError, read_stream
from dicgrl.graph import SPLITS
from dicgrl.readers import text
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


def saved(array: Any, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


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
        ({"parts": np.zeros(6)}, r": array that nothing is done with: 'parts' \(part\?\); rename"),
        (
            {"splits": np.zeros(6), "train_mask": np.zeros(6), "x0": np.zeros(6)},
            r": arrays .*: 'splits' \(split\?\), 'train_mask' \(split\?\), 'x0'; .* Known: edges,",
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
