"""A reader in a loop beside a writer: it takes in each version as it comes, and never waits.

A process of its own learns and saves 100 versions while this one asks 10,000 questions, refreshing
before each. Every answer must be exactly that of one version. Prints how long questions and
refreshes took, and the longest of each apart: at work, waiting for the processor (others had it),
and waiting for the store (its locks, and the disk). Linux says which is which
(/proc/thread-self/schedstat); elsewhere what is no work counts as waiting for the store. Then the
same questions to a store to which nobody writes.

    python benchmarks/readers.py [--questions 10000] [--versions 100]
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from machine import name_of

from dicgrl import Learner
from dicgrl.errors import ModelWarning

QUESTION = ("e1", "r1", None)
SCHEDULER = Path("/proc/thread-self/schedstat")
warnings.simplefilter("ignore", ModelWarning)  # triples by chance teach nothing


def facts(count: int, seed: int, entities: int = 5000) -> list[tuple[str, str, str]]:
    """Triples by chance."""
    rows = np.random.default_rng(seed).integers(0, (entities, 20, entities), (count, 3))
    return [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in rows.tolist()]


def write(folder: Path, versions: int) -> None:
    """Learn and save one version after the other."""
    learner = Learner.load(folder, device="cpu")
    for number in range(versions):
        learner.learn([*facts(50, number), ("e1", "r1", f"new {number}")])
        learner.save(folder)


def asked(learner: Learner) -> list[tuple[str, float]]:
    """The answers to the question."""
    (answers,) = learner.predict_links([QUESTION], k=5)
    return [(answer.label, answer.score) for answer in answers]


class Moment(NamedTuple):
    """Seconds so far, or of a span.

    Attributes:
        passed: Of the clock.
        work: That this thread had the processor.
        queue: That it could have gone on, and others had the processor.
    """

    passed: float
    work: float
    queue: float

    @classmethod
    def now(cls) -> Moment:
        """At this moment."""
        queue = 0.0
        if SCHEDULER.exists():
            queue = int(SCHEDULER.read_text().split()[1]) / 1e9
        return cls(time.perf_counter(), time.thread_time(), queue)

    def until(self, later: Moment) -> Moment:
        """From this moment to a later one."""
        return Moment(*(after - before for before, after in zip(self, later, strict=True)))

    @property
    def store(self) -> float:
        """The rest: the thread slept, which only the store makes it do."""
        return max(self.passed - self.work - self.queue, 0.0)


def told(what: str, spans: Sequence[Moment]) -> str:
    """A line about spans, in ms."""
    passed, work, queue, store = (
        1000 * np.array([getattr(span, name) for span in spans])
        for name in ("passed", "work", "queue", "store")
    )
    return (
        f"{what:>9}: {len(spans):>6,}, median {np.median(passed):.2f} ms, 99 % "
        f"{np.quantile(passed, 0.99):.2f}, longest {passed.max():.2f}; longest at work "
        f"{work.max():.2f}, waiting for the processor {queue.max():.2f}, for the store "
        f"{store.max():.2f}"
    )


def asking(
    reader: Learner, goes_on: Callable[[int], bool]
) -> tuple[dict[str, list[Moment]], dict[int, list[tuple[str, float]]]]:
    """Ask for as long as that is said: how long it took, and the answers of each version."""
    found: dict[int, list[tuple[str, float]]] = {}
    spans: dict[str, list[Moment]] = {"look": [], "refresh": [], "question": []}
    while goes_on(len(spans["question"])):
        started = Moment.now()
        newer = reader.refresh()
        refreshed = Moment.now()
        answers = asked(reader)
        spans["question"].append(refreshed.until(Moment.now()))
        spans["refresh" if newer else "look"].append(started.until(refreshed))
        assert found.setdefault(reader.version, answers) == answers
    return spans, found


def main() -> None:
    """Ask, and compare with what each version answers when it is loaded."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=10_000)
    options.add_argument("--versions", type=int, default=100)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        learner = Learner("transe", "lower", dim=32, epochs=2, negatives=4, device="cpu")
        learner.learn(facts(50_000, 1 << 20))
        learner.save(folder)
        reader = Learner.load(folder, device="cpu")
        writer = multiprocessing.get_context("spawn").Process(
            target=write, args=(folder, given.versions)
        )
        writer.start()
        spans, found = asking(reader, lambda so_far: so_far < given.questions or writer.is_alive())
        writer.join()
        assert writer.exitcode == 0
        for version, answers in found.items():
            assert asked(Learner.load(folder, at=version, device="cpu")) == answers
        newest = Learner.load(folder, device="cpu").version
        alone, _ = asking(reader, lambda so_far: so_far < given.questions)
    asked_for = len(spans["question"])
    print(name_of(torch.device("cpu")))
    print(f"{asked_for:,} questions while {newest - 1} versions came, {len(found)} seen")
    for name in spans:
        print(told(name, spans[name]))
    print("the same while nobody writes")
    for name in ("look", "question"):
        print(told(name, alone[name]))


if __name__ == "__main__":
    main()
