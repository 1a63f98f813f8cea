"""Who writes to a server all the time, and remembers what was promised."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from dicgrl.learner import Learner
from dicgrl.store.run_folder import RunFolder
from tests.serve.servers import TOKEN

Fact = tuple[str, str, str]


class Writer:
    """Adds facts of its own one after the other, and takes some of them back.

    A statement that was not answered is said again: it may have been done or not.

    Args:
        name: Begins the labels of its newcomers.
        seed: Of what it says.
        allowed: Statuses that are no mistake; after any but 200 nothing of the facts may be kept.

    Attributes:
        true: Facts that the server answered to have.
        gone: Facts that it answered not to have any more, or not to have taken.
        statuses: How often each was answered.
        ended: Set to let it end.
    """

    def __init__(self, name: str, seed: int, allowed: tuple[int, ...] = (200,)) -> None:
        self.true: set[Fact] = set()
        self.gone: set[Fact] = set()
        self.statuses: Counter[int] = Counter()
        self.ended = threading.Event()
        self.wrong = ""
        self._name, self._chance, self._allowed = name, random.Random(seed), allowed
        self._count = 0
        self._said: tuple[str, list[Fact]] | None = None  # not answered yet

    def write(self, address: httpx.URL) -> None:
        """Write until the server is gone, or it is time to end."""
        with httpx.Client(base_url=address, timeout=60) as client:
            while not self.ended.is_set():
                method, facts = self._said = self._said or self._next()
                body = {"facts": [list(fact) for fact in facts]}
                headers = {"Authorization": f"Bearer {TOKEN}"}
                try:
                    answer = client.request(method, "/facts", json=body, headers=headers)
                except httpx.HTTPError:
                    return
                self.statuses[answer.status_code] += 1
                if answer.status_code not in self._allowed:
                    self.wrong = f"{method} {facts}: {answer.status_code} {answer.text}"
                    return
                if answer.status_code == 200:
                    self._note(method, facts)
                elif method == "POST":
                    self.gone.update(facts)
                self._said = None
                time.sleep(self._chance.uniform(0, 0.02))

    def _next(self) -> tuple[str, list[Fact]]:
        if self.true and self._chance.random() < 0.2:
            return "DELETE", [self._chance.choice(sorted(self.true))]
        facts: list[Fact] = []
        for _ in range(self._chance.choice((1, 1, 1, 2, 20))):
            self._count += 1
            facts.append((f"{self._name} {self._count}", "plus 1", f"e{self._count % 20}"))
        return "POST", facts

    def _note(self, method: str, facts: list[Fact]) -> None:
        there, away = (self.true, self.gone) if method == "POST" else (self.gone, self.true)
        there.update(facts)
        away.difference_update(facts)

    def check(self, there: Counter[Fact]) -> None:
        """What was promised holds.

        Raises:
            AssertionError: A fact was lost, is there twice, or came back.
        """
        assert not self.wrong, self.wrong
        unanswered = set(self._said[1]) if self._said else set()
        lost = [fact for fact in self.true - unanswered if not there[fact]]
        back = [fact for fact in self.gone - unanswered if there[fact]]
        twice = [fact for fact in (*self.true, *self.gone, *unanswered) if there[fact] > 1]
        assert not lost, f"{self._name}: lost {sorted(lost)}"
        assert not twice, f"{self._name}: twice {sorted(twice)}"
        assert not back, f"{self._name}: came back {sorted(back)}"


def facts_of(run: Path) -> Counter[Fact]:
    """The facts of a run with those that wait, at one moment: how often each is there."""
    folder = RunFolder(run)
    while True:
        pending = folder.pending()
        learner = Learner.load(run, device="cpu")
        if learner.version == pending.version:  # nobody committed in between
            break
    graph = learner.trainer.graph
    rows = graph.train
    columns = (graph.entities, graph.relations, graph.entities)
    labels = [vocabulary.labels(rows[:, at]) for at, vocabulary in enumerate(columns)]
    there = Counter(zip(*labels, strict=True))
    learned, forgotten = pending.settled()
    for fact in forgotten:
        del there[fact]
    there.update(fact for fact in learned if fact not in there)  # others are known: no news
    there.update(fact for fact, often in Counter(learned).items() for _ in range(often - 1))
    return there  # type: ignore[return-value]
