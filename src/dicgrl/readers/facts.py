"""New nodes and edges of a network by their labels, from lists and arrays instead of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph import SPLITS, NetworkGraph, NetworkPart
from dicgrl.graph.arrays import FloatArray, IntArray
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.network_table import Positions, checked_table, refuse_duplicates
from dicgrl.readers.npz import as_features, edges_by_label

_NAME = "NetworkFacts"
_SPLIT_NUMBERS = {**{split: i for i, split in enumerate(SPLITS)}, "": -1}


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """Nodes and edges that arrive in a network; `Learner.learn` takes them.

    Labels are text or whole numbers, which count as what they are written as.

    Attributes:
        nodes: Labels of the new nodes, n of them.
        features: Their features, [n, F]; F is that of the network.
        classes: Their classes, which may be new; "", -1 or None where a class is not known. None is
            known unless given.
        edges: Pairs of labels, [m, 2], of new nodes and of those that the network has.
        split: train, valid, test or "" for each new node; unless given, all that have a class are
            learned from.

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

    def part(self, graph: NetworkGraph | None = None) -> NetworkPart:
        """The part that these are in a network; its first one where there is no network yet.

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
