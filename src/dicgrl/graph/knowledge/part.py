"""A part of a knowledge graph: triples that arrive together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray, as_ids, as_triples, narrow
from dicgrl.graph.checks import check_ids, check_range
from dicgrl.graph.part import SPLITS, Part
from dicgrl.graph.times import NEVER
from dicgrl.graph.vocabulary import Translation, Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class KnowledgePart(Part):
    """Triples that arrive together.

    The rows are kept as they were given: repeated triples and self loops are counted by
    `describe` and dropped or kept by the `KnowledgeGraph` that the part is added to.

    Attributes:
        index: The part's position in its stream.
        entities: Labels of all entities of the stream; those of later parts may be among them.
        relations: Likewise for relations.
        new_entities: Ids that arrive with this part: a range, since ids are given on arrival.
        new_relations: Likewise for relations.
        train: Triples to learn from (head, relation, tail), [n, 3]; int32 once they are checked.
        valid: Triples to select a model with.
        test: Triples to measure with, the paper's query set.
        times: When each triple of `train` was so, as `dicgrl.graph.times.moments` gives it; empty
            where nothing is known of that.
    """

    vocabularies: ClassVar[tuple[str, ...]] = ("entities", "relations")

    index: int
    entities: Vocabulary
    relations: Vocabulary
    new_entities: range
    new_relations: range
    train: IntArray
    valid: IntArray
    test: IntArray
    times: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def num_entities(self) -> int:
        """Entities known once this part has arrived."""
        return self.new_entities.stop

    @property
    def num_relations(self) -> int:
        """Relations known once this part has arrived."""
        return self.new_relations.stop

    @override
    @classmethod
    def from_arrays(
        cls,
        index: int,
        vocabularies: Mapping[str, Vocabulary],
        ranges: Mapping[str, range],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        arrays = {name: narrow(array) for name, array in arrays.items()}
        return super(KnowledgePart, cls).from_arrays(index, vocabularies, ranges, arrays)

    @override
    def checked(self) -> Self:
        of = f"of part {self.index}"
        check_range(f"new entities {of}", self.new_entities, self.entities)
        check_range(f"new relations {of}", self.new_relations, self.relations)
        rows = {s: as_triples(getattr(self, s), f"{s} triples {of}") for s in SPLITS}
        for split, triples in rows.items():
            if not len(triples):
                continue
            for column, labels in enumerate((self.entities, self.relations, self.entities)):
                check_ids(f"{split} triples {of}", triples[:, column], labels)
        train, valid, test = (triples.astype(np.int32, copy=False) for triples in rows.values())
        times = as_ids(self.times, f"times {of}")
        if len(times) not in (0, len(train)):
            raise UserError(f"{len(times)} times {of} for {len(train)} training triples")
        return replace(self, train=train, valid=valid, test=test, times=times)

    def __repr__(self) -> str:
        return (
            f"KnowledgePart({self.index}: {len(self.new_entities):,} new entities, "
            f"{len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test)"
        )


def joined_times(parts: Sequence[KnowledgePart]) -> IntArray:
    """The times of the training triples of several parts; empty where none has any."""
    if not any(len(part.times) for part in parts):
        return np.empty(0, np.int64)
    return np.concatenate(
        [part.times if len(part.times) else np.full(len(part.train), NEVER) for part in parts]
    )


def translated(triples: IntArray, columns: Sequence[Translation]) -> IntArray:
    """Triples in other ids; the same array where these are the same."""
    ours = [of(triples[:, at]) for at, of in enumerate(columns)]
    if all(np.shares_memory(mine, triples) for mine in ours):
        return triples
    return np.stack(ours, axis=1)
