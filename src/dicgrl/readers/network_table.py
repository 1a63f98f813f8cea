"""A network as arrays: the common form of all layouts, which is checked and divided into parts.

The arrays hold either a whole network, or what is new in an existing one (a `NetworkGraph`). In the
second case only new nodes are listed, and edges may also name old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, field

import numpy as np

from dicgrl.common.room import room
from dicgrl.errors import DataError, shown, shown_value
from dicgrl.graph import NetworkGraph, NetworkStream, NetworkStreamBuilder, Vocabulary
from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.holdout import NOTHING, HoldOut
from dicgrl.graph.network.holdout import hold_out_nodes

_ROWS = 1 << 12  # rows of features to check at a time


@dataclass(slots=True)
class NetworkTable:
    """A network as arrays.

    Attributes:
        source: Name of the file or folder in messages.
        nodes: Labels of the n nodes.
        edges: Positions of the ends in the list `nodes + old`, [m, 2].
        features: [n, F].
        classes: Class label of each node, "" where it is not known.
        part: The part with which each node arrives, [n].
        split: 0, 1, 2 for train, valid, test, -1 for none of them, [n].
        edge_part: The part with which each edge arrives, [m].
        old: Nodes of the existing network that an edge mentions.
        names: Readable names of nodes.
        class_order: Classes in the order of their ids; the natural order if not given.
    """

    source: str
    nodes: Sequence[str]
    edges: IntArray
    features: FloatArray
    classes: Sequence[str]
    part: IntArray
    split: IntArray
    edge_part: IntArray
    old: Sequence[str] = ()
    names: dict[str, str] = field(default_factory=dict)
    class_order: Sequence[str] = ()

    def stream(self, name: str) -> NetworkStream:
        """Divide into parts, with ids in order of arrival; classes of one part in their order."""
        builder = NetworkStreamBuilder(name, self.features.shape[1], self.old)
        rank = {label: i for i, label in enumerate(self.class_order)}.__getitem__
        key = rank if self.class_order else natural_order
        code, labels = class_codes(self.classes)
        class_id = np.full(len(labels), -1, dtype=np.int64)
        node_id = np.empty(len(self.nodes) + len(self.old), dtype=np.int64)
        node_id[len(self.nodes) :] = np.arange(len(self.old))
        last = max(self.part.max(initial=0), self.edge_part.max(initial=0))
        for part in range(int(last) + 1):
            arriving = np.flatnonzero(self.part == part)
            first = len(builder.nodes)
            node_id[arriving] = builder.nodes.add(self.nodes[i] for i in arriving.tolist())
            seen = sorted({*code[arriving].tolist()} - {0}, key=lambda i: key(labels[i]))
            class_id[seen] = builder.classes.add(labels[i] for i in seen)
            builder.add(
                node_id[self.edges[self.edge_part == part]],
                _taken(self.features, arriving),
                class_id[code[arriving]],
                *(first + np.flatnonzero(self.split[arriving] == number) for number in range(3)),
            )
        return builder.build(self.names)


def _taken(features: FloatArray, rows: IntArray) -> FloatArray:
    """Some rows of features, in order; the same array if they are all."""
    if len(rows) == len(features):
        return features
    taken = room((len(rows), features.shape[1]), np.float32)
    for first in range(0, len(rows), _ROWS):
        taken[first : first + _ROWS] = features[rows[first : first + _ROWS]]
    return taken


class Positions:
    """Positions of nodes by label: first the listed nodes, then old ones as they are mentioned.

    Args:
        nodes: The listed nodes.
        graph: The existing network; without one there are no old nodes.

    Example:
        >>> positions = Positions(["a", "b"])
        >>> positions.of(["b", "c"])
        array([ 1, -1])
    """

    def __init__(self, nodes: Sequence[str], graph: NetworkGraph | None = None) -> None:
        self.listed = {label: i for i, label in enumerate(nodes)}
        self.graph = graph
        self._old: dict[str, int] = {}

    def of(self, labels: Iterable[str]) -> IntArray:
        """The position of each label, -1 for a node that is neither listed nor known."""
        return np.fromiter(map(self._find, labels), dtype=np.int64)

    def _find(self, label: str) -> int:
        at = self.listed.get(label, -1)
        if at >= 0 or not self.is_old(label):
            return at
        return self._old.setdefault(label, len(self.listed) + len(self._old))

    def is_old(self, label: str) -> bool:
        """Whether the network knew the node before."""
        return self.graph is not None and label in self.graph.nodes

    @property
    def old(self) -> list[str]:
        """Old nodes that were looked up so far."""
        return list(self._old)

    def unknown(self, label: str, why: str) -> str:
        """The message about a node that is neither listed nor known.

        Args:
            label: The node.
            why: What a node that is listed would have.
        """
        also = "" if self.graph is None else ", and it is not in this run"
        return f"unknown node {shown(label)}: {why}{also}"


def class_codes(classes: Iterable[str]) -> tuple[IntArray, list[str]]:
    """A number for the class of each node, 0 where it is not known, and the class of each number.

    Example:
        >>> class_codes(["drama", "", "drama", "horror"])
        (array([1, 0, 1, 2]), ['', 'drama', 'horror'])
    """
    known = Vocabulary([""], kind="class")
    return known.add(classes), list(known)


def natural_order(label: str) -> tuple[bool, int, str, str]:
    """Sort key of classes: numbers by value and before words.

    Example:
        >>> sorted(["10", "drama", "9"], key=natural_order)
        ['9', '10', 'drama']
    """
    if not label.isdecimal():
        return True, 0, "", label
    # Not int(label): Python refuses to convert thousands of digits.
    digits = "".join(str(int(digit)) for digit in label).lstrip("0")
    return False, len(digits), digits, label


def later_end(part: IntArray, edges: IntArray) -> IntArray:
    """The part of each edge's later node, with which it arrives by default."""
    later: IntArray = part[edges].max(axis=1, initial=0)
    return later


def checked_table(
    source: str,
    nodes: Sequence[str],
    edges: IntArray,
    features: FloatArray,
    classes: Sequence[str],
    *,
    part: IntArray | None = None,
    split: IntArray | None = None,
    edge_part: IntArray | None = None,
    hold_out: HoldOut = NOTHING,
    positions: Positions | None = None,
) -> NetworkTable:
    """Check that the arrays of a network fit together, and fill in what is missing.

    Args:
        source: What messages call it.
        nodes: Node labels.
        edges: Positions in `nodes` and of old nodes after them, [m, 2].
        features: [n, F].
        classes: Class label of each node, "" where it is not known.
        part: The part with which each node arrives, [n]; the first one unless given. A part may
            bring edges alone.
        split: 0, 1, 2 for train, valid, test, -1 for none; train wherever a class is known unless
            given.
        edge_part: The part with which each edge arrives; that of its later node unless given.
        hold_out: What the training nodes of a part give up for a set that it does not have.
        positions: What gave the edges their positions, where nodes arrive in a known network.
    """
    graph, old = (positions.graph, positions.old) if positions else (None, [])
    if len(nodes) == 0 and graph is None:
        raise DataError(source, "there are no nodes")
    part = np.zeros(len(nodes), dtype=np.int64) if part is None else part
    check_lengths(source, nodes, features=features, classes=classes, part=part, split=split)
    features = _checked_features(source, nodes, features, graph)
    _check_edges(source, edges, len(nodes) + len(old))
    arrival = later_end(np.concatenate([part, np.zeros(len(old), np.int64)]), edges)
    edge_part = arrival if edge_part is None else edge_part
    _check_arrival(source, edge_part, arrival)
    parts = np.unique(np.concatenate([part, edge_part]))
    if not np.array_equal(parts, np.arange(len(parts))):
        found = shown_value(parts[:20].tolist())
        raise DataError(source, f"parts must be 0, 1, 2, ... without a gap; found {found}")
    code, _ = class_codes(classes)
    split = np.where(code > 0, 0, -1) if split is None else split
    _check_split(source, nodes, classes, split)
    split = _divided(source, code, part, split, hold_out)
    return NetworkTable(source, nodes, edges, features, classes, part, split, edge_part, old)


def check_lengths(source: str, nodes: Sequence[str], **columns: Sized | None) -> None:
    """Refuse columns that do not have one row per node, and duplicate nodes."""
    for what, column in columns.items():
        if column is not None and len(column) != len(nodes):
            raise DataError(
                source,
                f"{what} has {len(column)} rows; expected one for each of {len(nodes)} nodes",
            )
    if len(set(nodes)) != len(nodes):
        label = next(label for label, times in Counter(nodes).items() if times > 1)
        raise DataError(source, f"duplicate node {shown(label)}")


def _checked_features(
    source: str, nodes: Sequence[str], features: FloatArray, graph: NetworkGraph | None
) -> FloatArray:
    if features.ndim != 2:
        raise DataError(source, f"features have shape {list(features.shape)}; expected [n, F]")
    features = of_width(source, features, graph)
    for first in range(0, len(features), _ROWS):
        bad = np.argwhere(~np.isfinite(features[first : first + _ROWS]))
        if len(bad):
            row, column = bad[0] + (first, 0)
            raise DataError(
                source,
                f"feature {column} of node {shown(nodes[row])} is {features[row, column]}; "
                "not finite",
            )
    return features


def _check_edges(source: str, edges: IntArray, nodes: int) -> None:
    if len(edges) and (edges.min() < 0 or edges.max() >= nodes):
        row = int(np.argmax(((edges < 0) | (edges >= nodes)).any(axis=1)))
        raise DataError(source, f"edge {row} {edges[row].tolist()} mentions an unknown node")


def _check_arrival(source: str, edge_part: IntArray, arrival: IntArray) -> None:
    """An edge does not arrive before its nodes."""
    if edge_part.shape != arrival.shape:
        raise DataError(source, f"edge_part has {len(edge_part)} rows for {len(arrival)} edges")
    early = np.flatnonzero(edge_part < arrival)
    if len(early):
        row = int(early[0])
        raise DataError(
            source,
            f"edge {row} arrives with part {edge_part[row]}, its nodes by part {arrival[row]}",
        )


def _divided(
    source: str, code: IntArray, part: IntArray, split: IntArray, hold_out: HoldOut
) -> IntArray:
    """The split with shares of the training nodes held out, part by part, where a set is missing.

    One node of every class stays.
    """
    split = split.copy()
    has = []
    for index in np.unique(part):
        here = part == index
        has.append((bool((split[here] == 1).any()), bool((split[here] == 2).any())))
        shares = hold_out.where_missing(*has[-1])
        train = np.flatnonzero(here & (split == 0))
        sets = hold_out_nodes(code[train], shares.valid, shares.test, shares.generator(int(index)))
        for number, chosen in enumerate(sets):
            split[train[chosen]] = number
    hold_out.warn_if_unused(source, has)
    return split


def _check_split(
    source: str, nodes: Sequence[str], classes: Sequence[str], split: IntArray
) -> None:
    known = np.fromiter(map(bool, classes), dtype=np.bool_)
    wrong = np.flatnonzero((split < -1) | (split > 2) | ((split >= 0) & ~known))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(
            source,
            f"node {shown(nodes[at])} has split {split[at]} and class {shown(classes[at])}; "
            "expected 0, 1, 2 (train, valid, test) with a class, or -1",
        )


def of_width(source: str, features: FloatArray, graph: NetworkGraph | None) -> FloatArray:
    """Features [n, F] of nodes that arrive in a network, which says what F is.

    Raises:
        DataError: It is another.
    """
    if graph is None or features.shape[1] == graph.num_features:
        return features
    if not len(features):  # nobody said how many features nothing has
        return np.empty((0, graph.num_features), dtype=np.float32)
    raise DataError(
        source, f"{features.shape[1]} features per node; this run has {graph.num_features}"
    )


def already_there(label: str) -> str:
    """The message about an old node that is listed again."""
    return (
        f"node {shown(label)} is already in this run; list new nodes only, edges may name old ones"
    )


def refuse_duplicates(
    source: str, labels: Sequence[str], first_line: int = 1, graph: NetworkGraph | None = None
) -> None:
    """Refuse a node that is duplicate or already known; the message names the lines."""
    seen: dict[str, int] = {}
    for line, label in enumerate(labels, start=first_line):
        if not label:
            raise DataError(source, "the node has no label", line)
        if graph is not None and label in graph.nodes:
            raise DataError(source, already_there(label), line)
        if seen.setdefault(label, line) != line:
            raise DataError(
                source, f"duplicate node {shown(label)}, first in line {seen[label]}", line
            )
