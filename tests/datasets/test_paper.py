"""The paper's datasets against the tables of its appendix, typed off the paper once more."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl import KnowledgeGraph, KnowledgeStream, describe, load_stream
from dicgrl.datasets.paper import PAPER_DATASETS

# Tables "Statistics of knowledge graph datasets" and "Statistics of three citation datasets".
KNOWLEDGE = {
    "FB15k-237": """
        entities              11,632 727 727 727 728
        relations             236 236 236 236 237
        train                 178,274 20,347 23,317 26,325 23,852
        valid                 11,726 1,263 1,382 1,635 1,529
        test                  13,681 1,556 1,642 1,801 1,786
        accumulated_entities  11,632 12,359 13,086 13,813 14,541
        accumulated_relations 236 236 236 236 237""",
    "WN18RR": """
        entities              32,754 2047 2047 2047 2048
        relations             11 11 11 11 11
        train                 54,570 7,442 8,727 8,195 7,901
        valid                 1,899 269 272 309 285
        test                  1,970 273 321 284 286
        accumulated_entities  32,754 34,801 36,848 38,895 40,943
        accumulated_relations 11 11 11 11 11""",
}
NETWORKS = {
    "cora": """
        nodes             1,895 271 271 271
        edges             2,475 764 1,046 1,144
        train             568 81 81 81
        valid             379 54 54 54
        test              948 136 136 136
        accumulated_nodes 1,895 2,166 2,437 2,708
        accumulated_edges 2,475 3,239 4,285 5,429""",
    "citeseer": """
        nodes             2,328 333 333 333
        edges             2,347 685 742 958
        train             698 99 99 99
        valid             466 67 67 67
        test              1,164 167 167 167
        accumulated_nodes 2,328 2,661 2,994 3,327
        accumulated_edges 2,347 3,032 3,774 4,732""",
    "pubmed": """
        nodes             13,801 1,972 1,972 1,972
        edges             22,287 6,272 7,533 8,246
        train             4,140 591 591 591
        valid             2,760 395 395 395
        test              6,901 986 986 986
        accumulated_nodes 13,801 15,773 17,745 19,717
        accumulated_edges 22,287 28,559 36,092 44,338""",
}
CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}
FEATURES = {"cora": 1_433, "citeseer": 3_703, "pubmed": 500}
TABLES = KNOWLEDGE | NETWORKS


def table(name: str) -> dict[str, list[int]]:
    rows = (line.split() for line in TABLES[name].strip().splitlines())
    return {row: [int(number.replace(",", "")) for number in numbers] for row, *numbers in rows}


@functools.cache
def counts_of(name: str) -> dict[str, Any]:
    return describe(load_stream(name))


def test_all_five_are_there() -> None:
    assert set(PAPER_DATASETS) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_published_counts_are_those_of_the_paper(name: str) -> None:
    dataset = PAPER_DATASETS[name]
    assert {row: list(values) for row, values in dataset.counts.items()} == table(name)
    assert dataset.classes == CLASSES.get(name)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("error::dicgrl.DataWarning")  # everything in them is known
def test_appendix_number_for_number(name: str, paper_data: Path) -> None:
    counts = counts_of(name)
    for row, values in table(name).items():
        assert [part[row] for part in counts["parts"]] == values, row
    assert counts.get("classes") == CLASSES.get(name)
    assert counts.get("features") == FEATURES.get(name)
    assert PAPER_DATASETS[name].differences(counts) == []
    assert counts["name"] == name


def test_differences_are_told() -> None:
    dataset = PAPER_DATASETS["cora"]
    rows = table("cora")
    parts = [{row: values[i] for row, values in rows.items()} for i in range(4)]
    assert dataset.differences({"parts": parts, "classes": 7}) == []
    parts[2]["train"] += 1
    assert dataset.differences({"parts": parts, "classes": 6}) == [
        "part 2: 82 train; published: 81",
        "6 classes; published: 7",
    ]
    assert dataset.differences({"parts": parts[:3], "classes": 7}) == ["3 parts; published: 4"]


def test_knowledge_arrives_by_the_rule_of_the_paper(paper_data: Path) -> None:
    """A triple arrives with the later of its two entities; nothing of a later part is needed."""
    for name in KNOWLEDGE:
        stream = load_stream(name)
        assert isinstance(stream, KnowledgeStream)
        graph = KnowledgeGraph()
        for part in stream:
            for rows in (part.train, part.valid, part.test):
                latest = rows[:, [0, 2]].max(axis=1)
                assert (latest >= part.new_entities.start).all()
                assert (latest < part.new_entities.stop).all()
            graph.add(part)
        assert graph.entities == stream.entities  # the stream's ids are the graph's


def test_untrained_entities(paper_data: Path) -> None:
    for name, count in (("FB15k-237", 80), ("WN18RR", 2_194)):
        assert counts_of(name)["parts"][0]["irregular"]["untrained"] == count


def test_irregular_edges_of_networks(paper_data: Path) -> None:
    """Cora's 5,429 rows are 5,278 edges; CiteSeer has 124 self loops, PubMed 3."""

    def total(name: str, key: str) -> int:
        return sum(part["irregular"][key] for part in counts_of(name)["parts"])

    assert 5_429 - sum(total("cora", k) for k in ("duplicates", "repeated", "self_loops")) == 5_278
    assert total("citeseer", "self_loops") == 124 and total("pubmed", "self_loops") == 3
    assert total("citeseer", "featureless") == 15


def test_readable_names(paper_data: Path) -> None:
    stream = load_stream("FB15k-237")
    assert isinstance(stream, KnowledgeStream)
    named = [label for label in stream.entities if label in stream.names]
    assert len(named) == 14_515
    assert stream.names["/m/02mjmr"] == "Barack Obama"


def test_loading_needs_little_memory(paper_data: Path) -> None:
    # Not getrusage: on Linux a child starts with the peak of the process that made it.
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak memory of a process is read from /proc")
    code = (
        "import dicgrl; from pathlib import Path\n"
        "assert len(dicgrl.load_stream('FB15k-237')) == 5\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(done.stdout) < 300 * 1000  # kB


def test_reflexive_relations_of_fb15k237(paper_data: Path) -> None:
    """What docs/protocol.md says of the rule."""
    graph = KnowledgeGraph()
    for part in load_stream("FB15k-237"):
        graph.add(part)
    relations = np.arange(len(graph.relations))
    loops = graph.train[graph.train[:, 0] == graph.train[:, 2], 1]
    assert (len(relations), len(np.unique(loops))) == (237, 17)
    assert graph.is_reflexive(relations).sum() == 6
