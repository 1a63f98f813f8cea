from __future__ import annotations

import gzip
import re
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dicgrl import DataError, DataWarning, KnowledgeStream, UserError, read_stream
from dicgrl.graph import SPLITS
from dicgrl.readers import read_timed, text
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.triples import triple_rows
from tests.streams import KnowledgeLists, labelled

PARTS: KnowledgeLists = [
    {
        "train": [("Alien", "genre", "horror"), ("Brazil", "genre", "satire, dark")],
        "valid": [("Alien", "year", "1979")],
        "test": [("Brazil", "year", "1985"), ("Brazil", "cast", 'De Niro "Bob"')],
    },
    {
        "train": [("Aliens", "sequel of", "Alien"), ("Zoë", "cast", "Aliens")],
        "valid": [("Aliens", "genre", "horror")],
        "test": [("Aliens", "year", "1986")],
    },
]
ONLY_TRAIN: KnowledgeLists = [{"train": p["train"], "valid": [], "test": []} for p in PARTS]
HEADERS = ["head{0}relation{0}tail", "Subject{0}Predicate{0}Object", "h{0}r{0}t"]


def lines(triples: list[tuple[str, str, str]], ending: str, header: str = "") -> str:
    if ending == ".csv":
        rows = [",".join('"' + f.replace('"', '""') + '"' for f in t) for t in triples]
    else:
        rows = ["\t".join(triple) for triple in triples]
    if header:
        rows.insert(0, header.format("," if ending == ".csv" else "\t"))
    return "\n".join(rows)


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def read_knowledge(path: Path | list[Path], **options: float) -> KnowledgeStream:
    stream = read_stream(path, **options)
    assert isinstance(stream, KnowledgeStream)
    return stream


def pack(folder: Path, ending: str) -> Path:
    path = folder.with_name(folder.name + ending)
    with tarfile.open(path, {".tar": "w", ".tar.xz": "w:xz"}.get(ending, "w:gz")) as archive:
        archive.add(folder, folder.name)
    return path


DECORATIONS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda s: s.encode(),
    "last line ended": lambda s: (s + "\n").encode(),
    "blank lines at the end": lambda s: (s + "\n\n\n").encode(),
    "CRLF": lambda s: (s + "\n").replace("\n", "\r\n").encode(),
    "byte order mark": lambda s: s.encode("utf-8-sig"),
}


@pytest.mark.parametrize("decorate", DECORATIONS.values(), ids=DECORATIONS.keys())
@pytest.mark.parametrize("header", ["", *HEADERS])
@pytest.mark.parametrize("ending", [".txt", ".tsv", ".csv", ".txt.gz", ".csv.gz"])
@pytest.mark.parametrize("archive", ["", ".tar.gz", ".tar"])
def test_numbered_folders(
    tmp_path: Path, decorate: Callable[[str], bytes], header: str, ending: str, archive: str
) -> None:
    root = tmp_path / "facts"
    for i, part in enumerate(PARTS):
        for split in SPLITS:
            content = lines(part[split], ending.removesuffix(".gz"), header)
            put(root / str(i) / f"{split}{ending}", decorate(content))
    stream = read_knowledge(pack(root, archive) if archive else root)
    assert labelled(stream) == PARTS
    assert stream.name == "facts"
    # Without id files an entity arrives when it is first mentioned.
    assert [part.num_entities for part in stream] == [7, 10]
    assert stream.entities.labels(stream[1].new_entities) == ["Aliens", "Zoë", "1986"]


@pytest.mark.parametrize("ending", [".txt", ".tsv", ".csv", ".tsv.gz", ".csv.gz"])
@pytest.mark.parametrize("archive", ["", ".tgz", ".tar.xz"])
def test_numbered_files(tmp_path: Path, ending: str, archive: str) -> None:
    root = tmp_path / "facts"
    put(root / "README.md", "not data")
    for i, part in enumerate(PARTS):
        put(root / f"{i}{ending}", lines(part["train"], ending.removesuffix(".gz"), HEADERS[0]))
    assert labelled(read_knowledge(pack(root, archive) if archive else root)) == ONLY_TRAIN


@pytest.mark.parametrize("ending", [".txt", ".tsv", ".csv", ".txt.gz", ".CSV.gz"])
@pytest.mark.parametrize("archive", ["", ".tar.gz"])
@pytest.mark.filterwarnings("error::dicgrl.DataWarning")
def test_a_folder_of_train_valid_test_is_one_part(
    tmp_path: Path, ending: str, archive: str
) -> None:
    root = tmp_path / "WN18"
    for split in SPLITS:
        put(root / (split + ending), lines(PARTS[0][split], ending.lower().removesuffix(".gz")))
    put(root / "labels.tsv", "Alien\tthe film\n")
    put(root / "README.txt", "about")
    stream = read_knowledge(pack(root, archive) if archive else root)
    assert labelled(stream) == PARTS[:1]
    assert stream.name == "WN18" and stream.names == {"Alien": "the film"}


def test_a_folder_of_one_part_may_have_ids(tmp_path: Path) -> None:
    root = authors(tmp_path)
    stream = read_knowledge(root / "0")
    assert labelled(stream) == ONLY_TRAIN[:1]
    assert stream[0].num_entities == 5


@pytest.mark.parametrize("names", [("0.tsv", "1.TSV"), ("0.Csv.GZ", "1.txt"), ("0/TRAIN.Txt",)])
@pytest.mark.parametrize("archive", ["", ".tar.gz"])
def test_capitals_of_a_name_do_not_count(
    tmp_path: Path, names: tuple[str, ...], archive: str
) -> None:
    for name, part in zip(names, PARTS, strict=False):
        content = lines(part["train"], ".csv" if "csv" in name.lower() else ".tsv").encode()
        put(tmp_path / "d" / name, gzip.compress(content) if name.endswith("GZ") else content)
    stream = read_knowledge(pack(tmp_path / "d", archive) if archive else tmp_path / "d")
    assert labelled(stream) == ONLY_TRAIN[: len(names)]


class TestStrays:
    """What lies among the data and is not read."""

    def read(self, root: Path, *names: str) -> KnowledgeStream:
        for name in names:
            put(root / name, "a,r,b" if ".csv" in name else "a\tr\tb")
        return read_knowledge(root)

    @pytest.mark.parametrize("names", [("0/train.txt", "1.tsv"), ("0.tsv", "1/train.txt")])
    def test_folders_and_files(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        with pytest.raises(DataError, match="parts are all folders, or all files"):
            self.read(tmp_path, *names)

    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt"])
    @pytest.mark.parametrize(
        "stray",
        [
            "1 (1).tsv",
            "2024-01-02.csv",
            "part2.txt.gz",
            "1.tsv.bz2",
            "1 copy/train.txt",
            "d3/TRAIN.csv",
        ],
    )
    def test_what_is_called_like_a_part(self, tmp_path: Path, first: str, stray: str) -> None:
        said = re.escape(f"'{stray.split('/')[0]}' looks like a part, and is not read")
        with pytest.raises(DataError, match=f"^{tmp_path}: {said}"):
            self.read(tmp_path, first, stray)

    @pytest.mark.parametrize(
        ("stray", "name"),
        [
            ("dev.txt", "valid.txt"),
            ("vaild.tsv.gz", "valid.tsv.gz"),
            ("Validation.csv", "valid.csv"),
            ("val.txt", "valid.txt"),
            ("tests.txt", "test.txt"),
            ("testing.txt", "test.txt"),
        ],
    )
    def test_what_is_called_almost_like_a_set(self, tmp_path: Path, stray: str, name: str) -> None:
        for first in ("many/0", "one"):
            folder = tmp_path / first
            put(folder / "train.txt", "a\tr\tb")
            put(folder / stray, "a\tr\tb")
            said = rf"^{folder}: '{stray}' is not read; call it {name}, or move it away$"
            with pytest.raises(DataError, match=said):
                read_stream(tmp_path / first.split("/")[0])

    def test_training_without_train(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"'training\.txt' is not read; call it train\.txt"):
            self.read(tmp_path, "0/training.txt")

    def test_others_are_named_in_one_warning(self, tmp_path: Path) -> None:
        parts = [f"{i}/{split}.txt" for i in range(2) for split in SPLITS]
        strays = ["notes.txt", "0/dev.txt", "0/text_emnlp.txt", "1/labels.tsv", "1/train_small.csv"]
        with pytest.warns(DataWarning) as caught:
            stream = self.read(tmp_path, *parts, *strays)
        assert [str(w.message) for w in caught] == [f"{tmp_path}: not read: {', '.join(strays)}"]
        assert labelled(stream)[0]["valid"] == [("a", "r", "b")]
        with pytest.warns(
            DataWarning, match=r"not read: a\.txt, b\.txt, notes\.txt, 0/dev\.txt, .*, \.\.\.$"
        ):
            self.read(tmp_path, "a.txt", "b.txt")

    @pytest.mark.parametrize("name", ["sha256.txt", "WN18.txt", "stats_v2.csv", "3rdparty.txt"])
    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt"])
    def test_a_number_makes_no_part(self, tmp_path: Path, first: str, name: str) -> None:
        with pytest.warns(DataWarning, match=f"not read: {re.escape(name)}$"):
            assert len(self.read(tmp_path, first, name)) == 1

    @pytest.mark.parametrize("name", ["invalid.txt", "text.txt", "latest.txt", "rest.txt"])
    def test_other_words_are_no_sets(self, tmp_path: Path, name: str) -> None:
        with pytest.warns(DataWarning, match=f"not read: 0/{re.escape(name)}$"):
            self.read(tmp_path, "0/train.txt", f"0/{name}")

    def test_beside_files(self, tmp_path: Path) -> None:
        with pytest.warns(DataWarning, match=r": not read: notes\.tsv, train\.txt$"):
            self.read(tmp_path, "0.tsv", "notes.tsv", "train.txt")

    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt", "train.txt"])
    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_what_is_for_people_or_other_programs(self, tmp_path: Path, first: str) -> None:
        harmless = ["README.txt", "Readme.md", "LICENSE.txt", "licence.txt", ".1.tsv", "1.png"]
        harmless += ["CITATION.txt", "train2id.txt", "stats.json", ".git/1.tsv", "old/1.tsv"]
        place = Path(first).parent
        put(tmp_path / "labels.tsv", "a\tAlien")
        files = [first, *harmless, *(str(place / name) for name in harmless)]
        assert self.read(tmp_path, *files).names == {"a": "Alien"}

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_the_same_file_compressed(self, tmp_path: Path) -> None:
        assert len(self.read(tmp_path, "0/train.txt", "0/train.txt.gz")) == 1


def test_numbers_count_as_numbers(tmp_path: Path) -> None:
    for i in range(12):
        put(tmp_path / f"{i}.tsv", f"a\tr\t{i}")
    stream = read_knowledge(tmp_path)
    assert [part["train"][0][2] for part in labelled(stream)] == [str(i) for i in range(12)]


def test_list_of_files_in_the_order_given(tmp_path: Path) -> None:
    names = ["may.tsv", "april.csv.gz"]
    for name, part in zip(names, PARTS, strict=True):
        put(tmp_path / "d" / name, lines(part["train"], ".csv" if "csv" in name else ".tsv"))
    stream = read_knowledge([tmp_path / "d" / name for name in names])
    assert labelled(stream) == ONLY_TRAIN
    assert stream.name == "d"
    as_text = read_stream([str(tmp_path / "d" / name) for name in names], name="mine")
    assert isinstance(as_text, KnowledgeStream)
    assert labelled(as_text) == ONLY_TRAIN and as_text.name == "mine"


@pytest.mark.parametrize("name", ["facts.tsv", "facts.csv", "facts.txt", "facts.tsv.gz"])
def test_one_file_is_one_part(tmp_path: Path, name: str) -> None:
    put(tmp_path / name, lines(PARTS[0]["train"], ".csv" if "csv" in name else ".tsv"))
    stream = read_knowledge(tmp_path / name)
    assert labelled(stream) == ONLY_TRAIN[:1]
    assert stream.name == "facts"


def authors(root: Path) -> Path:
    """The authors' layout, with entities that no triple of their part mentions."""
    listed = [["x", "Alien", "horror", "Brazil", "satire, dark"], ["Aliens", "y", "Zoë"]]
    known: list[str] = []
    relations = ["sequel of", "genre", "cast"]
    for i, (part, new) in enumerate(zip(PARTS, listed, strict=True)):
        known += new
        put(root / str(i) / "entity2id.txt", "".join(f"{e}\t{n}\n" for n, e in enumerate(known)))
        put(
            root / str(i) / "relation2id.txt",
            "".join(f"{r}\t{n}\n" for n, r in enumerate(relations)),
        )
        put(root / str(i) / "train.txt", lines(part["train"], ".txt"))
    return root


def test_authors_layout_lists_what_is_known(tmp_path: Path) -> None:
    stream = read_knowledge(authors(tmp_path))
    assert labelled(stream) == ONLY_TRAIN
    assert list(stream.entities) == [
        *("x", "Alien", "horror", "Brazil", "satire, dark"),
        *("Aliens", "y", "Zoë"),
    ]
    assert [part.num_entities for part in stream] == [5, 8]
    assert list(stream.relations) == ["sequel of", "genre", "cast"]
    assert [part.num_relations for part in stream] == [3, 3]


def test_what_id_files_list_is_no_header(tmp_path: Path) -> None:
    put(tmp_path / "0" / "entity2id.txt", "h\t0\nt\t1\n")
    put(tmp_path / "0" / "relation2id.txt", "r\t0\n")
    put(tmp_path / "0" / "train.txt", "h\tr\tt\nt\tr\th\n")
    assert labelled(read_knowledge(tmp_path))[0]["train"] == [("h", "r", "t"), ("t", "r", "h")]


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("head,tail,relation", (0, 2, 1)),
        ("source,target,type", (0, 2, 1)),
        ("tail,relation,head", (2, 1, 0)),
        ("subject,relation,object", (0, 1, 2)),
        ("from,type,to", (0, 1, 2)),
        ("S,P,O", (0, 1, 2)),
        ("Head_ID,relation_id,tail_id", (0, 1, 2)),
        ("property_uri,dst_name,src_label", (1, 2, 0)),
    ],
)
@pytest.mark.parametrize("ending", [".tsv", ".csv"])
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_a_header_names_the_columns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    header: str,
    order: tuple[int, int, int],
    ending: str,
    block: int,
) -> None:
    monkeypatch.setattr(text, "_BLOCK_BYTES", block)
    monkeypatch.setattr(text, "_CSV_ROWS", block)
    triples = PARTS[0]["train"]
    moved = [(t[order[0]], t[order[1]], t[order[2]]) for t in triples]
    put(tmp_path / f"x{ending}", lines(moved, ending, header.replace(",", "{0}")))
    assert labelled(read_knowledge(tmp_path / f"x{ending}"))[0]["train"] == triples


FIRST = ["head,tail,tail", "head,tail,year", "h,relations,tail", "entity1,Relation,entity2"]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_first_line_that_names_not_all_columns_is_a_fact(
    tmp_path: Path, first: str, ending: str
) -> None:
    rows = f"{first}\na,r,b\n".replace(",", "," if ending == ".csv" else "\t")
    put(tmp_path / f"x{ending}", rows)
    said = rf"x{ending}:1: '{first.replace(',', ' ')}' is taken for a fact; if it is a header"
    with pytest.warns(DataWarning, match=said):
        facts = labelled(read_knowledge(tmp_path / f"x{ending}"))[0]["train"]
    assert facts == [tuple(first.split(",")), ("a", "r", "b")]


@pytest.mark.filterwarnings("error::dicgrl.DataWarning")
def test_only_what_is_learned_may_be_a_header(tmp_path: Path) -> None:
    put(tmp_path / "x.tsv", "?\ttype\tfilm\nAlien\tgenre\t?\n")
    rows = [rows.columns for rows in triple_rows(SourceFile.on_disk(tmp_path / "x.tsv"))]
    assert rows == [[["?", "Alien"], ["type", "genre"], ["film", "?"]]]


@pytest.mark.parametrize(
    "content",
    [
        "Alien\ttype\tfilm\nBrazil\ttype\tfilm\n",  # a relation, for it comes again
        "h\tlikes\tt\nb\tlikes\tc\n",
        "Alien\ttype\tfilm\n",
        "head\trelation\ttail\nAlien\ttype\tfilm\nBrazil\tyear\t1985\n",
    ],
)
@pytest.mark.filterwarnings("error::dicgrl.DataWarning")
def test_facts_that_look_like_none_of_a_header(tmp_path: Path, content: str) -> None:
    put(tmp_path / "x.tsv", content)
    facts = labelled(read_knowledge(tmp_path / "x.tsv"))[0]["train"]
    rows = [tuple(line.split("\t")) for line in content.splitlines()]
    assert facts == [row for row in rows if row[0] != "head"]


@pytest.mark.parametrize("ending", [".tsv", ".csv"])
def test_spaces_around_labels_do_not_count(tmp_path: Path, ending: str) -> None:
    comma = "," if ending == ".csv" else "\t"
    for i, blank in enumerate((" ", "")):
        rows = ["head relation tail", "Alien genre horror", "Aliens sequel_of Alien"]
        put(tmp_path / f"{i}{ending}", "\n".join(r.replace(" ", comma + blank) for r in rows))
    put(tmp_path / "labels.tsv", "Alien \t the film\n")
    stream = read_knowledge(tmp_path)
    assert list(stream.relations) == ["genre", "sequel_of"]
    assert set(stream.entities) == {"Alien", "horror", "Aliens"}
    assert stream.names == {"Alien": "the film"}


def test_spaces_count_where_id_files_list_the_labels(tmp_path: Path) -> None:
    put(tmp_path / "0" / "entity2id.txt", "a\t0\na \t1\n")
    put(tmp_path / "0" / "train.txt", "a\tr\ta \n")
    assert list(read_knowledge(tmp_path).entities) == ["a", "a "]


@pytest.mark.parametrize("packed", ["labels.tsv", "labels.tsv.gz"])
@pytest.mark.parametrize("layout", ["0/train.txt", "0.tsv"])
def test_readable_names_beside_the_data(tmp_path: Path, packed: str, layout: str) -> None:
    put(tmp_path / layout, "/m/1\tr\t/m/2\n")
    put(tmp_path / packed, "/m/1\tAlien\n/m/1\tsecond\n/m/9\tunused\n")
    assert read_stream(tmp_path).names == {"/m/1": "Alien", "/m/9": "unused"}


class TestNamesBesideAFile:
    @pytest.fixture(autouse=True)
    def _facts(self, tmp_path: Path) -> None:
        put(tmp_path / "facts.tsv", "/m/1\tr\t/m/2\n")
        put(tmp_path / "more.csv", "/m/1,r,/m/3\n")

    @pytest.mark.parametrize("packed", ["labels.tsv", "labels.tsv.gz"])
    def test_they_are_read(
        self, tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(tmp_path / packed, "/m/1\tAlien\n/m/9\tunused\n")
        names = {"/m/1": "Alien", "/m/9": "unused"}
        assert read_stream(tmp_path / "facts.tsv").names == names
        assert read_stream([tmp_path / "facts.tsv", tmp_path / "more.csv"]).names == names
        put(tmp_path / "timed.tsv", "/m/1\tr\t/m/2\t1979\n")
        assert read_timed(tmp_path / "timed.tsv")[0].names == names
        monkeypatch.chdir(tmp_path)
        assert read_stream("facts.tsv").names == names

    def test_those_that_are_given_count_before(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "not\tnames\tat all\n")
        put(tmp_path / "chosen.tsv", "/m/2\tBrazil\n")
        for path in (tmp_path / "facts.tsv", [tmp_path / "facts.tsv"]):
            stream = read_stream(path, labels=str(tmp_path / "chosen.tsv"))
            assert stream.names == {"/m/2": "Brazil"}
        with pytest.raises(UserError, match=r"no\.tsv: no such file of readable names"):
            read_stream(tmp_path / "facts.tsv", labels=tmp_path / "no.tsv")

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_those_of_something_else_are_not(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "cat\tKatze\n")
        assert read_stream(tmp_path / "facts.tsv").names == {}
        put(tmp_path / "elsewhere" / "0.tsv", "/m/1\tr\t/m/2\n")
        put(tmp_path / "labels.tsv", "/m/1\tAlien\n")
        assert read_stream([tmp_path / "facts.tsv", tmp_path / "elsewhere" / "0.tsv"]).names == {}

    def test_a_file_of_something_else_is_no_reason_to_refuse(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "cat\t0\t1\n")
        said = r"facts\.tsv: read without the readable names beside it: .*labels\.tsv:1: expected 2"
        with pytest.warns(DataWarning, match=said):
            assert read_stream(tmp_path / "facts.tsv").names == {}

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_facts_that_are_called_so(self, tmp_path: Path) -> None:
        put(tmp_path / "labels.tsv", "a\tr\tb\n")
        assert labelled(read_knowledge(tmp_path / "labels.tsv"))[0]["train"] == [("a", "r", "b")]


@pytest.mark.parametrize("size", [1, 5, 64])
def test_the_size_of_a_block_does_not_show(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    triples = [(f"e{i % 17}", f"r{i % 3}", f"e{i % 11}") for i in range(100)]
    for ending in (".tsv", ".csv"):
        put(tmp_path / f"x{ending}", lines(triples, ending, HEADERS[0]) + "\n")
        whole = read_knowledge(tmp_path / f"x{ending}")
        with monkeypatch.context() as patch:
            patch.setattr(text, "_BLOCK_BYTES", size)
            patch.setattr(text, "_CSV_ROWS", size)
            blocks = read_knowledge(tmp_path / f"x{ending}")
        # Only the order in which labels are met differs: heads of a block come before its tails.
        assert set(whole.entities) == set(blocks.entities)
        assert labelled(whole) == labelled(blocks) == [{"train": triples, "valid": [], "test": []}]


class TestHeldOut:
    triples: ClassVar = [(f"a{i}", "r", f"b{j}") for i in range(10) for j in range(10)]

    def sizes(self, stream: KnowledgeStream) -> list[list[int]]:
        return [[len(getattr(part, split)) for split in SPLITS] for part in stream]

    def test_shares_of_a_part_without_valid_and_test(self, tmp_path: Path) -> None:
        put(tmp_path / "files" / "0.tsv", lines(self.triples, ".tsv"))
        put(tmp_path / "folders" / "0" / "train.txt", lines(self.triples, ".txt"))
        for name in ("files", "folders"):
            first = read_knowledge(tmp_path / name, valid=0.1, test=0.2, seed=1)
            assert self.sizes(first) == [[70, 10, 20]]
            found = labelled(first)[0]
            assert sorted(t for split in SPLITS for t in found[split]) == sorted(self.triples)
            again = read_knowledge(tmp_path / name, valid=0.1, test=0.2, seed=1)
            other = read_knowledge(tmp_path / name, valid=0.1, test=0.2, seed=2)
            assert labelled(first) == labelled(again) != labelled(other)

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_a_part_gives_up_what_it_does_not_bring(self, tmp_path: Path) -> None:
        for i, sets in enumerate((["valid"], ["test"], [], ["valid", "test"])):
            facts = [(f"{i}{h}", r, f"{i}{t}") for h, r, t in self.triples]
            put(tmp_path / str(i) / "train.txt", lines(facts, ".txt"))
            for split in sets:
                put(tmp_path / str(i) / f"{split}.txt", f"{i}a1\tr\t{i}a2\n")
        plain = read_knowledge(tmp_path)
        assert self.sizes(plain) == [[100, 1, 0], [100, 0, 1], [100, 0, 0], [100, 1, 1]]
        stream = read_knowledge(tmp_path, valid=0.1, test=0.2, seed=3)
        assert self.sizes(stream) == [[80, 1, 20], [90, 10, 1], [70, 10, 20], [100, 1, 1]]
        for one, other in zip(labelled(stream), labelled(plain), strict=True):
            assert sorted(t for s in SPLITS for t in one[s]) == sorted(
                t for s in SPLITS for t in other[s]
            )
        assert self.sizes(read_knowledge(tmp_path, test=0.2))[:2] == [[80, 1, 20], [100, 0, 1]]
        # The third part is divided as if it stood in files that bring nothing.
        alone = [tmp_path / str(i) / "train.txt" for i in range(3)]
        again = read_knowledge(alone, valid=0.1, test=0.2, seed=3)
        assert labelled(again)[2] == labelled(stream)[2]

    @pytest.mark.parametrize(
        ("sets", "shares", "said"),
        [
            (("valid", "test"), {"valid": 0.1}, "valid=0.1 sets nothing aside"),
            (("valid", "test"), {"valid": 0.1, "test": 0.2}, "valid=0.1 and test=0.2 set nothing"),
            (("test",), {"valid": 0.1, "test": 0.2}, "test=0.2 sets nothing aside: every part has"),
        ],
    )
    @pytest.mark.parametrize("folders", [["0", "1"], ["."]])
    def test_a_share_that_nothing_is_done_with(
        self,
        tmp_path: Path,
        sets: tuple[str, ...],
        shares: dict[str, float],
        said: str,
        folders: list[str],
    ) -> None:
        for folder in folders:
            put(tmp_path / folder / "train.txt", lines(self.triples, ".txt"))
            for split in sets:
                put(tmp_path / folder / f"{split}.txt", "a1\tr\ta2\n")
        with pytest.warns(DataWarning, match=f"^{tmp_path.name}: {said}") as caught:
            read_stream(tmp_path, **shares)
        assert len(caught) == 1

    def test_shares_are_checked(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tsv", "a\tr\tb\n")
        with pytest.raises(UserError, match=r"valid=0\.7 and test=0\.3"):
            read_stream(tmp_path / "x.tsv", valid=0.7, test=0.3)


class TestTimes:
    def test_numbers_and_dates(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tsv", "a\tr\tb\t2001\nb\tr\tc\t1999.5\n")
        stream, times = read_timed(tmp_path / "x.tsv")
        assert times.tolist() == [2001, 1999.5]
        assert len(stream) == 1 and stream.name == "x"
        put(tmp_path / "y.csv", "head,relation,tail,time\na,r,b,2001-05-06\nb,r,c,1999-01-01\n")
        stream, times = read_timed(tmp_path / "y.csv")
        assert (times[0] - times[1]) / np.timedelta64(1, "D") == 856
        parts = labelled(stream.split("time", [0.5, 0.5], times=times))
        assert [part["train"] for part in parts] == [[("b", "r", "c")], [("a", "r", "b")]]

    @pytest.mark.parametrize("header", ["", "head\trelation\ttail\twhen\n"])
    @pytest.mark.parametrize(
        ("times", "bad"),
        [
            (["1999", "2000", "soon", "2001"], 2),
            (["1999-01-01", "2000-01-01", "12.5"], 2),
            (["nan", "1", "2"], 0),
            (["2000-01-01", "2000-13-01", "2000-01-01"], 1),
        ],
    )
    def test_a_bad_one_is_named(
        self, tmp_path: Path, header: str, times: list[str], bad: int
    ) -> None:
        put(tmp_path / "x.tsv", header + "".join(f"a\tr\tb\t{time}\n" for time in times))
        line = bad + 1 + bool(header)
        with pytest.raises(DataError, match=rf"x\.tsv:{line}: time '{times[bad]}'"):
            read_timed(tmp_path / "x.tsv")

    @pytest.mark.parametrize(
        ("header", "row"),
        [
            ("Timestamp,source,target,type", "{1},{0[0]},{0[2]},{0[1]}"),
            ("tail,year,head,relation", "{0[2]},{1},{0[0]},{0[1]}"),
            ("tail,relation,head,when", "{0[2]},{0[1]},{0[0]},{1}"),
        ],
    )
    def test_a_header_names_the_columns(self, tmp_path: Path, header: str, row: str) -> None:
        triples = [("a", "r", "b"), ("c", "q", "d")]
        rows = [row.format(t, time) for t, time in zip(triples, (3, 1), strict=True)]
        put(tmp_path / "x.csv", "\n".join([header, *rows]))
        stream, times = read_timed(tmp_path / "x.csv")
        assert labelled(stream)[0]["train"] == triples
        assert times.tolist() == [3, 1]
        put(tmp_path / "x.csv", "\n".join([header, *rows, row.format("123", "soon")]))
        with pytest.raises(DataError, match=r"x\.csv:4: time 'soon'"):
            read_timed(tmp_path / "x.csv")

    def test_a_first_line_with_a_time_is_a_fact(self, tmp_path: Path) -> None:
        put(tmp_path / "x.tsv", "s\tp\to\t2001\nb\tr\tc\t1999\n")
        assert read_timed(tmp_path / "x.tsv")[1].tolist() == [2001, 1999]

    def test_time_zones_count(self, tmp_path: Path) -> None:
        times = {
            "2024-01-01T00:00:00Z": "2024-01-01T00:00",
            "2024-01-01T01:00:00+02:00": "2023-12-31T23:00",
            "2023-12-31T20:00:00.5-0530": "2024-01-01T01:30:00.5",
            "2024-01-01 01:00 +01": "2024-01-01T00:00",
            "2024-01-01T00:30": "2024-01-01T00:30",
            "2023-12-31": "2023-12-31",
        }
        put(tmp_path / "x.tsv", "".join(f"{i}\tr\tb\t{t}\n" for i, t in enumerate(times)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stream, found = read_timed(tmp_path / "x.tsv")
        assert found.tolist() == np.array([*times.values()], "datetime64[us]").tolist()
        parts = labelled(stream.split("time", [0.3, 0.7], times=found))
        assert [[t[0] for t in p["train"]] for p in parts] == [["1", "5"], ["0", "2", "3", "4"]]

    @pytest.mark.parametrize("zone", ["+24:00", "+02:60", "+2", "Z+02:00", "-", " CET"])
    def test_a_time_zone_that_is_none(self, tmp_path: Path, zone: str) -> None:
        time = f"2024-01-01T00:00{zone}"
        put(tmp_path / "x.tsv", f"a\tr\tb\t2024-01-01T00:00Z\na\tr\tb\t{time}\n")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DataError, match=rf"x\.tsv:2: time '{re.escape(time)}'"):
                read_timed(tmp_path / "x.tsv")

    @pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
    def test_a_fourth_column_has_its_command(self, tmp_path: Path, name: str) -> None:
        hint = "`dicgrl datasets split FILE --by time` reads a fourth column"
        comma = "," if name == "x.csv" else "\t"
        for content, said in (
            ("a r b 2001\n", True),
            ("head relation tail time\na r b 2001\n", True),
            ("a r b\na r b c\n", False),
            ("a r b c\n", False),
            ("a r b c d\n", False),
            ("a r b \n", False),
            ("head relation tail weight\na r b 2001\n", False),
        ):
            put(tmp_path / name, content.replace(" ", comma))
            with pytest.raises(DataError, match="expected 3 fields") as caught:
                read_stream(tmp_path / name)
            assert (hint in str(caught.value)) == said

    @pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
    @pytest.mark.parametrize(
        ("header", "hint"),
        [
            (
                " head relation tail",
                r"the first column has no name: .*to_csv\(\.\.\., index=False\)",
            ),
            (" head relation tail year", "the first column has no name"),
            ("subject predicate object weight", "leave out what is not of a triple: 'weight'"),
            ("n head relation tail w", "leave out what is not of a triple: 'n', 'w'"),
        ],
    )
    def test_other_columns_are_named(
        self, tmp_path: Path, name: str, header: str, hint: str
    ) -> None:
        put(tmp_path / name, header.replace(" ", "," if name == "x.csv" else "\t") + "\n")
        with pytest.raises(DataError, match=r":1: expected 3 fields.*; " + hint) as caught:
            read_stream(tmp_path / name)
        assert "--by time" not in str(caught.value)

    def test_missing_file_and_column(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="no such file"):
            read_timed(tmp_path / "x.tsv")
        put(tmp_path / "x.tsv", "a\tr\tb\n")
        with pytest.raises(DataError, match=r"x\.tsv:1: expected 4 fields.*found 3"):
            read_timed(tmp_path / "x.tsv")


class TestBadInput:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"a\tr\tb\nc\tr\n", r"0/train\.txt:2: expected 3 fields.*found 2: 'c\\tr'"),
            (b"a r b\n", r"0/train\.txt:1: expected 3 fields separated by TAB, found 1: 'a r b'"),
            (b"", r"0/train\.txt: the file is empty"),
            (b"head\trelation\ttail\n", r"0/train\.txt: the file holds a header and no triples"),
            (b"a\t\tb\n", r"0/train\.txt:1: field 2 of 3 is empty"),
            (b"a\tr\tb\n\xe9\tr\tb\n", r"0/train\.txt:2: not UTF-8 text: byte 0xe9"),
        ],
    )
    def test_triples(self, tmp_path: Path, content: bytes, message: str) -> None:
        put(tmp_path / "0" / "train.txt", content)
        with pytest.raises(DataError, match=message):
            read_stream(tmp_path)
        archive = pack(tmp_path, ".tar.gz")
        with pytest.raises(DataError, match=message):
            read_stream(archive)

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("entity2id.txt", "a\t0\nb\t1\na\t2\n", r":3: duplicate 'a', first in line 1"),
            ("entity2id.txt", "a\t0\nb\t0\n", r":2: duplicate '0', first in line 1"),
            ("relation2id.txt", "r\t0\nr\t1\n", r":2: duplicate 'r', first in line 1"),
            ("relation2id.txt", "r\tone\n", r":1: 'one' is not an id"),
            ("entity2id.txt", "a\t-1\n", r":1: '-1' is not an id"),
            ("entity2id.txt", "a\n", r":1: expected 2 fields"),
            ("entity2id.txt", "", r": the file is empty"),
        ],
    )
    def test_id_files(self, tmp_path: Path, file: str, content: str, message: str) -> None:
        authors(tmp_path)
        put(tmp_path / "0" / file, content)
        with pytest.raises(DataError, match=r"0/" + file.replace(".", r"\.") + message):
            read_stream(tmp_path)

    @pytest.mark.parametrize(
        ("part", "split", "content", "message"),
        [
            (0, "train", "x\tgenre\tx\nx\tgenre\tAliens\n", ":2: unknown entity 'Aliens'"),
            (0, "test", "Aliens\tgenre\tx\n", ":1: unknown entity 'Aliens': entity2id.txt"),
            (1, "valid", "x\tgenre\ty\nx\tlikes\ty\n", ":2: unknown relation 'likes'"),
            (1, "valid", "head\trelation\ttail\nx\tgenre\ty\n", ":1: unknown entity 'head'"),
        ],
    )
    def test_a_part_that_mentions_what_it_does_not_list(
        self, tmp_path: Path, part: int, split: str, content: str, message: str
    ) -> None:
        authors(tmp_path)
        put(tmp_path / str(part) / f"{split}.txt", content)
        with pytest.raises(DataError, match=rf"{part}/{split}\.txt{message}"):
            read_stream(tmp_path)

    def test_gaps_and_clashes(self, tmp_path: Path) -> None:
        put(tmp_path / "a" / "0" / "train.txt", "a\tr\tb")
        put(tmp_path / "a" / "2" / "train.txt", "a\tr\tb")
        with pytest.raises(DataError, match=r"/a: sub-folder 1 is missing; found 0, 2"):
            read_stream(tmp_path / "a")
        put(tmp_path / "b" / "1.tsv", "a\tr\tb")
        with pytest.raises(DataError, match=r"/b: file 0 is missing; found 1.tsv"):
            read_stream(tmp_path / "b")
        put(tmp_path / "c" / "0.tsv", "a\tr\tb")
        put(tmp_path / "c" / "0.csv", "a,r,b")
        with pytest.raises(DataError, match=r"/c: 0.csv and 0.tsv are both part 0"):
            read_stream(tmp_path / "c")
        put(tmp_path / "d" / "0" / "train.tsv", "a\tr\tb")
        put(tmp_path / "d" / "0" / "train.csv", "a,r,b")
        with pytest.raises(DataError, match=r"/d/0: .*train.tsv and .*train.csv clash"):
            read_stream(tmp_path / "d")
        put(tmp_path / "e" / "0" / "train.tsv", "a\tr\tb")
        put(tmp_path / "e" / "00" / "train.tsv", "a\tr\tb")
        with pytest.raises(DataError, match=r"/e: 0 and 00 are both part 00?$"):
            read_stream(tmp_path / "e")

    def test_no_train(self, tmp_path: Path) -> None:
        put(tmp_path / "0" / "valid.txt", "a\tr\tb")
        with pytest.raises(DataError, match=r"/0: no train\.txt"):
            read_stream(tmp_path)

    def test_damaged_gzip(self, tmp_path: Path) -> None:
        whole = gzip.compress(b"".join(b"e%d\tr\te%d\n" % (i, i * i) for i in range(999)))
        (tmp_path / "0.tsv.gz").write_bytes(whole[:-100])
        with pytest.raises(DataError, match=r"0\.tsv\.gz: damaged compressed file"):
            read_stream(tmp_path)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="none: no such file, folder or archive"):
            read_stream(tmp_path / "none")
        with pytest.raises(UserError, match=r"gone\.tsv: no such file"):
            read_stream([tmp_path / "gone.tsv"])
        with pytest.raises(UserError, match="at least one part"):
            read_stream([])

    def test_no_layout_fits(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"not a stream; it holds nothing\. Expected one of"):
            read_stream(tmp_path)
        put(tmp_path / "facts.doc", "?")
        with pytest.raises(UserError, match=r"not a stream; it holds facts\.doc\."):
            read_stream(tmp_path)
        with pytest.raises(UserError, match=r"facts\.doc: the ending tells no format"):
            read_stream(tmp_path / "facts.doc")


class TestDataFrame:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["tail", "relation", "head"], ("c", "b", "a")),
            (["Source", "Target", "type"], ("a", "c", "b")),
            (["head", "relation", "tail"], ("a", "b", "c")),
            (["film", "tail", "head"], ("a", "b", "c")),
            ([2, 1, 0], ("a", "b", "c")),
        ],
    )
    def test_columns_by_their_names(
        self, names: list[object], expected: tuple[str, str, str]
    ) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame([("a", "b", "c")], columns=names)
        stream = KnowledgeStream.from_labels("mine", [frame])
        assert labelled(stream)[0]["train"] == [expected]

        class Polars:
            columns: ClassVar[list[object]] = names

            def __iter__(self) -> Iterator[list[str]]:
                raise AssertionError("the columns of a frame are not its rows")

            def iter_rows(self) -> Iterator[tuple[str, str, str]]:
                return iter([("a", "b", "c")])

        stream = KnowledgeStream.from_labels("mine", [Polars()])
        assert labelled(stream)[0]["train"] == [expected]
