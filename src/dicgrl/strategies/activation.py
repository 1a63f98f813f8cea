"""Neighbour activation: which old triples (or edges) a new part activates, in which components.

A *link* is a triple or an edge. A new link (u, v) that uses the components C activates the old
links at u and at v that use some of the same components (order 1). These in turn activate the old
links at their other ends, through the components that they share with C (order 2). Both steps are
the same function: nodes with components and evidence go in, links with common components and merit
come out.

Merit ranks the activated links if there is a budget. A node's evidence (how many new links mention
it) is divided among its old links, so that a hub with thousands of links does not fill the budget,
and weighted by the share of components that new and old links have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dicgrl.graph.arrays import Groups, IntArray, count_in, distinct, mentions

MAX_COMPONENTS = 62  # a set of components is one int64


class Indexed(Protocol):
    """A growing graph with an index of the links at each node."""

    def sample_of(
        self, nodes: IntArray, most: int, generator: np.random.Generator, among: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Up to `most` links of each node, among the first `among` links of the graph."""

    def degree(self, nodes: IntArray) -> IntArray:
        """The number of links at each node."""


class Links(ABC):
    """The links of a growing graph that are older than its newest part.

    Args:
        graph: The graph.
        lookup: Returns all links at given nodes: positions in the nodes and rows, one pair per
            mention.
        old: Number of old links; these are the first rows.
        new_ends: The two nodes of each newer link, [m, 2].
        fan: How many old links to consider per node; 0 for all. A link that was not considered at
            its own node may be found through the next one, and then counts as order 2.
        generator: Draws the links to consider.
    """

    def __init__(
        self,
        graph: Indexed,
        lookup: Callable[[IntArray], tuple[IntArray, IntArray]],
        old: int,
        new_ends: IntArray,
        fan: int,
        generator: np.random.Generator,
    ) -> None:
        self._graph, self._lookup = graph, lookup
        self.old = old
        self._new = np.sort(mentions(new_ends))
        self._fan, self._generator = fan, generator

    @abstractmethod
    def ends(self, rows: IntArray) -> IntArray:
        """The two nodes of links, [m, 2]."""

    @abstractmethod
    def components(self, rows: IntArray) -> IntArray:
        """The components that links use, as bits, [m]; all old or all new."""

    def links_of(self, nodes: IntArray, degree: IntArray) -> tuple[IntArray, IntArray]:
        """Old links at nodes of known degree: positions in `nodes` and rows, a pair per mention."""
        if self._fan:
            return self._graph.sample_of(nodes, self._fan, self._generator, degree)
        at, rows = self._lookup(nodes)
        old = rows < self.old
        return at[old], rows[old]

    def degree(self, nodes: IntArray) -> IntArray:
        """How many old links are at each node."""
        return self._graph.degree(nodes) - count_in(self._new, nodes)


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """The old links that a part activates.

    Attributes:
        rows: The links, each once.
        order: 1 for neighbours of new links, 2 for neighbours of those.
        common: The components that they share with new links, as bits.
        merit: How much the part says about each; higher is more.
        candidates: How many old links were considered, activated or not.
    """

    rows: IntArray
    order: IntArray
    common: IntArray
    merit: npt.NDArray[np.float64]
    candidates: int

    def __len__(self) -> int:
        return len(self.rows)

    def within(
        self,
        budget: int,
        selection: str,
        generator: np.random.Generator,
        used: IntArray | None = None,
    ) -> Activation:
        """The links that fit into a budget, in order of arrival.

        Args:
            budget: How many links may be used in total, including `used`; each counts once.
            selection: `top` for the highest merit, `sample` to draw by merit without replacement.
            generator: Source of randomness.
            used: Links that were used before. They are kept, and the others share the rest.
        """
        paid = np.isin(self.rows, () if used is None else used)
        left = max(budget - (0 if used is None else len(used)), 0)
        others = (~paid).nonzero()[0]
        if left >= len(others):
            return self
        keys = self.merit[others]
        if selection == "sample":  # the largest of log-weights with Gumbel noise are such a sample
            keys = np.log(np.maximum(keys, 1e-300)) + generator.gumbel(size=len(keys))
        paid[others[_largest(keys, left)]] = True
        return self.at(paid)

    def orders_of(self, rows: IntArray) -> IntArray:
        """The order (1 or 2) of each of the given links; 2 if a link is not activated."""
        if not len(self):
            return np.full(len(rows), 2)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self) - 1)
        return np.where(self.rows[at] == rows, self.order[at], 2)

    def at(self, chosen: npt.NDArray[Any]) -> Activation:
        """A subset of the links, by positions or a mask."""
        return Activation(
            self.rows[chosen],
            self.order[chosen],
            self.common[chosen],
            self.merit[chosen],
            self.candidates,
        )


def component_bits(chosen: IntArray) -> IntArray:
    """Encode sets of components [..., n] as bits [...].

    Example:
        >>> component_bits(np.array([[0, 2], [1, 2]])).tolist()
        [5, 6]
    """
    bits: IntArray = (np.int64(1) << chosen).sum(-1)
    return bits


def activate(graph: Links, ends: IntArray, bits: IntArray, orders: int = 2) -> Activation:
    """Find the old links that new links activate.

    Args:
        graph: The old links.
        ends: The two nodes of each new link, [m, 2].
        bits: The components that each new link uses, [m].
        orders: 1 for direct neighbours, 2 for their neighbours as well.
    """
    found: list[Activation] = []
    seen = looked = np.empty(0, np.int64)
    strength = np.ones(len(ends))
    for order in range(1, orders + 1):
        nodes, concerned, evidence = _gather(ends, bits, strength)
        step, near = _neighbours(graph, nodes, concerned, evidence, order, seen)
        looked = distinct(looked, near)
        seen = np.concatenate([seen, step.rows])
        found.append(step)
        ends, bits, strength = graph.ends(step.rows), step.common, step.merit
    every = Activation(
        np.concatenate([step.rows for step in found]),
        np.concatenate([step.order for step in found]),
        np.concatenate([step.common for step in found]),
        np.concatenate([step.merit for step in found]),
        len(looked),
    )
    return every.at(np.argsort(every.rows, kind="stable"))  # merges the orders, each sorted


def _largest(keys: npt.NDArray[np.float64], count: int) -> IntArray:
    """Positions of the largest keys; ties go to the first."""
    if not count:
        return np.empty(0, np.int64)
    least = -np.partition(-keys, count - 1)[count - 1]
    above = np.flatnonzero(keys > least)
    return np.concatenate([above, np.flatnonzero(keys == least)[: count - len(above)]])


def _gather(
    ends: IntArray, bits: IntArray, strength: npt.NDArray[np.float64]
) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
    """The nodes at the ends of links, with the union of components and the sum of strengths."""
    loop = ends[:, 0] == ends[:, 1]
    nodes = Groups(mentions(ends))
    every = np.concatenate([bits, bits[~loop]])
    weight = np.concatenate([strength, strength[~loop]])
    return nodes.values, nodes.union(every), nodes.sum(weight)


def _neighbours(
    graph: Links,
    nodes: IntArray,
    concerned: IntArray,
    evidence: npt.NDArray[np.float64],
    order: int,
    seen: IntArray,
) -> tuple[Activation, IntArray]:
    """Old links that nodes activate and that are not in `seen`; and all old links at the nodes."""
    degree = graph.degree(nodes)
    at, rows = graph.links_of(nodes, degree)
    links = Groups(rows)
    own = graph.components(links.values)[links.group]
    common = own & concerned[at]
    overlap = np.bitwise_count(common) / np.maximum(np.bitwise_count(own), 1)
    spoken = (evidence / np.maximum(degree, 1))[at]
    merit, shared = links.sum(overlap * spoken), links.union(common)
    active = (shared != 0) & ~np.isin(links.values, seen)
    found = Activation(
        links.values[active],
        np.full(int(active.sum()), order),
        shared[active],
        merit[active],
        len(links.values),
    )
    return found, links.values
