"""New nodes and edges of a network, given by a program as lists and arrays instead of files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph import SPLITS, NetworkGraph, NetworkPart, Vocabulary
from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.change import REVISE, Change
from dicgrl.graph.frames import Frame, frame_rows
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.network_table import Positions, checked_table, of_width, refuse_duplicates
from dicgrl.readers.npz import as_features, edges_by_label

_NAME = "NetworkFacts"
_SPLIT_NUMBERS = {**{split: i for i, split in enumerate(SPLITS)}, "": -1}


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """New nodes and edges of a network, for `Learner.learn`.

    Labels are text or whole numbers; 7 and "7" are the same label.

    Attributes:
        nodes: Labels of the n new nodes.
        features: Their features, [n, F], with as many columns as the network has.
        classes: Their classes, which may be new ones; "", -1 or None for a node whose class is not
            known. If left out, no class is known.
        edges: Pairs of labels, [m, 2]; the ends may be new nodes or nodes of the network.
        split: "train", "valid", "test" or "" for each new node. If left out, all nodes with a class
            are training examples.
        source: The file that they were read from, for what `revise` says of them.

    Example:
        >>> first = NetworkFacts(
        ...     nodes=["Alien", "Brazil"],
        ...     features=[[1, 0], [0, 1]],
        ...     classes=["horror", "satire"],
        ... )
        >>> network = NetworkGraph(num_features=2)
        >>> network.add(first.part())
        NetworkPart(0: 2 new nodes, 0 edges, 2 train, 0 valid, 0 test)
        >>> more = NetworkFacts(
        ...     ["Aliens"], [[1, 1]], ["horror"], edges=[("Aliens", "Alien"), ("Brazil", "Alien")]
        ... )
        >>> network.add(more.part(network))
        NetworkPart(1: 1 new nodes, 2 edges, 1 train, 0 valid, 0 test)
    """

    nodes: Sequence[object] | npt.NDArray[Any] = ()
    features: npt.ArrayLike = ()
    classes: Sequence[object] | npt.NDArray[Any] | None = None
    edges: Sequence[tuple[object, object]] | npt.NDArray[Any] = ()
    split: Sequence[str] | npt.NDArray[Any] | None = None
    source: str = ""

    def part(self, graph: NetworkGraph | None = None) -> NetworkPart:
        """Convert to a part of a network, or to the first part if there is no network yet.

        Raises:
            DataError: They do not fit together, or not to the network.
        """
        nodes = _labels("nodes", self.nodes)
        refuse_duplicates(f"{_NAME}.nodes", nodes, graph=graph)
        classes = [""] * len(nodes)
        if self.classes is not None:
            classes = ["" if c == "-1" else c for c in _labels("classes", self.classes)]
        split = None if self.split is None else _split_numbers(_labels("split", self.split))
        positions = Positions(nodes, graph)
        table = checked_table(
            _NAME,
            nodes,
            self._edges(positions),
            self._features(),
            classes,
            split=split,
            positions=positions,
        )
        return table.stream("learned")[0]

    def known_in(self, graph: NetworkGraph) -> tuple[dict[str, IntArray], int]:
        """The facts that are known in a network, for `forget`, and the number of facts.

        A node's class is a fact, its features are none; a class that is not given is any.

        Raises:
            DataError: They are not labels.
        """
        nodes = _labels("nodes", self.nodes)
        classes = [""] * len(nodes) if self.classes is None else _labels("classes", self.classes)
        if len(classes) != len(nodes):
            raise DataError(f"{_NAME}.classes", f"{len(classes)} for {len(nodes)} nodes")
        edges = _objects("edges", self.edges).reshape(-1, 2)
        ends = [_labels("edges", edges[:, side]) for side in (0, 1)]
        return pairs_known_in(
            graph, [*zip(*ends, strict=True)], [*zip(nodes, classes, strict=True)]
        )

    def revision(self, graph: NetworkGraph) -> Change:
        """The change by which nodes of a network have these classes and features.

        Raises:
            DataError: A node is not known, or they do not fit together or to the network.
        """
        nodes = _labels("nodes", self.nodes)
        refuse_duplicates(self.source or f"{_NAME}.nodes", nodes)
        if len(_objects("edges", self.edges)):
            raise DataError(f"{_NAME}.edges", "edges between known nodes are learned, or forgotten")
        ids = graph.nodes.ids(nodes)
        classes = [""] * len(nodes) if self.classes is None else _labels("classes", self.classes)
        split = ["train"] * len(nodes) if self.split is None else _labels("split", self.split)
        features = self._features()
        for what, given in (("classes", classes), ("split", split)):
            if len(given) != len(nodes):
                raise DataError(f"{_NAME}.{what}", f"{len(given)} for {len(nodes)} nodes")
        if len(features):
            place = self.source or f"{_NAME}.features"
            if len(features) != len(nodes):
                raise DataError(place, f"{len(features)} rows for {len(nodes)} nodes")
            features = of_width(place, features, graph)
        return _revision(graph, nodes, ids, classes, _split_numbers(split), features)

    def _edges(self, positions: Positions) -> IntArray:
        pairs = _objects("edges", self.edges)
        if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise DataError(
                f"{_NAME}.edges", f"shape {list(pairs.shape)}; expected pairs of labels [m, 2]"
            )
        return edges_by_label(f"{_NAME}.edges", pairs, positions)

    def _features(self) -> FloatArray:
        try:
            features = np.asarray(self.features)
        except ValueError as error:
            raise DataError(f"{_NAME}.features", f"expected numbers [n, F] ({error})") from error
        if features.shape == (0,):
            features = np.empty((0, 0), dtype=np.float32)
        return as_features(f"{_NAME}.features", features)


def edges_of(given: Any) -> Any:
    """Pairs of labels as facts, namely edges; anything else as it is.

    Args:
        given: A list, an iterator, an array, or a data frame or dict with two columns.

    Example:
        >>> edges_of([("Alien", "Aliens")]).edges
        [('Alien', 'Aliens')]
    """
    if (frame := Frame.of(given)) is not None:
        with contextlib.suppress(UserError):  # then they are not edges
            given = list(frame_rows(frame, 2))
    if isinstance(given, Iterator):
        given = list(given)
    if isinstance(given, list | tuple | np.ndarray) and len(given):
        sized = (isinstance(row, Sized) and not isinstance(row, str | bytes) for row in given)
        if all(sized) and all(len(row) == 2 for row in given):
            return NetworkFacts(edges=list(map(tuple, given)))
    return given


def pairs_known_in(
    graph: NetworkGraph, edges: Sequence[tuple[str, str]], classes: Sequence[tuple[str, str]]
) -> tuple[dict[str, IntArray], int]:
    """The labelled facts that are known in a network, for `forget`, and the number of facts.

    Args:
        graph: The network.
        edges: Pairs of nodes.
        classes: Nodes and their classes; "" or "-1" for the one that it has.
    """
    node, class_ = graph.nodes.known_ids, graph.classes.known_ids
    ends = np.stack([node([edge[side] for edge in edges]) for side in (0, 1)], axis=1)
    nodes = node([label for label, _ in classes])
    told = class_([label for _, label in classes])
    given = np.array([label not in ("", "-1") for _, label in classes], dtype=np.bool_)
    told = np.where(given | (nodes < 0), told, graph.labels[nodes] if len(graph.labels) else -1)
    count = len({frozenset(edge) for edge in edges}) + len(set(classes))
    return graph.known_facts(ends, nodes, told), count


def _revision(
    graph: NetworkGraph,
    labels: list[str],
    ids: IntArray,
    classes: list[str],
    split: IntArray,
    features: FloatArray,
) -> Change:
    """The change that gives nodes other classes ("" for the same) and other features, if any."""
    told = np.array([label not in ("", "-1") for label in classes], dtype=np.bool_)
    new = Vocabulary(dict.fromkeys(c for c in classes if c not in ("", "-1")), kind="class")
    unseen = Vocabulary((label for label in new if label not in graph.classes), kind="class")
    now = graph.classes.known_ids(classes)
    arriving = unseen.known_ids(classes)
    now = np.where(arriving >= 0, arriving + len(graph.classes), now)
    changed = np.flatnonzero(told & (now != graph.labels[ids]))
    described = np.arange(len(features))
    if not len(changed) and not len(described):
        raise UserError("the nodes have these classes already: there is nothing to revise")
    sets = {name: changed[split[changed] == number] for name, number in _SPLIT_NUMBERS.items()}
    none = range(len(labels), len(labels))
    part = NetworkPart(
        index=graph.num_parts,
        nodes=Vocabulary(labels, kind="node"),
        classes=unseen,
        new_nodes=none,
        new_classes=range(len(unseen)),
        edges=np.empty((0, 2), np.int64),
        features=np.empty((0, graph.num_features), np.float32),
        labels=np.empty(0, np.int64),
        **{name: sets[name] for name in SPLITS},
    )
    arrays: dict[str, npt.NDArray[Any]] = {
        "nodes": ids[changed],
        "labels": now[changed],
        "described": ids[described],
        "features": features.reshape(-1, graph.num_features),
    }
    return Change(REVISE, part, arrays)


def _objects(what: str, values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(values, dtype=object)
    except ValueError as error:
        raise DataError(f"{_NAME}.{what}", f"rows of different lengths ({error})") from error


def _labels(what: str, values: Any) -> list[str]:
    found = _objects(what, values)
    if found.ndim != 1:
        raise DataError(f"{_NAME}.{what}", f"shape {list(found.shape)}; expected a list [n]")
    try:
        labels = ["" if value is None else as_label(value) for value in found.tolist()]
        check_labels(labels)
    except UserError as error:
        raise DataError(f"{_NAME}.{what}", str(error)) from None
    return labels


def _split_numbers(names: list[str]) -> IntArray:
    wrong = next((name for name in names if name not in _SPLIT_NUMBERS), None)
    if wrong is not None:
        raise DataError(f"{_NAME}.split", f"{shown(wrong)}; expected train, valid, test or nothing")
    return np.fromiter(map(_SPLIT_NUMBERS.__getitem__, names), dtype=np.int64, count=len(names))
