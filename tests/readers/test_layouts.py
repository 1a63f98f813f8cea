"""A kind of data that the package does not know comes in by a layout of its own.

The kind here is temporal links: head, relation, tail, time, in a file that ends in `.events`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pytest

from dicgrl import DataError, UserError, describe, read_stream, write_stream
from dicgrl.graph import SPLITS, Graph, KnowledgeGraph, Part, Stream, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.holdout import HoldOut
from dicgrl.readers import Layout, read_part, register_layout
from dicgrl.readers.layouts import LAYOUTS, Source, list_layouts
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows
from dicgrl.readers.writer import write_to

FACTS = "Alien\tgenre\thorror\t1979\nAliens\tsequel of\tAlien\t1986\n"


@dataclass(frozen=True, slots=True, eq=False)
class EventPart(Part):
    vocabularies: ClassVar[tuple[str, ...]] = ("entities", "relations", "times")

    index: int
    entities: Vocabulary
    relations: Vocabulary
    times: Vocabulary
    new_entities: range
    new_relations: range
    new_times: range
    train: IntArray  # [n, 4]
    valid: IntArray
    test: IntArray

    def checked(self) -> Self:
        if self.train.shape[1:] != (4,):
            raise UserError(f"events must have shape [n, 4], not {list(self.train.shape)}")
        return self


class EventGraph(Graph[EventPart]):
    part_type: ClassVar[type[EventPart]] = EventPart

    def __init__(self) -> None:
        self.entities, self.relations, self.times = Vocabulary(), Vocabulary(), Vocabulary()
        self.parts: list[EventPart] = []

    @classmethod
    def for_part(cls, part: EventPart) -> Self:  # noqa: ARG003
        return cls()

    def add(self, part: EventPart) -> EventPart:
        for name, labels in part.new_labels().items():
            getattr(self, name).add(labels)
        self.parts.append(part.checked())
        return part

    @property
    def num_parts(self) -> int:
        return len(self.parts)

    def knows_all_of(self, part: EventPart) -> bool:
        return not part.facts


class EventStream(Stream[EventPart]):
    task: ClassVar[str] = "temporal-links"

    def describe(self) -> dict[str, Any]:
        counts = [part.arrived() | {"train": len(part.train)} for part in self]
        return {"name": self.name, "task": self.task, "parts": counts}

    def merged(self) -> Self:
        raise NotImplementedError

    def split(
        self,
        by: str,
        ratios: Sequence[float] | None = None,
        *,
        parts: int | None = None,
        first: float | None = None,
        times: npt.ArrayLike | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> Self:
        raise NotImplementedError


class Events(Layout):
    name = "events"
    data = "events (head TAB relation TAB tail TAB time)"
    files = "one file .events, one part"

    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        files = source if isinstance(source, tuple) else (source,)
        return all(isinstance(file, SourceFile) and file.ending == ".events" for file in files)

    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> EventStream:
        files = source if isinstance(source, tuple) else (source,)
        labels = {kind: Vocabulary(kind=kind) for kind in EventPart.vocabularies}
        entities, relations, times = labels.values()
        parts = []
        for number, file in enumerate(files):
            assert isinstance(file, SourceFile)
            known = {kind: len(labels[kind]) for kind in labels}
            (block,) = read_rows(file, 4)
            where = (entities, relations, entities, times)
            rows = [w.add(column) for w, column in zip(where, block.columns, strict=True)]
            ranges = {kind: range(known[kind], len(labels[kind])) for kind in labels}
            none = np.empty((0, 4), np.int64)
            arrays = dict(zip(SPLITS, (np.stack(rows, axis=1), none, none), strict=True))
            parts.append(EventPart.from_arrays(number, labels, ranges, arrays).checked())
        return EventStream(name, tuple(parts))


@pytest.fixture(autouse=True)
def events() -> Iterator[None]:
    before = dict(LAYOUTS)
    register_layout(Events)
    yield
    LAYOUTS.clear()
    LAYOUTS.update(before)


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "films.events"
    path.write_text(FACTS, encoding="utf-8")
    return path


def test_a_registered_layout_is_read(facts: Path) -> None:
    stream = read_stream(facts)
    assert isinstance(stream, EventStream) and (stream.name, stream.task) == (
        "films",
        "temporal-links",
    )
    assert stream[0].train.tolist() == [[0, 0, 2, 0], [1, 1, 0, 1]]
    assert describe(stream)["parts"] == [{"entities": 3, "relations": 2, "times": 2, "train": 2}]
    assert list(stream.vocabularies()) == ["entities", "relations", "times"]


def test_a_list_of_files_goes_to_the_layout_that_knows_them(facts: Path) -> None:
    later = facts.with_name("later.events")
    later.write_text("Alien\tgenre\tscience fiction\t2003\n", encoding="utf-8")
    stream = read_stream([facts, later])
    assert [part.arrived()["entities"] for part in stream] == [3, 1]
    graph = EventGraph.for_part(stream[0])  # type: ignore[arg-type]
    for part in stream:
        graph.add(part)  # type: ignore[arg-type]
    assert graph.vocabularies() == stream.vocabularies()


@pytest.mark.parametrize("graph", [None, EventGraph(), KnowledgeGraph()])
def test_a_part_is_read_whatever_it_arrives_in(facts: Path, graph: Graph | None) -> None:
    part, names = read_part(facts, graph)
    assert isinstance(part, EventPart) and part.facts == 2 and not names


def test_damage_is_named_by_the_layout(facts: Path) -> None:
    facts.write_text("Alien\tgenre\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"films\.events"):
        read_stream(facts)


def test_the_newest_kind_is_asked_first(facts: Path) -> None:
    class TextEvents(Events):
        name = "events as text"
        files = "one file .txt"

        def reads(self, source: Source, graph: Graph | None = None) -> bool:
            return isinstance(source, SourceFile) and source.ending == ".txt"

    text = facts.rename(facts.with_suffix(".txt"))
    with pytest.raises(DataError, match="fields"):
        read_stream(text)  # four columns are no triples
    register_layout(TextEvents)
    assert read_stream(text).task == "temporal-links"


def test_the_message_lists_every_layout(tmp_path: Path) -> None:
    lines = list_layouts().splitlines()
    heading = lines.index("  events (head TAB relation TAB tail TAB time):")
    assert lines[heading + 1] == "    one file .events, one part"
    assert all(f"    {layout.files}" in lines for layout in LAYOUTS.values())
    assert sum(line.startswith("  a network:") for line in lines) == 1
    unknown = tmp_path / "films.docx"
    unknown.touch()
    with pytest.raises(
        UserError, match=r"the ending does not tell the format; give --format\. Expected one of:"
    ) as raised:
        read_stream(unknown)
    assert str(raised.value).endswith(list_layouts())


def test_the_built_in_layouts_are_listed_as_users_know_them() -> None:
    del LAYOUTS["events"]
    assert (
        list_layouts()
        == """Expected one of:
  a knowledge graph (head TAB relation TAB tail):
    0/, 1/, ... each with train.txt, valid.txt, test.txt
    0.tsv, 1.tsv, ... (or of another format), one file per part
    train.txt, valid.txt, test.txt, one part
    a tree of .parquet files, one part
    one file .tsv, .csv, .txt, .jsonl, .parquet, .arrow, .nt, .ttl, .rdf, .db, one part
  a network:
    features.txt, labels.txt and 0/, 1/, ... with edgelist.txt, train.txt, valid.txt, test.txt
    edges.csv and nodes.csv (columns node, class, part, split, and features)
    one file .npz (arrays edges, features, classes, ...)
    for a network that is there: one file .tsv, .csv, .parquet, ..., of source and target
Text files may be compressed (.gz), a folder may be an archive (.tar.gz)."""
    )


def test_a_name_belongs_to_one_module() -> None:
    register_layout(Events)  # as a notebook does whose cell is run twice
    other = type("Other", (Events,), {"__module__": "elsewhere"})
    with pytest.raises(UserError, match=r"layout 'events' is tests\.readers\.test_layouts\.Events"):
        register_layout(other)


def test_a_kind_of_stream_brings_its_writer(facts: Path, tmp_path: Path) -> None:
    stream = read_stream(facts)
    with pytest.raises(UserError, match="no way to write a EventStream"):
        write_stream(stream, tmp_path / "copy.events")

    @dataclass(frozen=True, eq=False)
    class Written(EventStream):
        pass

    @write_to.register(Written)
    def write(stream: Written, path: Path) -> None:
        path.write_text(FACTS, encoding="utf-8")

    target = tmp_path / "copy.events"
    write_stream(Written(stream.name, stream.parts), target)  # type: ignore[arg-type]
    again = read_stream(target)
    assert again[0].train.tolist() == stream[0].train.tolist()
    with pytest.raises(UserError, match="exists already"):
        write_stream(replace(stream), target)
