"""Networks that change: any sequence of changes against plain Python lists, and replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dicgrl import NetworkGraph
from dicgrl.errors import UserError
from dicgrl.graph import SPLITS
from dicgrl.graph.change import FORGET, LEARN, MERGE, RENAME, REVISE, Change
from dicgrl.readers import NetworkFacts

node = st.integers(0, 11)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just(LEARN),
            st.lists(st.tuples(st.sampled_from("xyz-"), st.sampled_from(SPLITS)), max_size=4),
            st.lists(st.tuples(node, node), max_size=5),
        ),
        st.tuples(st.just(FORGET), st.lists(st.tuples(node, node), max_size=3), st.lists(node)),
        st.tuples(st.just(RENAME), st.sampled_from(("nodes", "classes")), node),
        st.tuples(st.just(MERGE), st.sampled_from(("nodes", "classes")), node, node),
        st.tuples(
            st.just(REVISE), st.lists(node, max_size=3, unique=True), st.sampled_from("xyzw")
        ),
    ),
    max_size=8,
)


@dataclass
class Slow:
    edges: list[list[tuple[int, int]]] = field(default_factory=list)  # of each part
    sets: list[dict[str, list[int]]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    features: list[float] = field(default_factory=list)
    merged: dict[str, set[int]] = field(default_factory=lambda: {"nodes": set(), "classes": set()})

    def leave(self, nodes: list[int]) -> None:
        for part in self.sets:
            for split in SPLITS:
                part[split] = [n for n in part[split] if n not in nodes]

    def merge_nodes(self, kept: int, gone: int) -> None:
        seen: set[tuple[int, int]] = set()
        for number, part in enumerate(self.edges):
            renamed = [tuple(sorted(kept if n == gone else n for n in edge)) for edge in part]
            left = []
            for edge in renamed:
                if edge[0] != edge[1] and edge not in seen:
                    left.append(edge)
                    seen.add(edge)  # type: ignore[arg-type]
            self.edges[number] = left  # type: ignore[assignment]
        if self.labels[kept] < 0:
            self.labels[kept] = self.labels[gone]
            for chosen in self.sets:
                for split in SPLITS:
                    chosen[split] = [kept if n == gone else n for n in chosen[split]]
        else:
            self.leave([gone])
        self.labels[gone] = -1
        self.merged["nodes"].add(gone)


def live(graph: NetworkGraph, slow: Slow, sequence: list[Any]) -> list[Change]:
    history = []
    for number, step in enumerate(sequence):
        change = happen(graph, slow, number, *step)
        if change is not None:
            history.append(graph.apply(change))
            check(graph, slow)
    return history


def happen(graph: NetworkGraph, slow: Slow, number: int, kind: str, *told: Any) -> Change | None:
    """The change that a step is, once it has happened to the slow one; None where it makes none."""
    known = len(graph.nodes)
    if kind == LEARN:
        nodes, pairs = told
        count = known + len(nodes)
        edges = [
            (a, b) for a, b in pairs if max(a, b) < count and not {a, b} & slow.merged["nodes"]
        ]
        names = [*graph.nodes, *(f"n{number}-{i}" for i in range(len(nodes)))]
        facts = NetworkFacts(
            names[known:],
            np.full((len(nodes), 1), number, np.float32) if nodes else (),
            [f"{c}" if c != "-" else "" for c, _ in nodes],
            [(names[a], names[b]) for a, b in edges],
            [split if c != "-" else "" for c, split in nodes],
        )
        if not known and not nodes:
            return None
        part = facts.part(graph if known else None)
        old = {edge for arrived in slow.edges for edge in arrived}
        ordered = [(min(a, b), max(a, b)) for a, b in edges if a != b]
        slow.edges.append(list(dict.fromkeys(e for e in ordered if e not in old)))
        new = part.classes.labels(part.new_classes)
        unseen = [label for label in new if label not in graph.classes]
        ids = {label: len(graph.classes) + i for i, label in enumerate(unseen)}
        ids |= {c: int(graph.classes.ids([c])[0]) for c in "xyz" if c in graph.classes}
        slow.labels += [ids[c] if c != "-" else -1 for c, _ in nodes]
        slow.features += [float(number)] * len(nodes)
        chosen = {
            s: [known + i for i, (c, split) in enumerate(nodes) if split == s and c != "-"]
            for s in SPLITS
        }
        slow.sets.append(chosen)
        return Change(LEARN, part)
    if not known:
        return None
    if kind == FORGET:
        pairs, nodes = told
        ends = np.array([e for e in pairs if max(e) < known], np.int64).reshape(-1, 2)
        asked = np.array([n for n in nodes if n < known], np.int64)
        found = graph.known_facts(ends, asked, graph.labels[asked])
        gone = set(map(tuple, found["edges"].tolist()))
        slow.edges = [[e for e in part if e not in gone] for part in slow.edges]
        slow.leave(found["nodes"].tolist())
        for n in found["nodes"].tolist():
            slow.labels[n] = -1
        return Change(FORGET, None, found) if len(gone) + len(found["nodes"]) else None
    if kind == RENAME:
        name, at = told
        if at >= len(graph.vocabularies()[name]) or at in slow.merged[name]:
            return None
        labels = {"vocabulary": name, "new": [f"new{number}"]}
        return Change(RENAME, None, {"ids": np.array([at])}, labels)
    if kind == MERGE:
        name, kept, gone_id = told
        exist = max(kept, gone_id) < len(graph.vocabularies()[name]) and kept != gone_id
        if not exist or {kept, gone_id} & slow.merged[name]:
            return None
        if name == "nodes":
            slow.merge_nodes(kept, gone_id)
        else:
            slow.labels = [kept if c == gone_id else c for c in slow.labels]
            slow.merged["classes"].add(gone_id)
        ids = {"ids": np.array([[kept, gone_id]])}
        return Change(MERGE, None, ids, {"vocabulary": name})
    nodes, label = told
    asked_nodes = [n for n in nodes if n < known and n not in slow.merged["nodes"]]
    names = graph.nodes.labels(asked_nodes)
    features = np.full((len(names), 1), -number, np.float32)
    if not names:
        return None
    try:
        change = NetworkFacts(names, features, [label] * len(names)).revision(graph)
    except UserError:
        return None
    changed = change.arrays["nodes"].tolist()
    slow.leave(changed)
    slow.edges.append([])
    slow.sets.append({"train": changed, "valid": [], "test": []})
    for n in asked_nodes:
        slow.features[n] = float(-number)
    for n, c in zip(changed, change.arrays["labels"].tolist(), strict=True):
        slow.labels[n] = c
    return change


def check(graph: NetworkGraph, slow: Slow) -> None:
    assert graph.labels.tolist() == slow.labels
    assert graph.features[:, 0].tolist() == slow.features
    assert graph.num_parts == len(slow.edges)
    every = [edge for part in slow.edges for edge in part]
    assert list(map(tuple, graph.edges.tolist())) == every
    for number, sets in enumerate(slow.sets):
        for split in SPLITS:
            assert sorted(graph.part_nodes(split, number).tolist()) == sorted(sets[split])
        edges = graph.edge_index("part", number)[:, : len(slow.edges[number])]
        assert list(map(tuple, edges.T.tolist())) == slow.edges[number]
    nodes = np.arange(len(graph.nodes))
    positions, rows = graph.edges_of(nodes)
    for n in nodes:
        at = [row for row, edge in enumerate(every) if n in edge]
        assert sorted(rows[positions == n].tolist()) == at
    for name, merged in slow.merged.items():
        assert graph.retired(name).tolist() == sorted(merged)


@given(steps)
def test_any_life_is_that_of_plain_lists_and_can_be_replayed(sequence: list[Any]) -> None:
    graph, slow = NetworkGraph(1), Slow()
    history = live(graph, slow, sequence)
    again = NetworkGraph(1)
    again.replay(history)
    check(again, slow)
    assert list(again.nodes) == list(graph.nodes)
    assert list(again.classes) == list(graph.classes)
    nodes = np.arange(len(graph.nodes))
    for ours, theirs in zip(graph.edges_of(nodes), again.edges_of(nodes), strict=True):
        assert ours.tolist() == theirs.tolist()  # in the same order, which draws depend on
