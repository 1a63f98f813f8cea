"""The cost of an update follows the part, not the history.

    python benchmarks/update_scale.py [--strategy fresh|dicgrl] [--sizes 100000,1000000,10000000]
        [--part 10000] [--dim 32] [--negatives 16] [--effort 12x] [--orders 1|2] [--device cpu|cuda]
        [--json FILE]

A random knowledge graph of each size is taken in as history (its triples are indexed and its
vectors exist; whether they were trained does not matter for the cost). Then parts of the same size
are learned: by fresh with so many positives (auto: as many as it finds right), or by dicgrl with a
fixed budget: new entities start from their neighbours and learn behind a shield, then old
neighbours are activated and updated. The table has the median time of `learn(part)` by the clock,
what of it was learning, and the time of the processor, which other work on the machine disturbs
less and which `growth` is made of on a CPU; and the memory that history and vectors take.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from dicgrl.common.devices import peak_memory
from dicgrl.graph import KnowledgePart, Vocabulary
from dicgrl.learner import Learner
from dicgrl.trainers import LinkTrainer

RELATIONS, PER_ENTITY = 20, 10  # triples per entity, old and new
PARTS = 5
DICGRL: dict[str, Any] = {
    "components": 8,  # 64 numbers, of which a triple uses 32
    "top": 4,
    "batch": 1024,
    "arrive_epochs": 2,
    "later_epochs": 2,
    "budget": "5000",
    "shield": "5000",
    "shield_rank": 30,
    "guard": True,
    "selection": "sample",
    "fan": 16,
    "refresh": 0,
}


class Growing:
    """Parts of a random graph whose entities are named by their numbers."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._entities, self._relations = Vocabulary(), Vocabulary()
        self._parts = 0

    def part(self, triples: int) -> KnowledgePart:
        """The next part: each triple has a new entity at one end and any entity at the other."""
        known, relations = len(self._entities), len(self._relations)
        new = max(triples // PER_ENTITY, 1)
        self._entities.add(map(str, range(known, known + new)))
        self._relations.add(map(str, range(RELATIONS)))
        ends = np.stack(
            [
                self._random.integers(known, known + new, triples),
                self._random.integers(0, known + new, triples),
            ],
            1,
        )
        ends = self._random.permuted(ends, axis=1)
        kind = self._random.integers(0, RELATIONS, triples)
        rows = np.stack([ends[:, 0], kind, ends[:, 1]], 1)
        self._parts += 1
        return KnowledgePart(
            self._parts - 1,
            self._entities,
            self._relations,
            range(known, known + new),
            range(relations, len(self._relations)),
            rows,
            rows[:0],
            rows[:0],
        )


def measure(size: int, part: int, asked: argparse.Namespace) -> dict[str, float]:
    graph = Growing(seed=0)
    own = DICGRL | {"orders": asked.orders}
    if asked.strategy == "fresh":
        own = {"effort": asked.effort}
    shared = {"dim": asked.dim, "negatives": asked.negatives, "device": asked.device}
    learner = Learner("transe", asked.strategy, **shared, **own)
    trainer = learner.trainer
    assert isinstance(trainer, LinkTrainer)
    trainer.take(graph.part(size))
    seconds, busy, learning = [], [], []
    for _ in range(PARTS):
        arriving = graph.part(part)
        started, worked = time.perf_counter(), time.process_time()
        learning.append(learner.learn(arriving).learn_seconds)
        seconds.append(time.perf_counter() - started)
        busy.append(time.process_time() - worked)
    return {
        "triples": size,
        "entities": trainer.model.num_entities,
        "seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(busy),
        "learn_seconds": statistics.median(learning),
        "slowest": max(seconds),
        "memory_bytes": peak_memory(torch.device(asked.device)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="100000,1000000,10000000")
    parser.add_argument("--part", type=int, default=10_000)
    parser.add_argument("--strategy", choices=("fresh", "dicgrl"), default="fresh")
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--negatives", type=int, default=16)
    parser.add_argument("--effort", default="12x", help="of fresh; auto for its own choice")
    parser.add_argument("--orders", type=int, default=1, help="orders of neighbours activated")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    measure(10_000, 1000, arguments)  # warm-up
    for size in map(
        int, arguments.sizes.split(",")
    ):  # growing, as the peak of memory can only grow
        rows.append(measure(size, arguments.part, arguments))
        gc.collect()
    table = Table(title=f"{arguments.strategy}, {arguments.part:,} new triples, {arguments.device}")
    for heading in (
        "history",
        "entities",
        "median s",
        "learning s",
        "CPU s",
        "growth",
        "slowest s",
        "peak GiB",
    ):
        table.add_column(heading, justify="right")
    grows = "cpu_seconds" if arguments.device == "cpu" else "seconds"
    for row in rows:
        table.add_row(
            f"{row['triples']:,}",
            f"{row['entities']:,}",
            f"{row['seconds']:.2f}",
            f"{row['learn_seconds']:.2f}",
            f"{row['cpu_seconds']:.2f}",
            f"{row[grows] / rows[0][grows]:.2f}x",
            f"{row['slowest']:.2f}",
            f"{row['memory_bytes'] / 2**30:.2f}",
        )
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
