"""What it costs to keep one number of state per row, and rows in bfloat16: the same runs with each.

    python benchmarks/state.py [--graphs films,FB15k-237,WN18RR] [--models transe,complex]
        [--seeds 1] [--dim 100] [--whole] [--device cpu] [--json FILE]

Without `--whole`, cuts of the graphs (`decoders.py`) are learned part by part by `fresh`, with the
default settings; no test triple of the graph is looked at. With it, all parts at once, with the
best recipe of each graph and model, measured on the graph's test set. A row has the mean over the
seeds: MRR, H@10, and MRR as a multiple of that with Adam's two moments of every number.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any

from decoders import cut
from rich.console import Console
from rich.table import Table

import dicgrl

WAYS: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": "adam"},
    "rowwise": {"optimizer": "rowwise"},
    "rowwise, bfloat16": {"optimizer": "rowwise", "precision": "bfloat16"},
}


def measured(asked: argparse.Namespace, graph: str, model: str, way: str) -> dict[str, Any]:
    """One way on one graph: the mean over the seeds."""
    found, started = [], time.perf_counter()
    for seed in range(asked.seeds):
        common: dict[str, Any] = {"model": model, "seed": seed, "device": asked.device}
        if asked.whole:
            results = dicgrl.run(graph, merged=True, **common, **WAYS[way])
        else:
            results = dicgrl.run(cut(graph), dim=asked.dim, **common, **WAYS[way])
        found.append(results["parts"][-1]["whole"])
    seconds = (time.perf_counter() - started) / asked.seeds
    row: dict[str, Any] = {"graph": graph, "model": model, "way": way, "seeds": asked.seeds}
    for name in ("mrr", "hits@10"):
        row[name] = mean(each[name] for each in found)
    return row | {"mrrs": [each["mrr"] for each in found], "seconds": seconds}


def main() -> None:
    """Measure all ways on all graphs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", default="films,FB15k-237,WN18RR")
    parser.add_argument("--models", default="transe,complex")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    table = Table(title="all graphs" if asked.whole else f"cuts, dim {asked.dim}")
    for heading in ("graph", "model", "state and rows", "MRR", "H@10", "of adam's MRR", "seconds"):
        table.add_column(heading, justify="left" if heading in ("graph", "model") else "right")
    rows: list[dict[str, Any]] = []
    for graph in asked.graphs.split(","):
        for model in asked.models.split(","):
            adam = 0.0
            for way in WAYS:
                row = measured(asked, graph, model, way)
                adam = adam or row["mrr"]
                row["share"] = row["mrr"] / adam
                rows.append(row)
                print(json.dumps(row), flush=True)
                numbers = (f"{100 * row[name]:.1f}" for name in ("mrr", "hits@10", "share"))
                table.add_row(graph, model, way, *numbers, f"{row['seconds']:.0f}")
                if asked.json:
                    asked.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
