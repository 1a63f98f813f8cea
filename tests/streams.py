"""Small random streams for property tests, each beside the plain lists it was made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dicgrl.graph import (
    SPLITS,
    KnowledgeStream,
    KnowledgeStreamBuilder,
    NetworkStream,
    NetworkStreamBuilder,
)

Triple = tuple[str, str, str]
KnowledgeLists = list[dict[str, list[Triple]]]  # one dict of split -> triples for each part

# What a label can hold: anything but control characters, line ends and a byte order mark.
line_text = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs"), exclude_characters="\ufeff"
    ),
    min_size=1,
    max_size=6,
)


def triples(entities: st.SearchStrategy[str], min_size: int = 0) -> st.SearchStrategy[list[Triple]]:
    one = st.tuples(entities, st.sampled_from(["likes", "made", "is"]), entities)
    return st.lists(one, min_size=min_size, max_size=8)


@st.composite
def knowledge_lists(
    draw: st.DrawFn,
    entities: st.SearchStrategy[str] | None = None,
    max_parts: int = 4,
    min_train: int = 0,
) -> KnowledgeLists:
    chosen = st.sampled_from("abcdefgh") if entities is None else entities
    return [
        {
            split: draw(triples(chosen, min_size=min_train if split == "train" else 0))
            for split in SPLITS
        }
        for _ in range(draw(st.integers(1, max_parts)))
    ]


def knowledge_stream(parts: KnowledgeLists, name: str = "random") -> KnowledgeStream:
    builder = KnowledgeStreamBuilder(name)
    for part in parts:
        rows = [
            builder.rows([t[0] for t in part[s]], [t[1] for t in part[s]], [t[2] for t in part[s]])
            for s in SPLITS
        ]
        builder.add(*rows)
    return builder.build()


def labelled(stream: KnowledgeStream) -> KnowledgeLists:
    """The triples of a stream in words."""
    entity, relation = list(stream.entities), list(stream.relations)
    return [
        {
            split: [(entity[h], relation[r], entity[t]) for h, r, t in getattr(part, split)]
            for split in SPLITS
        }
        for part in stream
    ]


@dataclass
class Node:
    label: str
    cls: str  # "" where it is not known
    role: int  # 0, 1, 2 for train, valid, test, -1 for none
    features: tuple[float, ...]


@dataclass
class NetworkLists:
    nodes: list[list[Node]]  # by part
    edges: list[list[tuple[str, str]]]  # by part


@st.composite
def network_lists(draw: st.DrawFn, max_parts: int = 4, min_nodes: int = 0) -> NetworkLists:
    found = NetworkLists([], [])
    known: list[str] = []
    value = st.floats(-9, 9, width=32)
    for part in range(draw(st.integers(1, max_parts))):
        nodes = []
        for i in range(draw(st.integers(max(min_nodes, part == 0), 4))):
            cls = draw(st.sampled_from(["", "x", "10", "9"]))
            role = draw(st.integers(-1, 2)) if cls else -1
            nodes.append(Node(f"p{part}n{i}", cls, role, draw(st.tuples(value, value))))
        known += [node.label for node in nodes]
        end = st.sampled_from(known)
        found.nodes.append(nodes)
        found.edges.append(draw(st.lists(st.tuples(end, end), max_size=8)))
    return found


def network_stream(lists: NetworkLists, name: str = "random") -> NetworkStream:
    builder = NetworkStreamBuilder(name, num_features=2)
    for nodes, edges in zip(lists.nodes, lists.edges, strict=True):
        ids = builder.nodes.add(node.label for node in nodes)
        labels = [int(builder.classes.add([n.cls])[0]) if n.cls else -1 for n in nodes]
        roles = np.array([node.role for node in nodes], dtype=np.int64)
        builder.add(
            [builder.nodes.ids(edge).tolist() for edge in edges],
            np.array([node.features for node in nodes], dtype=np.float32).reshape(-1, 2),
            np.array(labels, dtype=np.int64),
            *(ids[roles == number] for number in range(3)),
        )
    return builder.build()


def network_in_words(stream: NetworkStream) -> NetworkLists:
    found = NetworkLists([], [])
    names, classes = list(stream.nodes), list(stream.classes)
    for part in stream:
        role = {
            int(node): number
            for number, split in enumerate(SPLITS)
            for node in getattr(part, split)
        }
        found.nodes.append(
            [
                Node(
                    names[node],
                    classes[part.labels[i]] if part.labels[i] >= 0 else "",
                    role.get(node, -1),
                    tuple(part.features[i].tolist()),
                )
                for i, node in enumerate(part.new_nodes)
            ]
        )
        found.edges.append([(names[a], names[b]) for a, b in part.edges])
    return found
