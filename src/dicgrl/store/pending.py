"""Facts that wait to be learned, in the database of a run: they are durable before they are known.

Whoever takes facts in appends them, at any time and without the lock of the folder. Whoever learns
them commits the version that holds them and takes them off in one transaction: after a crash each
is either waiting or learned, never both and never neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from dicgrl.errors import UserError
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.store.database import Database, as_text, opened, parsed
from dicgrl.store.place import RunPlace
from dicgrl.store.version import now

Fact = tuple[str, ...]
"""Its labels: head, relation, tail; or the two ends of an edge."""


class Entry(NamedTuple):
    """Facts that came together.

    Attributes:
        kind: What is to become of them: `learn` or `forget`.
        facts: The facts, by their labels.
        number: Their place in the order of arrival; 0 before they are stored.
    """

    kind: str
    facts: Sequence[Fact]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits to be learned after a version.

    Attributes:
        version: The newest version.
        entries: What waits, in the order of arrival.
    """

    version: int
    entries: Sequence[Entry]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the entries."""
        return [entry.number for entry in self.entries]

    def __len__(self) -> int:
        return sum(len(entry.facts) for entry in self.entries)

    def settled(self) -> tuple[list[Fact], list[Fact]]:
        """What is to be learned and what to be forgotten, when all of it has come.

        A fact that was only waiting is not learned when it is forgotten; one that is to be
        forgotten stays when it comes again.

        Example:
            >>> one, other = ("Alien", "year", "1978"), ("Alien", "year", "1979")
            >>> entries = [Entry("learn", [one, other]), Entry("forget", [one])]
            >>> Pending(1, entries).settled()
            ([('Alien', 'year', '1979')], [('Alien', 'year', '1978')])
        """
        learned: list[Fact] = []
        forgotten: dict[Fact, None] = {}
        for entry in self.entries:
            if entry.kind == FORGET:
                gone = set(entry.facts)
                learned = [fact for fact in learned if fact not in gone]
                forgotten |= dict.fromkeys(entry.facts)
            else:
                learned += entry.facts
                for fact in entry.facts:
                    forgotten.pop(fact, None)
        return learned, list(forgotten)


class PendingFacts(RunPlace):
    """The part of a run folder that keeps what waits to be learned."""

    def add_pending(self, entries: Iterable[Entry]) -> list[int]:
        """Let facts wait; they are durable when this returns.

        Returns:
            The numbers of the entries.

        Raises:
            UserError: The folder holds no run that can be written to.
            OSError: The disk is full or broken; nothing was written.
        """
        found = []
        with self._opened_for_pending() as database:
            database.config()
            with database.transaction():
                query = "SELECT COALESCE(MAX(number), 0) FROM pending"
                (last,) = database.connection.execute(query).fetchone()
                for number, entry in enumerate(entries, last + 1):
                    facts = as_text([list(fact) for fact in entry.facts])
                    database.insert(
                        "pending", number=number, time=now(), kind=entry.kind, facts=facts
                    )
                    found.append(number)
        return found

    def pending(self) -> Pending:
        """What waits to be learned, and after which version, at one moment.

        Raises:
            DataError: Something of it is damaged.
        """
        with opened(self._database) as database:
            config = database.config()
            try:
                entries = [_entry(row) for row in database.rows("pending", "ORDER BY number")]
                return Pending(int(config["versions"]), entries)
            except (KeyError, TypeError, ValueError) as error:
                raise database.damaged(f"facts that wait: {error}") from error

    def settle(self, numbers: Iterable[int]) -> None:
        """Let entries wait no more, of which nothing was to be learned."""
        with self._opened_for_pending() as database:
            database.config()
            with database.transaction():
                delete_pending(database, numbers)

    def _opened_for_pending(self) -> AbstractContextManager[Database]:
        if not self._database.exists():
            raise UserError(
                "this run is of an earlier format: `dicgrl compact` brings it to this one"
            )
        return opened(self._database, write=True)


def delete_pending(database: Database, numbers: Iterable[int]) -> None:
    """Take entries off, inside a transaction."""
    for number in numbers:
        database.connection.execute("DELETE FROM pending WHERE number = ?", (number,))


def _entry(row: dict[str, object]) -> Entry:
    facts = [tuple(map(str, fact)) for fact in parsed(row["facts"])]
    kind = str(row["kind"])
    if kind not in (LEARN, FORGET):
        raise ValueError(f"an entry of kind {kind!r}")
    return Entry(kind, facts, int(str(row["number"])))
