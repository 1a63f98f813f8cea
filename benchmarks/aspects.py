"""Does disentangling mean something? Recovers the known aspects of a synthetic knowledge graph.

    python benchmarks/aspects.py [--seeds 5] [--json FILE]

Every relation of the graph belongs to one of four independent aspects of the entities. The table
says how well the components that relations attend to tell these aspects apart (see
`dicgrl.evaluation.disentanglement`), before and after training, for published and learned routing,
and what that does to link prediction on the test triples. Several entities answer a question
equally well; `mrr at most` is what a model has that knows the level of every entity.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from dicgrl.datasets.synthetic import AspectGraph, aspect_graph
from dicgrl.evaluation.disentanglement import recovery
from dicgrl.graph.arrays import IntArray
from dicgrl.settings import Settings
from dicgrl.strategies.base import StrategySettings
from dicgrl.strategies.bounds import Lower
from dicgrl.trainers import LinkTrainer

FORMS = ((4, 1), (8, 2))  # components, top
COLUMNS = {  # what is measured, and its heading
    "start": "separation at the start",
    "separation": "separation",
    "rand": "rand",
    "mrr": "mrr",
    "hits@10": "hits@10",
    "ceiling": "mrr at most",
}


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation over seeds."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of some values; one value alone has none."""
        return cls(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0)

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.std:.2f})"


@dataclass(frozen=True, slots=True)
class Row:
    """What one form of the model did over all seeds."""

    components: int
    top: int
    routing: str
    seeds: int
    measured: dict[str, Spread]


def measure(graph: AspectGraph, count: int, top: int, routing: str, seed: int) -> dict[str, float]:
    settings = Settings(
        dim=32 * top // count,  # vectors of 32 numbers
        components=count,
        top=top,
        routing=routing,
        epochs=150,
        validate_every=50,
        patience=0,
        lr=1e-2,
        negatives=16,
        margin=6.0,
    )
    trainer = LinkTrainer(settings, seed, torch.device("cpu"))
    trainer.take(graph.stream[0])
    start = recovery(chosen(trainer), count, graph.aspect_of)
    Lower(settings.of(StrategySettings)).learn(trainer)
    end = recovery(chosen(trainer), count, graph.aspect_of)
    found = {"start": start["separation"], **end, **trainer.measure(trainer.examples("test"))}
    return found | {"ceiling": ceiling(graph)}


def ceiling(graph: AspectGraph) -> float:
    """Expected filtered test MRR if right answers come first, in any order among themselves."""
    part = graph.stream[0]
    known = np.concatenate([part.train, part.valid, part.test])
    facts = set(map(tuple, known.tolist()))
    head, relation, tail = known.T
    aspect = graph.aspect_of[relation]
    shift = np.empty(part.num_relations, dtype=np.int64)  # all facts of a relation agree on it
    shift[relation] = graph.level[tail, aspect] - graph.level[head, aspect]
    values = []
    for h, r, t in part.test.tolist():
        level = graph.level[:, graph.aspect_of[r]]
        tails = np.flatnonzero(level == level[h] + shift[r]).tolist()
        heads = np.flatnonzero(level == level[t] - shift[r]).tolist()
        for answers in ([(h, r, e) for e in tails], [(e, r, t) for e in heads]):
            count = 1 + sum(fact not in facts for fact in answers)  # known ones are filtered
            values.append(float(np.mean(1 / np.arange(1, count + 1))))
    return statistics.mean(values)


def chosen(trainer: LinkTrainer) -> IntArray:
    model = trainer.model
    assert model.components is not None and model.attention is not None
    components: IntArray = model.components.route(model.attention.rows).chosen.numpy()
    return components


def measure_form(count: int, top: int, routing: str, seeds: int) -> Row:
    found = [
        measure(aspect_graph(entities=300, levels=10, seed=seed), count, top, routing, seed)
        for seed in range(seeds)
    ]
    measured = {column: Spread.of([entry[column] for entry in found]) for column in COLUMNS}
    return Row(count, top, routing, seeds, measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [
        measure_form(count, top, routing, arguments.seeds)
        for count, top in FORMS
        for routing in ("published", "learned")
    ]
    if arguments.json:
        text = json.dumps([asdict(row) for row in rows], indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    table = Table(title=f"Aspects recovered, mean (std) of {arguments.seeds} seeds")
    for heading in ("K", "n", "routing", *COLUMNS.values()):
        table.add_column(heading)
    for row in rows:
        cells = [str(row.measured[column]) for column in COLUMNS]
        table.add_row(str(row.components), str(row.top), row.routing, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
