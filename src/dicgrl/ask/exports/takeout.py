"""What an export takes from a learner: arrays, and the labels of their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from dicgrl.ask.names import Names
from dicgrl.graph import Graph, Vocabulary
from dicgrl.graph.arrays import FloatArray, IntArray

#: Places of rows on a map, [n, 2], given what the rows are of, such as entities, and their ids.
Places = Callable[[str, IntArray], npt.NDArray[Any] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """What a row of vectors stands for.

    Attributes:
        id: Its id, which never changes.
        label: Its label.
        name: Its readable name; the label where there is none.
    """

    id: int
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class Takeout:
    """What an export takes from a learner.

    Attributes:
        arrays: The arrays by name; arrays with labels hold only the exported rows.
        rows: What the rows of arrays with labels stand for.
        answers: Which of these rows can be answers, [n]: some fact mentions what they stand for.
        gone: Labels that used to have a row and no longer do.
        changed: Whether only rows that changed since another version are exported.
        about: A description of the learner for people: dataset, model, settings, numbers.
        places: Positions of the rows on a map, if there is one.
        neighbours: How many neighbours of each row to export; None for as many as are cheap.
    """

    arrays: Mapping[str, Tensor]
    rows: Mapping[str, list[Row]]
    answers: Mapping[str, npt.NDArray[np.bool_]]
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)
    changed: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    places: Places | None = None
    neighbours: int | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        names: Names,
        arrays: Mapping[str, Tensor],
        labels: Mapping[str, Vocabulary],
        ids: Mapping[str, IntArray] | None = None,
        **others: Any,
    ) -> Takeout:
        """What is taken out of a graph and the arrays about it.

        Args:
            graph: The graph.
            names: Readable names.
            arrays: All arrays, whole.
            labels: Labels of all rows, for arrays that have any.
            ids: The rows that are taken; all unless given.
            **others: The other attributes.
        """
        taken = ids or {name: np.arange(len(known)) for name, known in labels.items()}
        rows = {
            name: [
                Row(number, label, names.of(label))
                for number, label in zip(chosen.tolist(), labels[name].labels(chosen), strict=True)
            ]
            for name, chosen in taken.items()
        }
        held = {
            name: array[taken[name]] if ids and name in taken else array
            for name, array in arrays.items()
        }
        answers = {name: ~np.isin(chosen, graph.retired(name)) for name, chosen in taken.items()}
        return cls(held, rows, answers, **others)

    def without(self, names: Collection[str]) -> Takeout:
        """The same without some arrays that have no labels."""
        kept = {name: array for name, array in self.arrays.items() if name not in names}
        return replace(self, arrays=kept)

    def answering(self, name: str) -> tuple[list[Row], FloatArray]:
        """The rows that are answers, and their vectors, [n, width]."""
        chosen = self.answers[name]
        vectors = self.arrays[name].detach().flatten(1).cpu().float().numpy()
        kept = [row for row, is_answer in zip(self.rows[name], chosen, strict=True) if is_answer]
        return kept, np.ascontiguousarray(vectors[chosen])
