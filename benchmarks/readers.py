"""A reader in a loop beside a writer: it takes in each version as it comes, and never waits.

A process of its own learns and saves 100 versions while this one asks 10,000 questions, refreshing
before each. Every answer must be exactly that of one version. Prints how long questions and
refreshes took, and how much of that was work of this process: the rest it waited for the processor.

    python benchmarks/readers.py [--questions 10000] [--versions 100]
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from dicgrl import Learner

QUESTION = ("e1", "r1", None)


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


def clocks() -> tuple[float, float]:
    """The time, and the processor's time of this thread: others may have the processor."""
    return time.perf_counter(), time.thread_time()


def since(
    before: tuple[float, float], now: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Seconds of either that passed."""
    now = now or clocks()
    return now[0] - before[0], now[1] - before[1]


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
        found: dict[int, list[tuple[str, float]]] = {}
        looks: list[tuple[float, float]] = []
        refreshes: list[tuple[float, float]] = []
        questions: list[tuple[float, float]] = []
        while len(questions) < given.questions or writer.is_alive():
            started = clocks()
            newer = reader.refresh()
            refreshed = clocks()
            answers = asked(reader)
            questions.append(since(refreshed))
            (refreshes if newer else looks).append(since(started, refreshed))
            assert found.setdefault(reader.version, answers) == answers
        writer.join()
        assert writer.exitcode == 0
        for version, answers in found.items():
            assert asked(Learner.load(folder, at=version, device="cpu")) == answers
        newest = Learner.load(folder, device="cpu").version
    print(f"{len(questions):,} questions while {newest - 1} versions came, {len(found)} seen")
    for what, took in (("look", looks), ("refresh", refreshes), ("question", questions)):
        passed, worked = 1000 * np.array(took).T
        print(
            f"{what:>9}: {len(took):>6,}, median {np.median(passed):.2f} ms, 99 % "
            f"{np.quantile(passed, 0.99):.2f} ms, longest {passed.max():.2f} ms; longest at work "
            f"{worked.max():.2f} ms"
        )


if __name__ == "__main__":
    main()
