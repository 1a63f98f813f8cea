"""A knowledge graph that arrives in parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from dicgrl.errors import DataWarning, UserError, shown
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.coded import coded_numbers
from dicgrl.graph.knowledge.builder import KnowledgeParts
from dicgrl.graph.knowledge.part import KnowledgePart, joined_times
from dicgrl.graph.knowledge.split import split_knowledge
from dicgrl.graph.knowledge.statistics import describe_parts, taught_tests
from dicgrl.graph.labelled import Triples, as_columns, has_names
from dicgrl.graph.part import SPLITS
from dicgrl.graph.periods import chosen_shares
from dicgrl.graph.stream import Counts, Stream
from dicgrl.graph.times import is_too_far, moments, odd_time
from dicgrl.graph.vocabulary import Vocabulary


class KnowledgeStream(Stream[KnowledgePart]):
    """A knowledge graph that arrives in parts.

    Attributes:
        name: What the stream is called in results.
        parts: The parts, in order of arrival.
        names: Readable names of labels (such as Freebase ids), where there are any.

    Example:
        >>> stream = KnowledgeStream.from_labels(
        ...     "tiny", [[("Alien", "genre", "horror")], [("Aliens", "genre", "horror")]]
        ... )
        >>> [part.num_entities for part in stream]
        [2, 3]
    """

    task: ClassVar[str] = "link-prediction"

    @classmethod
    def from_labels(
        cls,
        name: str,
        parts: Iterable[Triples],
        *,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> KnowledgeStream:
        """A stream from labelled triples, one list for each part.

        Args:
            name: What the stream is called in results.
            parts: (head, relation, tail) labels, part by part; whole numbers are labels as well.
                A fourth value, or a column called time or date, says when each was so.
            valid: Share of each part's triples to hold out for validation.
            test: Share of each part's triples to hold out for testing.
            seed: Seed of the random choice.

        Raises:
            UserError: A label is neither text nor a whole number, or has a control character; or a
                time is none.
        """
        builder = KnowledgeStreamBuilder(name)
        for part in parts:
            times: list[str] = []
            columns: Sequence[Sequence[str]] | None = coded_numbers(part)
            if columns is None:
                columns = as_columns(part, times)
            rows = builder.rows(*columns)
            generator = np.random.default_rng((seed, len(builder)))
            found = _moments(times, by_name=has_names(part))
            builder.add_held_out(rows, valid, test, generator, times=found)
        return builder.build()

    @property
    def entities(self) -> Vocabulary:
        """Labels of all entities."""
        return self.parts[0].entities

    @property
    def relations(self) -> Vocabulary:
        """Labels of all relations."""
        return self.parts[0].relations

    @override
    def describe(self) -> Counts:
        return {"name": self.name, "task": self.task, "parts": describe_parts(self.parts)}

    @override
    def taught_tests(self) -> tuple[int, int]:
        return taught_tests(self.parts)

    @override
    def merged(self) -> Self:
        last = self.parts[-1]
        part = KnowledgePart(
            0,
            last.entities,
            last.relations,
            range(last.num_entities),
            range(last.num_relations),
            **{s: np.concatenate([getattr(part, s) for part in self]) for s in SPLITS},
            times=joined_times(self.parts),
        )
        return type(self)(self.name, (part,), self.names)

    @override
    def split(
        self,
        by: str,
        ratios: Sequence[float] | None = None,
        *,
        parts: int | None = None,
        first: float | None = None,
        times: npt.ArrayLike | None = None,
        cuts: Sequence[object] | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> Self:
        """Make a stream of several parts out of a static graph (all parts of this one merged).

        A triple of the static graph's train, valid or test set stays in a set of that kind; with
        `valid` or `test` given, the training triples of each part give up that share.

        Args:
            by: `arrival`: entities are divided at random and a triple arrives with the later of
                its two entities (the paper's rule). `time`: triples are ordered by `times`; equal
                times stay together. `day`, `week`, `month`, `year`: a part for each of them that
                has triples; with `first`, all until this share is reached are one. `order`: triples
                arrive in the order in which they stand. Or a
                kind of growth, see below.
            ratios: Share of each part; they sum to 1. Of the entities for `arrival`, of the triples
                for `time` and `order`, of the training triples for a kind of growth.
            parts: Instead: how many parts, the first included. They are equal unless there is a
                `first`; five by default, `nightly` 41.
            first: Share of the first part, the others being equal. By default 0.8 without `parts`,
                and `nightly` 0.75.
            times: For `time` and periods, one value per triple, in the order train, valid, test.
            cuts: For `time`: every part but the first begins at one of these, instead of ratios.
            valid: Share of each part's training triples to hold out for validation.
            test: Share of each part's training triples to hold out for testing.
            seed: Seed of every random choice.

        Kinds of growth:
            `entities`: Entities arrive in random order; a triple comes with the later of its two.
            `relations`: Relations arrive in random order; a triple comes with its relation.
            `facts`: The first part mentions all entities and relations; later ones bring triples
                about them. Where its share is too small for that, it mentions as many as it can,
                and the others arrive with later parts.
            `hybrid`: Entities, relations and triples have random times; a triple comes at the
                latest of the four, so that each part brings newcomers and triples about old ones.
            `nightly`: The same without times of relations: a large first part and many small ones,
                which bring entities and triples about old ones.

            Entities and relations of so many triples that they would fill more than half of a later
            part come first, so that `hybrid` brings no relations where all are large.
            Parts of `entities` and `relations` end where an entity or relation does, so that their
            shares are met as nearly as these allow. A valid or test triple waits for the part by
            which training triples have mentioned its entities and its relation, if any do.

        Example:
            >>> static = KnowledgeStream.from_labels("tiny", [[("a", "r", "b"), ("b", "r", "c")]])
            >>> [len(part.train) for part in static.split("order", [0.5, 0.5])]
            [1, 1]
        """
        static = self.merged().parts[0]
        by, shares = chosen_shares(by, ratios, parts, first, times, cuts)
        made = split_knowledge(static, by, shares, times, valid, test, seed)
        return type(self)(self.name, made, self.names)


def _moments(times: list[str], *, by_name: bool) -> IntArray:
    """Moments of times that a program gave; none at all where it gave none.

    Args:
        times: The times.
        by_name: Whether a column is only called so, which may hold something else.
    """
    found = moments(times) if any(times) else np.empty(0, np.int64)
    if found is None:
        odd = shown(odd_time([time for time in times if time]))
        if by_name and not any(map(is_too_far, times)):
            said = f"{odd} in the column of times is no time: none is kept; see Reading.time_format"
            warnings.warn(DataWarning("facts", said), stacklevel=4)
            return np.empty(0, np.int64)
        raise UserError(
            f"{odd} is not a time: expected "
            "(head, relation, tail), or with a date, a year or seconds since 1970 behind them"
        )
    return found


class KnowledgeStreamBuilder(KnowledgeParts):
    """Builds a stream part by part; readers stand on this.

    Args:
        name: What the stream is called in results.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def build(self, names: Mapping[str, str] | None = None) -> KnowledgeStream:
        """The stream of all parts so far; `names` count before those that came with the triples."""
        return KnowledgeStream(self.name, self.parts, {**self.names, **(names or {})})
