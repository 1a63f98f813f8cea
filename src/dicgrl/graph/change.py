"""A change: one step in the life of a graph, as a version of a run stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from dicgrl.graph.part import Part

LEARN = "learn"


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What happened to a graph at one time; applied in order, changes make the graph again.

    Attributes:
        kind: What was done: learn, or one of the ways in which a graph takes facts back.
        part: What arrived, in ids of the graph; None where nothing did.
        arrays: What else there is to know, by name, in ids of the graph.
        labels: The same in labels, ready for JSON.

    Example:
        >>> from dicgrl.graph import KnowledgeGraph, KnowledgeStream
        >>> stream = KnowledgeStream.from_labels("tiny", [[("Alien", "genre", "horror")]])
        >>> Change(LEARN, KnowledgeGraph().add(stream[0])).kind
        'learn'
    """

    kind: str
    part: Part | None = None
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
