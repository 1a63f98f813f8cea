"""Layouts of knowledge graphs, and what is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from dicgrl import DataError, DataWarning, KnowledgeStream, UserError, read_stream
from dicgrl.graph import SPLITS
from tests.readers.small_graph import (
    DECORATIONS,
    HEADERS,
    ONLY_TRAIN,
    PARTS,
    authors,
    lines,
    pack,
    put,
    read_knowledge,
)
from tests.streams import labelled


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
        with pytest.raises(UserError, match=r"facts\.doc: the ending does not tell the format"):
            read_stream(tmp_path / "facts.doc")
