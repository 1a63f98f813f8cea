"""Files of every kind with something wrong in them: read, or refused in one message.

Good files are damaged: bytes change, go and come, fields become what no one expects, and arrays
declare what they do not have.
"""

from __future__ import annotations

import io
import math
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dicgrl import KnowledgeStream, Stream, UserError, read_stream
from dicgrl.readers import read_timed
from dicgrl.readers.names_file import read_names_file
from dicgrl.readers.sources import SourceFile
from tests.readers.small_graph import PARTS, lines, pack
from tests.readers.small_network import arrays, authors, saved, tables

CASES = settings(max_examples=150)
LONGEST = 1_500  # of a message, which may list the layouts
MEMORY = 64 << 20  # far more than these files need; a block of text is 8 MiB

WORDS = ["", " ", "?", "a", "head", "relation", "node", "part", "train", '"', '""', "é", "x" * 99]
NUMBERS = ["0", "-1", "1e400", "nan", "inf", "9" * 30, "１", "²", "0x1"]
TIMES = ["NaT", "1979", "1979-05-25", "1979-99-99", "1979-05-25T20:00+99:99"]
SIGNS = ["\x00", "\x1b[2J", "\ufeff", "\u2028", "\t", "\n", "\n\n", ",", "\r"]
FIELDS = st.sampled_from([*WORDS, *NUMBERS, *TIMES, *SIGNS])
Damage = Callable[[bytes], bytes]


@st.composite
def damages(draw: st.DrawFn) -> Damage:
    """One to three places of a file and what becomes of them."""
    places = draw(st.lists(st.floats(0, 1), min_size=1, max_size=3))
    kinds = [draw(st.sampled_from(["change", "cut", "add", "end"])) for _ in places]
    news = [draw(st.binary(min_size=1, max_size=9) | FIELDS.map(str.encode)) for _ in places]

    def damage(content: bytes) -> bytes:
        for place, kind, new in zip(places, kinds, news, strict=True):
            at = int(place * len(content))
            if kind == "end":
                content = content[:at]
            else:
                gone = {"change": len(new), "cut": 1 + 4 * len(new), "add": 0}[kind]
                content = content[:at] + (b"" if kind == "cut" else new) + content[at + gone :]
        return content

    return damage


@contextmanager
def room() -> Iterator[Path]:
    """A folder; what is read in it takes little memory, and leaves it as it was."""
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is read although it may be wrong
        yield Path(name)


def check_message(text: str, name: str) -> None:
    assert name in text and len(text) < LONGEST and text.count("\n") < 20


def read(path: Path, reader: Callable[[Path], object] = read_stream) -> object | None:
    """What is read, or None where it is refused in a message that names the file."""
    before = sorted(path.parent.rglob("*"))
    tracemalloc.start()
    try:
        return reader(path)
    except UserError as error:
        check_message(str(error), path.name.split(".")[0])
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY
        assert sorted(path.parent.rglob("*")) == before


def usable(stream: object | None) -> None:
    """What is read can be walked through."""
    if isinstance(stream, Stream):
        assert len(stream) and all(part.index == i for i, part in enumerate(stream))
        if isinstance(stream, KnowledgeStream):
            for part in stream:
                rows = np.concatenate([part.train, part.valid, part.test])
                assert rows.size == 0 or rows.min() >= 0
                assert rows[:, [0, 2]].max(initial=-1) < part.num_entities


def table(rows: list[list[str]], ending: str) -> bytes:
    mark = "," if ending.startswith(".csv") else "\t"
    return "\n".join(mark.join(row) for row in rows).encode("utf-8", "surrogatepass")


ROWS = st.lists(st.lists(st.just("a") | FIELDS, min_size=2, max_size=5), max_size=5)
ENDINGS = st.sampled_from([".tsv", ".csv", ".txt"])


@CASES
@given(ROWS, ENDINGS)
def test_tables_of_odd_fields(rows: list[list[str]], ending: str) -> None:
    with room() as folder:
        path = folder / f"odd{ending}"
        path.write_bytes(table(rows, ending))
        usable(read(path))
        read(path, read_timed)
        read(path, lambda file: read_names_file(SourceFile.on_disk(file)))


@CASES
@given(damages(), ENDINGS, st.booleans())
def test_damaged_triples(damage: Damage, ending: str, timed: bool) -> None:
    triples = [triple for part in PARTS for triple in part["train"]]
    content = lines(triples, ending).encode()
    if timed:
        mark = b"," if ending == ".csv" else b"\t"
        content = b"\n".join(row + mark + b"2024-01-01T10:00Z" for row in content.split(b"\n"))
    with room() as folder:
        path = folder / f"odd{ending}"
        path.write_bytes(damage(content))
        usable(read(path, read_timed if timed else read_stream))


@cache
def packed(ending: str) -> bytes:
    with TemporaryDirectory() as name:
        folder = Path(name) / "odd"
        for number, part in enumerate(PARTS):
            (folder / f"{number}").mkdir(parents=True)
            (folder / f"{number}/train.txt").write_text(lines(part["train"], ".txt"))
        return pack(folder, ending).read_bytes()


@CASES
@given(damages(), st.sampled_from([".tar", ".tar.gz", ".tar.xz"]))
def test_damaged_archives(damage: Damage, ending: str) -> None:
    with room() as folder:
        path = folder / f"odd{ending}"
        path.write_bytes(damage(packed(ending)))
        usable(read(path))


@CASES
@given(damages(), st.booleans(), st.data())
def test_damaged_tables_of_a_network(damage: Damage, as_tables: bool, data: st.DataObject) -> None:
    with room() as folder:
        place = (tables if as_tables else authors)(folder / "odd")
        file = data.draw(st.sampled_from(sorted(p for p in place.rglob("*.*") if p.is_file())))
        file.write_bytes(damage(file.read_bytes()))
        usable(read(place))


@CASES
@given(st.data())
def test_fields_of_a_network_that_nobody_expects(data: st.DataObject) -> None:
    with room() as folder:
        place = tables(folder / "odd")
        rows = [row.split(",") for row in (place / "nodes.csv").read_text().split("\n")]
        for _ in range(data.draw(st.integers(1, 3))):
            row = data.draw(st.sampled_from(rows))
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(FIELDS)
        (place / "nodes.csv").write_bytes(table(rows, ".csv"))
        usable(read(place))


KINDS = ["<f8", "<i8", "<u8", "|b1", "<U3", "<U0", "|S3", "<f2", "<c16", "<M8[us]", "<m8[s]", "|O"]
SIZES = st.sampled_from([0, 1, 2, 6, 10**6, 10**18, -1])


@st.composite
def odd_arrays(draw: st.DrawFn) -> bytes:
    """An NPY file: whole but with values of no sense, or with a header that nothing follows."""
    kind = draw(st.sampled_from(KINDS))
    if draw(st.booleans()) and kind not in ("|O", "<U0", "<U3"):
        shape = draw(st.sampled_from([(6,), (6, 2), (6, 0), (0, 6), (), (1, 1, 1)]))
        size = math.prod(shape) * np.dtype(kind).itemsize
        values = draw(st.binary(min_size=size, max_size=size))
        return saved(np.frombuffer(values, kind).reshape(shape))
    shape = tuple(draw(st.lists(SIZES, max_size=3)))
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + draw(st.binary())


@CASES
@given(st.dictionaries(st.sampled_from([*arrays(), "readable_names", "odd"]), odd_arrays()))
def test_arrays_that_nobody_expects(changes: dict[str, bytes]) -> None:
    contents = {name: saved(array) for name, array in arrays().items()} | changes
    with room() as folder:
        path = folder / "odd.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in contents.items():
                archive.writestr(f"{name}.npy", content)
        usable(read(path))
        place = tables(folder / "odd", features=False)
        (place / "features.npy").write_bytes(contents["features"])
        usable(read(place))


@CASES
@given(damages(), st.booleans())
def test_damaged_arrays(damage: Damage, compressed: bool) -> None:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays())
    with room() as folder:
        path = folder / "odd.npz"
        path.write_bytes(damage(out.getvalue()))
        usable(read(path))
