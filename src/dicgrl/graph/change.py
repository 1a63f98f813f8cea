"""A change of a graph, as each version of a run stores one."""

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
    """One change of a graph; applied in order, changes rebuild the graph.

    - learn: a part arrived. `again` are known training triples that arrived again, stored if
      repeats count in learning. `dated` are training triples with a later date than was known,
      [n, 4].
    - forget: facts were removed: `triples`; or `edges`, and `nodes` whose class is unknown again.
    - replace: like forget, and a part arrived in their place.
    - rename: `ids` [n] got other labels; `vocabulary`, `old` and `new` labels.
    - merge: `ids` [n, 2] are those that stay and those merged into them; `vocabulary`, `kept` and
      `gone` labels.
    - revise: `nodes` got other classes (`labels`), and those in `described` other `features`; the
      part brings new classes and says which nodes to learn again.
    - retrain: the graph stays the same; a new model learned all of it.

    Attributes:
        kind: The kind of change.
        part: What arrived, in ids of the graph; None if nothing did.
        arrays: Further data by name, in ids of the graph.
        labels: Further data in labels, ready for JSON.

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
