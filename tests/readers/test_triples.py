"""Files of triples: headers, spaces, columns of data frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl import DataError, DataWarning, KnowledgeStream
from dicgrl.readers import Reading, read_stream, text
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.triples import triple_rows
from tests.readers.small_graph import (
    HEADERS,
    PARTS,
    lines,
    put,
    read_knowledge,
)
from tests.streams import labelled


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
def test_a_header_in_other_words_is_never_learned(tmp_path: Path, first: str, ending: str) -> None:
    place = tmp_path / f"x{ending}"
    put(place, f"{first}\na,r,b\n".replace(",", "," if ending == ".csv" else "\t"))
    said = rf"x{ending}:1: '{first.replace(',', ' ')}' looks like a header; .*--columns {first}"
    with pytest.raises(DataError, match=said):
        read_knowledge(place)
    taken = read_stream(place, reading=Reading(columns="1,2,3"))  # the owner knows better
    assert labelled(taken)[0]["train"] == [tuple(first.split(",")), ("a", "r", "b")]
    if len(set(first.split(","))) == 3:
        named = read_stream(place, reading=Reading(columns=first))
        assert labelled(named)[0]["train"] == [("a", "r", "b")]


def test_a_word_that_may_be_a_relation_is_a_fact_with_a_warning(tmp_path: Path) -> None:
    put(tmp_path / "x.tsv", "Alien\ttype\tfilm\nBrazil\tyear\t1985\n")
    with pytest.warns(DataWarning, match="'Alien type film' is taken for a fact"):
        facts = labelled(read_knowledge(tmp_path / "x.tsv"))[0]["train"]
    assert facts[0] == ("Alien", "type", "film")


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
        if isinstance(names[0], str):
            polars = pytest.importorskip("polars")
            frame = polars.DataFrame([("a", "b", "c")], schema=names, orient="row")
            stream = KnowledgeStream.from_labels("mine", [frame])
            assert labelled(stream)[0]["train"] == [expected]
