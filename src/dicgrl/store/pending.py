"""A queue of facts that wait to be learned, in the database of a run.

Facts can be appended at any time, also while somebody else holds the folder's lock and learns. The
transaction that commits a new version also removes the facts that it learned from the queue. So
after a crash each fact is either waiting or learned, never both and never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dicgrl.errors import DataError, UserError
from dicgrl.graph import Graph
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.store.database import Database, as_text, opened, parsed, writing_failures
from dicgrl.store.place import RunPlace
from dicgrl.store.records import StoredRun
from dicgrl.store.version import now

Fact = tuple[str, ...]
"""Its labels: head, relation, tail; or the two ends of an edge."""


class Mark(NamedTuple):
    """A moment of a run.

    Attributes:
        identity: Identity of the run.
        version: The newest version.
        stamp: Tells that version from one of the same number in a copy of the run.
        edits: Tells what was written without a version.
        last: Number of the newest entry, whether it waits or not.
        waiting: How many entries wait.
    """

    identity: str
    version: int
    stamp: int
    edits: int
    last: int
    waiting: int


def key_of(fact: Fact) -> Fact:
    """What is the same for labels of the same fact: an edge has no direction.

    Example:
        >>> key_of(("Brazil", "Alien")) == key_of(("Alien", "Brazil"))
        True
    """
    return fact if len(fact) != 2 else (min(fact), max(fact))


def keys_in(graph: Graph[Any] | None) -> Callable[[Fact], Fact]:
    """Like `key_of` for all labels that a graph knows: what was merged is the same, too.

    Args:
        graph: The graph; None before anything was learned.
    """
    kinds = graph.part_type.vocabularies if graph is not None else ()
    vocabularies = graph.vocabularies() if graph is not None else {}
    now = {
        kind: dict(zip(merged, vocabularies[kind].labels(merged.values()), strict=True))
        for kind in kinds
        if (merged := vocabularies[kind].merged)
    }
    if graph is None or not now:
        return key_of

    def key(fact: Fact) -> Fact:
        of = kinds[0], *kinds[1 : len(fact) - 1], kinds[0]  # a fact is between two of the first
        labels = zip(of, fact, strict=False)
        return key_of(tuple(now.get(kind, {}).get(label, label) for kind, label in labels))

    return key


class Entry(NamedTuple):
    """Facts that were sent together.

    Attributes:
        kind: What is to be done with them: `learn` or `forget`.
        facts: The facts, as labels.
        number: Counted in order of arrival, and never given again; 0 before they are stored.
    """

    kind: str
    facts: Sequence[Fact]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Pending:
    """The queue at one moment, and the version that it was read with.

    Attributes:
        version: The newest version.
        entries: The waiting facts, in order of arrival.
        stamp: Tells that version from one of the same number in a copy of the run.
        identity: Identity of the run.
        edits: Tells what was written without a version.
        last: Number of the newest entry, whether it waits or not.
    """

    version: int
    entries: Sequence[Entry]
    stamp: int = 0
    identity: str = ""
    edits: int = 0
    last: int = 0

    @property
    def mark(self) -> Mark:
        """As `PendingFacts.mark`."""
        entries = self.last, len(self.entries)
        return Mark(self.identity, self.version, self.stamp, self.edits, *entries)

    def __len__(self) -> int:
        return sum(len(entry.facts) for entry in self.entries)

    def settled(self, key: Callable[[Fact], Fact] = key_of) -> tuple[list[Fact], list[Fact]]:
        """What is to be learned, and what to be forgotten, in total.

        A fact that was only waiting is not learned when it is forgotten; one that is to be
        forgotten stays when it comes again.

        Args:
            key: What is the same for labels of the same fact; a graph may know more of them
                (`keys_in`).

        Example:
            >>> one, other = ("Alien", "year", "1978"), ("Alien", "year", "1979")
            >>> entries = [Entry("learn", [one, other]), Entry("forget", [one])]
            >>> Pending(1, entries).settled()
            ([('Alien', 'year', '1979')], [('Alien', 'year', '1978')])
        """
        gone: dict[Fact, int] = {}  # the last entry by which each is forgotten
        forgotten: dict[Fact, Fact] = {}
        for at, entry in enumerate(self.entries):
            for fact in entry.facts:
                if entry.kind == FORGET:
                    gone[key(fact)] = at
                    forgotten.setdefault(key(fact), fact)
                else:
                    forgotten.pop(key(fact), None)
        learned = [
            fact
            for at, entry in enumerate(self.entries)
            if entry.kind == LEARN
            for fact in entry.facts
            if gone.get(key(fact), -1) < at
        ]
        return learned, list(forgotten.values())


class PendingWriter:
    """Appends to the queue in a database that is already open.

    Args:
        database: The database of a run.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._file = _file_at(database.path)

    def is_in_place(self) -> bool:
        """Whether the run's folder still holds the file that is written to, and not another."""
        return self._file is not None and _file_at(self._database.path) == self._file

    def add(self, entries: Iterable[Entry]) -> list[int]:
        """Let facts wait; they are durable when this returns.

        Returns:
            The numbers of the entries.

        Raises:
            OSError: The disk is full or broken; nothing was written.
            DataError: The run was taken away meanwhile; what was written is gone with it.
        """
        found = []
        database = self._database
        with writing_failures(database.path), database.transaction():
            for number, entry in enumerate(entries, _last(database) + 1):
                facts, kind = _as_text(entry), entry.kind
                database.insert("pending", number=number, time=now(), kind=kind, facts=facts)
                found.append(number)
        if not self.is_in_place():
            raise DataError(database.path, "the run was taken away while it was written to")
        return found

    def settle(self, entries: Iterable[Entry]) -> None:
        """Let entries wait no more, of which nothing was to be learned."""
        with writing_failures(self._database.path), self._database.transaction():
            delete_pending(self._database, entries)


class PendingFacts(RunPlace):
    """The methods of a run folder that concern the queue."""

    @contextmanager
    def pending_writer(self) -> Iterator[PendingWriter]:
        """A writer of facts that are to wait; the lock of the folder is not needed.

        Raises:
            UserError: The folder holds a run of an earlier format.
            DataError: It holds none.
        """
        if not self._database.exists() and self.exists():
            raise UserError(
                f"{self.path}: a run of an earlier format; `dicgrl compact` brings it to this one"
            )
        if not self._database.exists():
            raise DataError(self.path, "no run here (store.sqlite is missing)")
        with opened(self._database, write=True) as database:
            database.config()
            yield PendingWriter(database)

    def mark(self) -> Mark:
        """A value that changes whenever anything is saved, or facts begin or cease to wait.

        It also changes where another run, or another copy of the run, takes the place of this one.
        """
        with opened(self._database) as database:
            run = StoredRun(database)
            version, count = int(run.config["versions"]), 0
            if database.has("pending"):
                query = "SELECT COUNT(*) FROM pending"
                (count,) = database.connection.execute(query).fetchone()
            moment = version, run.stamp(version), run.edits
            return Mark(database.identity, *moment, _last(database), int(count))

    def pending(self) -> Pending:
        """The facts that wait to be learned, and after which version, at one moment.

        Raises:
            DataError: Something of it is damaged.
        """
        with opened(self._database) as database:
            run = StoredRun(database)
            try:
                entries = [_entry(row) for row in database.rows("pending", "ORDER BY number")]
                version = int(run.config["versions"])
                moment = run.stamp(version), database.identity, run.edits, _last(database)
                return Pending(version, entries, *moment)
            except (KeyError, TypeError, ValueError) as error:
                raise database.damaged(f"facts that wait: {error}") from error


def _file_at(path: Path) -> tuple[int, int] | None:
    """Identifies a file, to distinguish it from another at the same path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def delete_pending(database: Database, entries: Iterable[Entry]) -> None:
    """Take entries off, inside a transaction; their numbers are not given again.

    Where the folder was put back from a backup meanwhile, others may have these numbers: they stay.
    """
    last = _last(database)
    query = "DELETE FROM pending WHERE number = ? AND kind = ? AND facts = ?"
    for entry in entries:
        database.connection.execute(query, (entry.number, entry.kind, _as_text(entry)))
    if last > _last(database):
        database.connection.execute("DELETE FROM settled")
        database.insert("settled", number=last)


def _last(database: Database) -> int:
    """Number of the newest entry, whether it waits or was settled; 0 before any."""
    found = [0]
    for table in filter(database.has, ("pending", "settled")):
        query = f"SELECT COALESCE(MAX(number), 0) FROM {table}"
        found += database.connection.execute(query).fetchone()
    return max(map(int, found))


def _as_text(entry: Entry) -> str:
    return as_text([list(fact) for fact in entry.facts])


def _entry(row: dict[str, object]) -> Entry:
    facts = [tuple(map(str, fact)) for fact in parsed(row["facts"])]
    kind = str(row["kind"])
    if kind not in (LEARN, FORGET):
        raise ValueError(f"an entry of kind {kind!r}")
    return Entry(kind, facts, int(str(row["number"])))
