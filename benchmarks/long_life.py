"""A long life: parts of 500 facts arrive one after the other, and each is learned and saved.

Prints the processor's time to learn and save one of the newest parts and to load, and size of the
folder and memory after 10, 100 and 1,000 parts, and their ratios: what grows with the number of
parts rather than with the graph shows here. The graph has all its entities and a million facts from
the first part, so that it grows by a half at most.

    python benchmarks/long_life.py [--parts 1000] [--keep last] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import name_of

from dicgrl import Learner
from dicgrl.errors import ModelWarning
from dicgrl.jobs.results import results_of

ENTITIES, RELATIONS, FIRST, EACH = 50_000, 50, 1_000_000, 500
SHOWN = (10, 100, 1000)
NEWEST = 10  # parts whose median is told


def facts(generator: np.random.Generator, count: int) -> list[tuple[str, str, str]]:
    """Triples that nobody has seen, but for a few."""
    heads, tails = generator.integers(0, ENTITIES, (2, count))
    relations = generator.integers(0, RELATIONS, count)
    return [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in zip(heads, relations, tails, strict=True)]


ABOUT = {"dataset": "long life", "task": "link-prediction", "recipe": "default", "published": {}}


def measured(folder: Path) -> dict[str, Any]:
    """What it takes to load, the size of the folder, and the most memory so far."""
    took = []
    for _ in range(5):
        started = time.process_time()
        Learner.load(folder, device="cpu")
        took.append(time.process_time() - started)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"load_seconds": min(took), "bytes": size, "memory_bytes": memory}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parts", type=int, default=1000)
    options.add_argument("--keep", default="last")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    warnings.simplefilter("ignore", ModelWarning)  # triples by chance teach nothing
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
            started = time.process_time()
            learner.learn(facts(generator, EACH))
            learns.append(time.process_time() - started)
            started = time.process_time()
            learner.save(folder, results=results_of(learner, ABOUT))
            saves.append(time.process_time() - started)
            if part in SHOWN or part == given.parts:
                row = {
                    "parts": part,
                    "facts": FIRST + EACH * part,
                    "learn_seconds": statistics.median(learns[-NEWEST:]),
                    "save_seconds": statistics.median(saves[-NEWEST:]),
                    **measured(folder),
                }
                rows.append(row)
                print(
                    f"{part:>6,} {row['learn_seconds']:>9.3f} {row['save_seconds']:>8.3f} "
                    f"{row['load_seconds']:>8.3f} {row['bytes'] / 1e6:>8.1f} "
                    f"{row['memory_bytes'] / 1e6:>10.0f}",
                    flush=True,
                )
        if given.json:
            given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        first, last = rows[0], rows[-1]
        ratios = [f"{name} {last[name] / first[name]:.2f}" for name in first if name != "parts"]
        print(f"ratios of the last to the first: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
