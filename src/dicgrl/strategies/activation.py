"""Neighbour activation: which old triples (or edges) a new part concerns, and in which components.

A new link (u, v) that uses components C concerns the old links at u and at v, of order 1, that use
some of the same components; those concern the old links at their other ends in the components
that they share, of order 2. Each step is the same function: nodes with components and evidence go
in, links with common components and merit come out.

Merit ranks the activated links when a budget bounds them. A node's evidence (how many new links
speak of it) is divided among its old links, so that a hub with thousands of them does not fill the
budget, and weighted by the share of components that new and old have in common.
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
    """A growing graph whose links are found by their nodes."""

    def sample_of(
        self, nodes: IntArray, most: int, generator: np.random.Generator, among: IntArray
    ) -> tuple[IntArray, IntArray]:
        """At most `most` links of each node, of the first `among`."""

    def degree(self, nodes: IntArray) -> IntArray:
        """How many links are at each node."""


class Links(ABC):
    """The links of a growing graph as activation sees them: those of before the newest part.

    Args:
        graph: The graph.
        lookup: Gives all links at nodes: positions in the nodes and rows, one pair per mention.
        old: Rows below are those of before.
        new_ends: The two nodes of each newer link, [m, 2].
        fan: Old links looked at per node; 0 for all. One that was not looked at from its own node
            may be found from the next, and then counts as of order 2.
        generator: Draws them.
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
    """Old links that a part concerns.

    Attributes:
        rows: The links, each once.
        order: 1 for neighbours of new links, 2 for neighbours of those.
        common: Components in which they are concerned, as bits.
        merit: How much the part says about them; higher is more.
        candidates: Old links that were looked at, activated or not.
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
        """Links that a budget allows, in order of arrival: at most `budget` with those used before.

        Args:
            budget: How many links may be used in all, each counted once.
            selection: `top`: those of highest merit. `sample`: drawn by merit, without repeats.
            generator: Source of randomness.
            used: Links that were used before. They stay, and others share what is left.
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
        """The order of each of some links, in any order of their own; 2 where not activated."""
        if not len(self):
            return np.full(len(rows), 2)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self) - 1)
        return np.where(self.rows[at] == rows, self.order[at], 2)

    def at(self, chosen: npt.NDArray[Any]) -> Activation:
        """Some of the links, by position or mask."""
        return Activation(
            self.rows[chosen],
            self.order[chosen],
            self.common[chosen],
            self.merit[chosen],
            self.candidates,
        )


def component_bits(chosen: IntArray) -> IntArray:
    """Sets of components [..., n] as bits [...].

    Example:
        >>> component_bits(np.array([[0, 2], [1, 2]])).tolist()
        [5, 6]
    """
    bits: IntArray = (np.int64(1) << chosen).sum(-1)
    return bits


def activate(graph: Links, ends: IntArray, bits: IntArray, orders: int = 2) -> Activation:
    """Old links that new ones concern, up to an order of neighbourhood.

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
    """Positions of the largest keys; of equal ones the first."""
    if not count:
        return np.empty(0, np.int64)
    least = -np.partition(-keys, count - 1)[count - 1]
    above = np.flatnonzero(keys > least)
    return np.concatenate([above, np.flatnonzero(keys == least)[: count - len(above)]])


def _gather(
    ends: IntArray, bits: IntArray, strength: npt.NDArray[np.float64]
) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
    """Nodes at the ends of links, the components of all their links, and their summed strength."""
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
    """Old links that nodes concern and that were not seen before, and all those at the nodes."""
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
