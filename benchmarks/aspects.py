"""Does disentangling mean something? Recovers the known aspects of a synthetic knowledge graph.

    python benchmarks/aspects.py [--seeds 5] [--json FILE]

Every relation of the graph belongs to one of four independent aspects of the entities. The table
says how well the components that relations attend to tell these aspects apart (see
`dicgrl.evaluation.disentanglement`), before and after training, for published and learned routing,
and what that does to link prediction on the test triples.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from dicgrl.datasets.synthetic import AspectGraph, aspect_graph
from dicgrl.evaluation.disentanglement import recovery
from dicgrl.recipes import Recipe
from dicgrl.settings import LinkSettings
from dicgrl.whole import LinkRun

FORMS = ((4, 1), (8, 2))  # components, top
COLUMNS = ("separation", "rand", "mrr", "hits@10")


def measure(graph: AspectGraph, count: int, top: int, routing: str, seed: int) -> dict[str, float]:
    settings = LinkSettings(
        dim=32,
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
    run = LinkRun(graph.stream[0], Recipe("aspects", settings), seed, torch.device("cpu"))
    start = recovery(_chosen(run), count, graph.aspect_of)
    run.learn()
    end = recovery(_chosen(run), count, graph.aspect_of)
    return {"start": start["separation"], **end, **run.measure(run.test)}


def _chosen(run: LinkRun):  # type: ignore[no-untyped-def]
    model = run.model
    assert model.components is not None and model.attention is not None
    return model.components.route(model.attention.rows).chosen.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for count, top in FORMS:
        for routing in ("published", "learned"):
            found = [
                measure(aspect_graph(entities=300, levels=10, seed=seed), count, top, routing, seed)
                for seed in range(arguments.seeds)
            ]
            row: dict[str, object] = {"components": count, "top": top, "routing": routing}
            for column in ("start", *COLUMNS):
                values = [entry[column] for entry in found]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                row[column] = {"mean": statistics.mean(values), "std": spread}
            rows.append(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    table = Table(title=f"Aspects recovered, mean (std) of {arguments.seeds} seeds")
    for heading in ("K", "n", "routing", "separation at the start", *COLUMNS):
        table.add_column(heading)
    for row in rows:
        cells = [f"{row[c]['mean']:.2f} ({row[c]['std']:.2f})" for c in ("start", *COLUMNS)]  # type: ignore[index]
        table.add_row(str(row["components"]), str(row["top"]), str(row["routing"]), *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
