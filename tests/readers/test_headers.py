"""A first line that names its columns is never learned as a fact; one that is a fact is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl import DataError, KnowledgeStream, read_stream
from dicgrl.graph import KnowledgeGraph
from dicgrl.readers import Reading, read_part
from tests.streams import labelled

FACTS = [("Alien", "genre", "horror"), ("Aliens", "genre", "war"), ("Aliens", "follows", "Alien")]


@pytest.fixture
def graph() -> KnowledgeGraph:
    graph = KnowledgeGraph()
    graph.add(KnowledgeStream.from_labels("films", [[("Brazil", "genre", "satire")]])[0])
    return graph


def written(place: Path, rows: list[tuple[str, str, str]]) -> Path:
    place.write_text("".join(",".join(row) + "\n" for row in rows))
    return place


@pytest.mark.parametrize("header", [("who", "how", "what"), ("Person", "does it", "Thing_2")])
@pytest.mark.parametrize("facts", [FACTS, FACTS[:1]])
def test_a_header_in_any_words_is_refused_where_a_graph_is_known(
    tmp_path: Path, graph: KnowledgeGraph, header: tuple[str, str, str], facts: list
) -> None:
    place = written(tmp_path / "x.csv", [header, *facts])
    said = rf"x\.csv:1: '{' '.join(header)}' looks like a header; .* --columns {','.join(header)}"
    with pytest.raises(DataError, match=said):
        read_part(place, graph)
    named, _ = read_part(place, graph, Reading(columns=",".join(header)))
    assert named.facts == len(facts)
    numbered, _ = read_part(place, graph, Reading(columns="1,2,3"))
    assert numbered.facts == len(facts) + 1


def test_so_it_is_in_a_graph_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'who how what' looks like a header"):
        read_stream(written(tmp_path / "x.csv", [("who", "how", "what"), *FACTS]))


@pytest.mark.parametrize(
    "first",
    [
        ("Brazil", "how", "what"),  # of something known
        ("who", "genre", "what"),
        ("who", "how", "Aliens"),  # of something that another line speaks of
        ("71", "52", "33"),  # numbers and codes are nobody's column
        ("http://x/who", "http://x/how", "http://x/what"),
        ("a", "r", "b"),
    ],
)
def test_a_fact_is_a_fact(
    tmp_path: Path, graph: KnowledgeGraph, first: tuple[str, str, str]
) -> None:
    part, _ = read_part(written(tmp_path / "x.csv", [first, *FACTS]), graph)
    assert part.facts == len(FACTS) + 1


def test_facts_that_are_all_apart_from_each_other_are_facts(tmp_path: Path) -> None:
    rows = [("Alien", "genre", "horror"), ("Brazil", "director", "Gilliam")]
    found = labelled(read_stream(written(tmp_path / "x.csv", rows)))[0]["train"]
    assert found == rows
