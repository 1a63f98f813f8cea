"""A long life: parts of 500 facts arrive one after the other, and each is learned and saved.

Prints time per part, time to load, memory and size of the folder after 10, 100 and 1,000 parts, and
their ratios: what grows with the number of parts rather than with the graph shows here. The graph
has all its entities and a million facts from the first part, so that it grows by a half at most.

    python benchmarks/long_life.py [--parts 1000] [--keep last]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import name_of

from dicgrl import Learner
from dicgrl.jobs.results import results_of

ENTITIES, RELATIONS, FIRST, EACH = 50_000, 50, 1_000_000, 500
SHOWN = (10, 100, 1000)


def facts(generator: np.random.Generator, count: int) -> list[tuple[str, str, str]]:
    """Triples that nobody has seen, but for a few."""
    heads, tails = generator.integers(0, ENTITIES, (2, count))
    relations = generator.integers(0, RELATIONS, count)
    return [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in zip(heads, relations, tails, strict=True)]


ABOUT = {"dataset": "long life", "task": "link-prediction", "recipe": "default", "published": {}}


def measured(folder: Path) -> tuple[float, float, float]:
    """Seconds to load, megabytes of the folder, megabytes of memory so far."""
    took = []
    for _ in range(5):
        started = time.perf_counter()
        Learner.load(folder, device="cpu")
        took.append(time.perf_counter() - started)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return min(took), size / 1e6, memory


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parts", type=int, default=1000)
    options.add_argument("--keep", default="last")
    given = options.parse_args()
    print(name_of(torch.device("cpu")))
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        learner = Learner("transe", "lower", dim=16, epochs=1, negatives=4, device="cpu")
        learner.learn(facts(generator, FIRST))
        learner.save(folder, keep=given.keep, about=ABOUT)
        print(
            f"{'parts':>6} {'learn s':>9} {'save s':>8} {'load s':>8} {'MB':>8} {'memory MB':>10}"
        )
        learns, saves, rows = [], [], []
        for part in range(1, given.parts + 1):
            started = time.perf_counter()
            learner.learn(facts(generator, EACH))
            learns.append(time.perf_counter() - started)
            started = time.perf_counter()
            learner.save(folder, results=results_of(learner, ABOUT))
            saves.append(time.perf_counter() - started)
            if part in SHOWN or part == given.parts:
                took = (statistics.median(learns[-10:]), statistics.median(saves[-10:]))
                rows.append((*took, *measured(folder)))
                print(
                    f"{part:>6,} {took[0]:>9.3f} {took[1]:>8.3f} {rows[-1][2]:>8.3f} "
                    f"{rows[-1][3]:>8.1f} {rows[-1][4]:>10.0f}",
                    flush=True,
                )
        grown = (FIRST + EACH * given.parts) / (FIRST + EACH * SHOWN[0])
        names = ("learn", "save", "load", "size", "memory")
        ratios = [
            f"{name} {last / first:.2f}"
            for name, first, last in zip(names, rows[0], rows[-1], strict=True)
        ]
        print(f"ratios of the last to the first: {', '.join(ratios)}; facts {grown:.2f}")
        print(f"load beyond what the graph grew: {rows[-1][2] / rows[0][2] / grown:.2f}")


if __name__ == "__main__":
    main()
