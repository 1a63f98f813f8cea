"""Formats of triples: one graph through each of them and back, and files that are none of them."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import sqlite3
import string
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dicgrl import DataError, DataWarning, KnowledgeStream, UserError, load_stream
from dicgrl.common import optional
from dicgrl.graph import Vocabulary
from dicgrl.graph.coded import Coded, add_in_order
from dicgrl.graph.times import told
from dicgrl.readers import Reading, read_stream, read_timed, write_stream
from dicgrl.readers.formats import Format
from tests.streams import labelled

pytest.importorskip("pyarrow")
ox = pytest.importorskip("pyoxigraph")

FORMATS = ("tsv", "csv", "txt", "jsonl", "ndjson", "parquet", "arrow", "feather", "nt", "nq", "ttl",
           "trig", "rdf", "jsonld")  # fmt: skip
WRITTEN = tuple(name for name in FORMATS if name != "jsonld")
FACTS = [("Alien", "genre", "horror"), ("Aliens", "follows", "Alien"), ("Aliens", "genre", "war")]
QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

words = st.text(string.ascii_letters + string.digits + " .,;:'\"|%_-é漢#<>?=&/\\", min_size=1).map(
    str.strip
).filter(bool)  # fmt: skip
facts = st.lists(st.tuples(words, words, words), min_size=1, max_size=12)


def same(one: KnowledgeStream, other: KnowledgeStream) -> None:
    assert labelled(one) == labelled(other)
    assert list(one.entities) == list(other.entities)
    assert list(one.relations) == list(other.relations)
    assert dict(one.names) == dict(other.names)
    for mine, theirs in zip(one, other, strict=True):
        assert mine.new_entities == theirs.new_entities


@pytest.mark.parametrize("name", WRITTEN)
def test_films_through_every_format_and_back(tmp_path: Path, name: str) -> None:
    films = load_stream("films")
    write_stream(films, tmp_path / "films", format=name)
    same(read_stream(tmp_path / "films"), films)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in ("txt", "ndjson")])
@QUICK
@given(parts=st.lists(facts, min_size=1, max_size=3))
def test_any_graph_through_every_format_and_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, parts: list[list[tuple[str, str, str]]]
) -> None:
    stream = KnowledgeStream.from_labels("mine", parts)
    place = tmp_path_factory.mktemp("graph") / "mine"
    write_stream(stream, place, format=name)
    same(read_stream(place), stream)


@QUICK
@given(
    rows=st.lists(st.tuples(*[st.sampled_from("abcdef")] * 2), max_size=20), known=st.text("ace")
)
def test_coded_labels_get_the_ids_of_plain_ones(rows: list[tuple[str, str]], known: str) -> None:
    one, other = Vocabulary(known), Vocabulary(known)
    columns = []
    for column in range(2):
        labels = sorted({row[column] for row in rows} | {"f"})  # one may be of no row
        columns.append(Coded(labels, np.array([labels.index(row[column]) for row in rows], int)))
    found = add_in_order(one, *columns)
    expected = other.add(label for row in rows for label in row)
    assert [ids.tolist() for ids in found] == [expected[0::2].tolist(), expected[1::2].tolist()]
    assert one == other


def written(folder: Path, name: str) -> Path:
    place = folder / f"facts.{name}"
    Format.registry[f".{name}"].write(place, [FACTS])
    return place


@pytest.mark.parametrize("name", WRITTEN)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_give_one_message_that_names_them(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    content = bytearray(written(tmp_path, name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    length = data.draw(st.integers(0, 8))
    content[at : at + length] = data.draw(st.binary(max_size=8))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    place = tmp_path / f"damaged.{name}"
    place.write_bytes(bytes(content))
    said = ""
    try:
        stream = read_stream(place)
        assert all(map(all, labelled(stream)[0]["train"]))  # another fact, as far as one can tell
    except UserError as error:
        said = str(error)
    assert (said.startswith(str(place)) and "\n" not in said) or not said


@pytest.mark.parametrize("name", ["nt", "ttl", "rdf", "jsonl", "csv", "arrow", "parquet"])
def test_compressed_files_and_given_formats(tmp_path: Path, name: str) -> None:
    plain = written(tmp_path, name)
    packed = tmp_path / f"facts.{name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    other = plain.rename(tmp_path / "facts.data")
    for place, reading in ((packed, None), (other, Reading(format=name))):
        assert labelled(read_stream(place, reading=reading))[0]["train"] == FACTS


def test_formats_and_libraries_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written(tmp_path, "parquet")
    with pytest.raises(UserError, match=r"unknown format 'parquett'; did you mean 'parquet'\?"):
        read_stream(place, reading=Reading(format="parquett"))
    with pytest.raises(UserError, match="this format is read, but not written"):
        write_stream(load_stream("films"), tmp_path / "x", format="sqlite")
    assert not (tmp_path / "x").exists()

    def missing(module: str) -> Any:
        raise ImportError(module)

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    for name, extra in (("parquet", "arrow"), ("nt", "rdf")):
        (tmp_path / f"x.{name}").write_bytes(b"")
        with pytest.raises(UserError, match=rf"pip install 'dicgrl\[{extra}\]'"):
            read_stream(tmp_path / f"x.{name}")


class TestColumns:
    def test_names_numbers_and_roles(self, tmp_path: Path) -> None:
        place = tmp_path / "x.csv"
        rows = [f"7,{t},{h},{r},x" for h, r, t in FACTS]
        for header, columns in (
            ("n,what,who,how,z", "who,how,what"),
            ("n,what,who,how,z", "WHO,4,2"),
            ("n,tail,head,relation,z", ""),
            ("", "3,4,2"),
        ):
            place.write_text("\n".join([header, *rows] if header else rows) + "\n")
            read = read_stream(place, reading=Reading(columns=columns))
            assert labelled(read)[0]["train"] == FACTS
        place.write_text("\n".join(f"{r},{h},{t},2001" for h, r, t in FACTS) + "\n")
        said = Reading(columns="relation,head,tail,time")
        assert labelled(read_stream(place, reading=said))[0]["train"] == FACTS
        stream, times = read_timed(place, reading=said)
        assert labelled(stream)[0]["train"] == FACTS and times.tolist() == [2001.0] * 3

    @pytest.mark.parametrize("sep", [";", "|", " ", "tab", r"\t"])
    def test_other_separators(self, tmp_path: Path, sep: str) -> None:
        sign = {"tab": "\t", r"\t": "\t"}.get(sep, sep)
        (tmp_path / "x.txt").write_text("".join(f"{sign.join(fact)}\n" for fact in FACTS))
        read = read_stream(tmp_path / "x.txt", reading=Reading(sep=sep))
        assert labelled(read)[0]["train"] == FACTS

    def test_another_separator_is_noticed(self, tmp_path: Path) -> None:
        (tmp_path / "x.tsv").write_text("a;likes;b\nb;likes;c\n")
        with pytest.raises(DataError, match=r"x\.tsv:1: .* separated by ';': say --sep ';'"):
            read_stream(tmp_path / "x.tsv")

    def test_what_to_say_of_more_columns_works(self, tmp_path: Path) -> None:
        place = tmp_path / "x.csv"
        place.write_text("who,how,what,why\na,likes,b,so\nb,likes,c,so\n")
        with pytest.raises(DataError, match=r"is a header, --columns who,how,what$"):
            read_stream(place)
        assert read_stream(place, reading=Reading(columns="who,how,what"))[0].facts == 2

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"columns": "a"}, "expected those of head, relation and tail"),
            ({"columns": "1,1,2"}, "columns 1,1,2: '1' is given twice"),
            ({"columns": "a,,b"}, "columns a,,b: the name of one is missing"),
            ({"sep": ";;"}, "expected one character"),
            ({"sep": '"'}, "expected one character"),
            ({"literals": "some"}, "unknown literals 'some'"),
            ({"columns": 3}, "columns=3: expected names or numbers"),
            ({"sep": 5}, "sep=5: expected text"),
        ],
    )
    def test_what_cannot_be_meant(self, asked: dict[str, Any], said: str) -> None:
        with pytest.raises(UserError, match=said):
            Reading(**asked)

    @pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
    def test_columns_that_are_not_there(self, tmp_path: Path, name: str) -> None:
        place = written(tmp_path, name)
        if name == "csv":
            place.write_text("head,relation,tail\na,b,c\n")
        with pytest.raises(DataError, match=r"no column 'who'; the columns are 'head', 'relation'"):
            read_stream(place, reading=Reading(columns="who,relation,tail"))

    def test_names_that_tell_nothing(self, tmp_path: Path) -> None:
        place = tmp_path / "x.jsonl"
        place.write_text('{"a": "x", "b": "y", "c": "z"}\n')
        with pytest.raises(DataError, match="say which hold head, relation and tail"):
            read_stream(place)
        read = read_stream(place, reading=Reading(columns=["c", "b", "a"]))
        assert labelled(read)[0]["train"] == [("z", "y", "x")]

    def test_numbers_are_places_even_where_ids_are_numbers(self, tmp_path: Path) -> None:
        """As in most public files of ids; the first line names no columns then."""
        place = tmp_path / "x.tsv"
        place.write_text("1\t3\t2\n1\t3\t5\n2\t1\t3\n")
        read = read_stream(place, reading=Reading(columns="1,3,2"))
        assert labelled(read)[0]["train"] == [("1", "2", "3"), ("1", "5", "3"), ("2", "3", "1")]

    def test_numbers_are_names_where_columns_are_called_so(self, tmp_path: Path) -> None:
        """pandas numbers columns from 0; numbers that are no names throughout are places."""
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"0": ["a"], "1": ["r"], "2": ["b"]}), tmp_path / "x.pq")
        for columns in ("0,1,2", "1,2,3"):
            read = read_stream(tmp_path / "x.pq", reading=Reading(columns=columns))
            assert labelled(read)[0]["train"] == [("a", "r", "b")]

    def test_two_columns_of_one_name(self, tmp_path: Path) -> None:
        place = tmp_path / "x.csv"
        place.write_text("head,relation,tail,head\na,r,b,x\nb,r,c,y\n")
        with pytest.raises(DataError, match="two columns are called 'head'"):
            read_stream(place, reading=Reading(columns="head,relation,tail"))
        read = read_stream(place, reading=Reading(columns="4,2,3"))  # and the header is one
        assert labelled(read)[0]["train"] == [("x", "r", "b"), ("y", "r", "c")]

    def test_a_tab_in_a_csv_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("a\tr\tb\n")
        with pytest.raises(DataError, match=r"say --sep '\\t'$"):
            read_stream(tmp_path / "x.csv")


class TestJsonLines:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("[1, 2", "x.jsonl:2: not JSON"),
            ("[" * 100_000, "x.jsonl:2: not JSON"),
            ('{"head": "a"}', "x.jsonl:2: there is no 'relation'"),
            ('["a", "b", "c"]', "x.jsonl:2: not like the first line"),
            ('{"head": "a", "relation": 1.5, "tail": "c"}', "x.jsonl:2: '1.5' is not a label"),
            ('{"head": "a", "relation": "", "tail": "c"}', "x.jsonl:2: an empty label"),
            (
                '{"head": "a", "relation": "x\\ty", "tail": "c"}',
                "x.jsonl:2: .*contain a TAB",
            ),
            ("7, 8", "x.jsonl:2: not JSON"),
            (
                '{"head": "a", "relation": "r", "tail": "b", "head": "c"}',
                "x.jsonl:2: the key 'head' is there twice: '{",
            ),
            ('{"head": "a", "relation": null, "tail": "c"}', "x.jsonl:2: 'null' is not a label"),
            ('{"head": true, "relation": "r", "tail": "c"}', "x.jsonl:2: 'true' is not a label"),
            (
                '{"head": "a", "tail": null}',
                """there is no 'relation': '{"head": "a", "tail": null}""",
            ),
            ('["a", null, false]', r"""not like the first line: '\["a", null, false\]'"""),
        ],
    )
    def test_a_wrong_line_is_named(self, tmp_path: Path, line: str, said: str) -> None:
        good = json.dumps({"head": "a", "relation": "r", "tail": "b", "besides": 3})
        (tmp_path / "x.jsonl").write_text(f"{good}\n{line}\n")
        with pytest.raises(DataError, match=said):
            read_stream(tmp_path / "x.jsonl")

    def test_lists_and_numbers(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text('["a", "year", 1979]\n["b", "year", 1985]\n')
        found = labelled(read_stream(tmp_path / "x.jsonl"))[0]["train"]
        assert found == [("a", "year", "1979"), ("b", "year", "1985")]

    def test_longer_lists(self, tmp_path: Path) -> None:
        place = tmp_path / "x.jsonl"
        place.write_text('["a", 1, "r", "b", "2001-01-01"]\n["b", 2, "r", "c", null]\n')
        with pytest.raises(DataError, match=r"x\.jsonl:1: .* say which .* --columns 1,2,3$"):
            read_stream(place)
        read = read_stream(place, reading=Reading(columns="1,3,4"))
        assert labelled(read)[0]["train"] == [("a", "r", "b"), ("b", "r", "c")]
        assert len(read_stream(place, reading=Reading(columns="1,3,4,5"))[0].times) == 2
        place.write_text('["a", "r", "b"]\n["b", "r"]\n')
        with pytest.raises(DataError, match=r"x\.jsonl:2: not like the first line"):
            read_stream(place, reading=Reading(columns="1,2,3"))


class TestParquet:
    def test_whole_numbers_times_and_other_columns(self, tmp_path: Path) -> None:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        when = np.array(["2001-01-01", "2002-02-02"], "datetime64[D]")
        columns = {"s": [1, 2], "p": ["r", "r"], "o": ["a", "b"], "w": [0.5, None], "date": when}
        parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
        assert labelled(read_stream(tmp_path / "x.parquet"))[0]["train"] == [
            ("1", "r", "a"),
            ("2", "r", "b"),
        ]
        _, times = read_timed(tmp_path / "x.parquet")
        assert times.astype("datetime64[D]").tolist() == when.tolist()

    @pytest.mark.parametrize(
        ("tails", "said"),
        [
            (["a", None], r"x\.parquet:2: column 'tail' is empty"),
            (["a", ""], r"x\.parquet:2: column 'tail' is empty"),
            ([0.5, 1.5], "column 'tail' has the type double"),
            (["a", "x\ty"], "column 'tail': .*cannot contain a TAB"),
        ],
    )
    def test_what_is_no_label(self, tmp_path: Path, tails: list[Any], said: str) -> None:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table({"head": ["x", "y"], "relation": ["r", "r"], "tail": tails})
        parquet.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(DataError, match=said):
            read_stream(tmp_path / "x.parquet")

    def test_blocks_share_their_labels(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Ids are those of one block, whatever a block's dictionary holds besides."""
        arrow = pytest.importorskip("pyarrow")
        chance = np.random.default_rng(0)
        facts = [(f"e{a}", f"r{b % 3}", f"e{c}") for a, b, c in chance.integers(0, 30, (200, 3))]
        held = [None, "", "unused", *(f"e{i}" for i in range(30)), "e1"]
        of_heads = arrow.array([held.index(head) for head, _, _ in facts], arrow.int32())
        heads = arrow.DictionaryArray.from_arrays(of_heads, arrow.array(held))
        table = arrow.table(
            {"head": heads, "relation": [r for _, r, _ in facts], "tail": [t for _, _, t in facts]}
        )
        with arrow.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
        found, plain = (
            read_stream(tmp_path / "x.arrow")[0],
            KnowledgeStream.from_labels("x", [facts])[0],
        )
        assert np.array_equal(found.train, plain.train)
        assert list(found.entities) == list(plain.entities)
        held[0], of_heads = None, arrow.array([3] * 10 + [0], arrow.int32())
        heads = arrow.DictionaryArray.from_arrays(of_heads, arrow.array(held))
        table = arrow.table({"head": heads, "relation": ["r"] * 11, "tail": ["t"] * 11})
        with arrow.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=4)
        with pytest.raises(DataError, match=r"x\.arrow:11: column 'head' is empty"):
            read_stream(tmp_path / "x.arrow")

    def test_partitions(self, tmp_path: Path) -> None:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(("head", "relation", "tail"), zip(*FACTS, strict=True), strict=True))
        table = arrow.table({name: list(values) for name, values in columns.items()})
        parquet.write_to_dataset(table, tmp_path / "tree", partition_cols=["relation"])
        found = labelled(read_stream(tmp_path / "tree"))[0]["train"]
        assert sorted(found) == sorted(FACTS)

    def test_partitions_by_day_have_times(self, tmp_path: Path) -> None:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(("head", "relation", "tail"), zip(*FACTS, strict=True), strict=True))
        days = ["2001-01-01", "2001-01-02", "2001-01-01"]
        table = arrow.table({**{name: list(them) for name, them in columns.items()}, "date": days})
        parquet.write_to_dataset(table, tmp_path / "tree", partition_cols=["date"])
        part = read_stream(tmp_path / "tree")[0]
        assert sorted(map(told, part.times.tolist())) == sorted(days)
        (tree := tmp_path / "tree").joinpath("labels.tsv").write_text("Alien\tAlien (1979)\n")
        (tree / "_temporary").mkdir()
        (tree / "_temporary" / "x.parquet").write_text("half-written")
        assert read_stream(tree).names == {"Alien": "Alien (1979)"}
        stream, times = read_timed(tmp_path / "tree")
        assert [p.facts for p in stream.split("day", times=times)] == [2, 1]
        with pytest.raises(DataError, match="tree: --sep does not apply"):
            read_stream(tmp_path / "tree", reading=Reading(sep=";"))

    def test_a_file_of_a_tree_that_is_not_like_the_others_is_named(self, tmp_path: Path) -> None:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        one = {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "c"]}
        parquet.write_table(arrow.table(one), tmp_path / "a.parquet")
        other = {"head": ["a", "b"], "relation": ["r", "r"], "what": ["b", "c"]}
        parquet.write_table(arrow.table(other), tmp_path / "b.parquet")
        with pytest.raises(DataError, match=r"b\.parquet: there is no column 'tail'"):
            read_stream(tmp_path)
        parquet.write_table(arrow.table({**one, "tail": ["b", None]}), tmp_path / "b.parquet")
        with pytest.raises(DataError, match=r"b\.parquet:2: column 'tail' is empty"):
            read_stream(tmp_path)

    def test_memory_follows_the_batch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dicgrl.readers.formats.columnar._BATCH", 7)
        rows = [(f"e{i}", f"r{i % 3}", f"e{i // 2}") for i in range(100)]
        Format.registry[".parquet"].write(tmp_path / "x.parquet", [rows])
        stream = read_stream(tmp_path / "x.parquet")
        same(stream, KnowledgeStream.from_labels("x", [rows]))

    @pytest.mark.parametrize("coded", [False, True])
    def test_all_known_labels_are_looked_at_the_less_often_the_more_they_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coded: bool
    ) -> None:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columnar = importlib.import_module("dicgrl.readers.formats.columnar")
        monkeypatch.setattr(columnar, "_BATCH", 7)
        looks, usual = [], columnar._Book.coded
        monkeypatch.setattr(columnar._Book, "coded", lambda *args: looks.append(1) or usual(*args))
        rows = [(f"e{i}", f"r{i % 3}", f"e{i // 2}") for i in range(1000)]
        columns = [arrow.array(column) for column in zip(*rows, strict=True)]
        if coded:  # each group of rows has a dictionary of its own
            columns = [column.dictionary_encode() for column in columns]
        path = tmp_path / "x.parquet"
        parquet.write_table(arrow.table(columns, ["s", "p", "o"]), path, row_group_size=50)
        same(read_stream(path), KnowledgeStream.from_labels("x", [rows]))
        assert len(looks) <= 3 * 12  # of 1000 / 7 batches
        columns[2] = arrow.array([*(row[2] for row in rows[:-1]), None])
        parquet.write_table(arrow.table(columns, ["s", "p", "o"]), path, row_group_size=50)
        with pytest.raises(DataError, match=r"x\.parquet:1000: column 'o' is empty"):
            read_stream(path)


class TestRdf:
    TURTLE = """
    @prefix f: <http://films/> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    f:alien f:genre f:horror ; f:year 1979 ; rdfs:label "Der Fremde"@de, "Alien"@en .
    f:aliens f:follows f:alien ; f:made_by [ f:name "Fox" ] .
    """

    def test_literals_names_and_prefixes(self, tmp_path: Path) -> None:
        (tmp_path / "x.ttl").write_text(self.TURTLE)
        with pytest.warns(DataWarning, match="2 literals left out, which --literals keep makes"):
            stream = read_stream(tmp_path / "x.ttl")
        facts = labelled(stream)[0]["train"]
        assert facts[:2] == [
            ("http://films/alien", "http://films/genre", "http://films/horror"),
            ("http://films/aliens", "http://films/follows", "http://films/alien"),
        ]
        assert len(facts) == 3 and facts[2][2].startswith("_:")
        assert stream.names["http://films/alien"] == "Alien"
        assert stream.names["http://films/genre"] == "f:genre"
        kept = read_stream(tmp_path / "x.ttl", reading=Reading(literals="keep"))
        assert ("http://films/alien", "http://films/year", "1979") in labelled(kept)[0]["train"]
        assert len(labelled(kept)[0]["train"]) == 5

    def test_a_file_of_names_counts_before_those_of_the_format(self, tmp_path: Path) -> None:
        (tmp_path / "x.ttl").write_text(self.TURTLE)
        (tmp_path / "labels.tsv").write_text("http://films/alien\tThe first one\n")
        with pytest.warns(DataWarning):
            names = read_stream(tmp_path / "x.ttl").names
        assert names["http://films/alien"] == "The first one"
        assert names["http://films/genre"] == "f:genre"

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("x.nt", "<http://a> <http://b> <http://c> .\n<http://a> .\n", r"x\.nt:2: "),
            ("x.ttl", "a:b a:c a:d .", r"x\.ttl:1: .*[Pp]refix"),
            ("x.rdf", "<rdf>", r"x\.rdf:"),
            (
                "x.rdf",
                '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:f="http://f/">'
                '<r:Description r:about="http://a"><f:b r:resource="http://c"/></r:Description>'
                "<!-- </r:RDF> -->",
                r"x\.rdf: the file is cut off",
            ),
            ("x.nt", '<http://a> <http://b> "c" .\n', "holds no facts; 1 literal left out"),
            ("x.nt", "", "holds no facts"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, tmp_path: Path, name: str, content: str, said: str
    ) -> None:
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=said):
            read_stream(tmp_path / name)

    def test_answers_of_a_query(self, tmp_path: Path) -> None:
        def iri(name: str) -> dict[str, str]:
            return {"type": "uri", "value": f"http://x/{name}"}

        rows = [{"s": iri(h), "p": iri(r), "o": iri(t)} for h, r, t in FACTS]
        rows.append({"s": iri("a"), "p": iri("b"), "o": {"type": "literal", "value": "c"}})
        answer = {"head": {"vars": ["o", "p", "s"]}, "results": {"bindings": rows}}
        (tmp_path / "x.srj").write_text(json.dumps(answer))
        with pytest.warns(DataWarning, match="1 literal left out"):
            found = labelled(read_stream(tmp_path / "x.srj"))[0]["train"]
        assert found == [tuple(f"http://x/{label}" for label in fact) for fact in FACTS]
        (tmp_path / "y.srj").write_text(json.dumps({"head": {}, "boolean": True}))
        with pytest.raises(DataError, match="not a table"):
            read_stream(tmp_path / "y.srj")


class TestSqlite:
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        with sqlite3.connect(tmp_path / "x.db") as database:
            database.execute("CREATE TABLE facts (head TEXT, relation TEXT, tail TEXT, n REAL)")
            database.executemany("INSERT INTO facts VALUES (?, ?, ?, 1.5)", FACTS)
        return tmp_path / "x.db"

    def test_the_only_table_or_a_query(self, place: Path) -> None:
        assert labelled(read_stream(place))[0]["train"] == FACTS
        query = "SELECT tail AS o, 'of' AS p, head AS s FROM facts WHERE relation = 'genre'"
        found = labelled(read_stream(place, reading=Reading(query=query)))[0]["train"]
        assert found == [("Alien", "of", "horror"), ("Aliens", "of", "war")]

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("SELECT * FROM others", "no such table: others"),
            ("SELECT head FROM facts", "the columns are 'head'; say which"),
            ("DELETE FROM facts", "readonly|read-only|query_only|attempt to write"),
            ("SELECT head, relation, n AS tail FROM facts", r"x\.db:1: '1.5' is not a label"),
            ("SELECT head, relation, NULL AS tail FROM facts", r"x\.db:1: a value is empty"),
            ("SELECT head, relation, tail FROM facts WHERE 0", "the query has no answers"),
            ("SELECT 1; SELECT 2", "one statement"),
        ],
    )
    def test_wrong_queries(self, place: Path, query: str, said: str) -> None:
        before = place.read_bytes()
        with pytest.raises(DataError, match=said):
            read_stream(place, reading=Reading(query=query))
        assert place.read_bytes() == before

    def test_several_tables_and_none(self, place: Path, tmp_path: Path) -> None:
        with sqlite3.connect(place) as database:
            database.execute("CREATE TABLE others (x)")
        with pytest.raises(DataError, match="the tables 'facts', 'others'; say what to read"):
            read_stream(place)
        (tmp_path / "y.db").write_bytes(b"no database at all, but long enough to look at it")
        with pytest.raises(DataError, match="no SQLite database"):
            read_stream(tmp_path / "y.db")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in FACTS).encode()
    for _ in range(2):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        found = read_stream("-", reading=Reading(format="tsv"))
        assert labelled(found)[0]["train"] == FACTS
    with pytest.raises(UserError, match="standard input: say which format it has"):
        read_stream("-")


def test_frames_and_dicts_with_more_than_triples() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [{"n": 7, "tail": t, "head": h, "relation": r} for h, r, t in FACTS]
    for given_facts in (rows, iter(rows), pandas.DataFrame(rows), polars.DataFrame(rows)):
        stream = KnowledgeStream.from_labels("mine", [given_facts])
        assert labelled(stream)[0]["train"] == FACTS
    with pytest.raises(UserError, match=r"triples\[0\]: expected \(head, relation, tail\)"):
        KnowledgeStream.from_labels("mine", [[{"a": "b"}]])


def test_a_stream_of_one_part_is_read_from_facts_as_well(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [{"note": "", "what": t, "who": h, "how": r} for h, r, t in FACTS]
    path = tmp_path / "facts.csv"
    pandas.DataFrame(rows).to_csv(path, index=False)
    names = tmp_path / "names.tsv"
    names.write_text(f"{FACTS[0][0]}\tits name\n", encoding="utf-8")
    reading = Reading(columns="who,how,what")
    expected = read_stream(path, reading=reading, test=0.3, seed=5, labels=names)
    for facts in (rows, iter(rows), pandas.DataFrame(rows)):
        found = load_stream(facts, reading=reading, test=0.3, seed=5, labels=names)
        assert labelled(found) == labelled(expected) and found.names == expected.names
    for listed in ([path], iter([str(path)])):
        assert labelled(read_stream(listed, reading=reading))[0]["train"] == FACTS
    with pytest.raises(UserError, match="expected triples"):
        read_stream(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("parquet", Reading(sep=";")),
        ("jsonl", Reading(query="SELECT 1")),
        ("csv", Reading(literals="keep")),
        ("nt", Reading(columns="1,2,3")),
    ],
)
def test_what_a_format_would_not_heed_is_refused(
    tmp_path: Path, name: str, reading: Reading
) -> None:
    place = written(tmp_path, name)
    ending = ".tsv" if name == "csv" else f".{name}"  # text is one format
    with pytest.raises(DataError, match=rf"{place.name}: --\w+ does not apply to \{ending} files"):
        read_stream(place, reading=reading)


def test_weights_are_not_taken_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,c,1979,0.5\n", encoding="utf-8")
    with pytest.warns(DataWarning, match="'weight': facts have no weights"):
        reading = Reading(columns="head,relation,tail,time,weight")
    assert labelled(read_stream(tmp_path / "x.csv", reading=reading))[0]["train"] == [
        ("a", "b", "c")
    ]
