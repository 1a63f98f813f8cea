"""How long a run of many entities takes to load, and how much memory that is.

    python benchmarks/load_speed.py [--entities 1000000] [--dim 100]

A model of so many entities is saved once; then processes of their own load it, one after the other:
seconds to load and to answer a first question, and the memory that is theirs alone (private) or
pages of the files that the system may drop and share (mapped).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import name_of

from dicgrl import Learner
from dicgrl.graph import KnowledgeStreamBuilder

RELATIONS = 20


def write(folder: Path, entities: int, dim: int) -> None:
    """A run of one part: a fact for each entity, hardly learned."""
    generator = np.random.default_rng(0)
    builder = KnowledgeStreamBuilder("many")
    ids = builder.entities.add([f"entity {number}" for number in range(entities)])
    builder.relations.add([f"relation {number}" for number in range(RELATIONS)])
    tails = generator.integers(0, entities, entities)
    relations = generator.integers(0, RELATIONS, entities)
    builder.add(np.stack([ids, relations, tails], axis=1))
    learner = Learner("transe", "lower", dim=dim, epochs=1, negatives=1, batch=65536, device="cpu")
    learner.learn(builder.build()[0])
    learner.save(folder)


def memory() -> dict[str, float]:
    """Megabytes of this process by kind."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return {name: int(size) / 1024 for name, size in sizes.items()}


def load(folder: Path) -> None:
    """Load the run in this process, ask, and print what that took."""
    before, started = memory(), time.perf_counter()
    learner = Learner.load(folder, device="cpu")
    loaded, after = time.perf_counter() - started, memory()
    learner.predict_links([("entity 1", "relation 1", None)], k=5)
    asked = time.perf_counter() - started
    private, mapped = (after[name] - before[name] for name in ("RssAnon", "RssFile"))
    print(f"{loaded:>8.2f} {asked:>12.2f} {private:>12.0f} {mapped:>10.0f}", flush=True)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entities", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=100)
    options.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.load:
        load(given.load)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        write(folder, given.entities, given.dim)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        print(f"{name_of(torch.device('cpu'))}; {given.entities:,} entities, {size:,.0f} MB")
        print(f"{'load s':>8} {'and asked s':>12} {'private MB':>12} {'mapped MB':>10}", flush=True)
        for _ in range(3):
            subprocess.run([sys.executable, __file__, "--load", folder], check=True)


if __name__ == "__main__":
    main()
