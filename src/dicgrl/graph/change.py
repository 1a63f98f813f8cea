"""A change: one step in the life of a graph, as a version of a run stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from dicgrl.graph.part import Part

LEARN = "learn"
FORGET = "forget"
REPLACE = "replace"
RENAME = "rename"
MERGE = "merge"
REVISE = "revise"
RETRAIN = "retrain"


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What happened to a graph at one time; applied in order, changes make the graph again.

    - learn: a part arrived; `again` are training triples that were known and arrived once more,
      where repeats weigh in learning.
    - forget: facts left: `triples`; or `edges`, and `nodes` whose class is unknown again.
    - replace: as forget, and a part arrived in their place.
    - rename: `ids` [n] have other labels; `vocabulary`, `old` and `new` labels.
    - merge: `ids` [n, 2] are those that stay and those that are the same from now on; `vocabulary`,
      `kept` and `gone` labels.
    - revise: `nodes` have other classes (`labels`), those of `described` other `features`; the part
      brings new classes and says which nodes to learn again.
    - retrain: the graph stays; a new model learned all of it.

    Attributes:
        kind: What was done.
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
