"""Which decoder suits a graph of one's own: streams cut out of known graphs, with the defaults.

    python benchmarks/decoders.py [--graphs FB15k-237,films,WN18RR] [--dim 100] [--device cpu]
        [--models transe,rotate,complex,distmult] [--seed 0] [--json FILE]

A cut has the training triples among some of a graph's entities, chosen at random, and is split into
parts that bring entities, relations and facts about old ones (`hybrid`), with triples held out of
them: no test triple of the graph is looked at. The table has what `fresh` reaches after the last
part, MRR and H@1 also where the entity of a question is no answer to it, and what a race of
decoders (`--model auto`) finds on the first part.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import dicgrl
from dicgrl import KnowledgeStream
from dicgrl.jobs.race import RUNNERS, race

SHARES = {"FB15k-237": 0.2, "WN18RR": 0.45, "films": 0.8}  # of the entities, about 10,000 triples


def cut(name: str, seed: int = 5) -> KnowledgeStream:
    """A stream of four parts out of some of a graph's entities."""
    whole = dicgrl.load_stream(name)
    assert isinstance(whole, KnowledgeStream)
    static = whole.merged()[0]
    kept = np.random.default_rng(seed).random(len(static.entities)) < SHARES.get(name, 0.3)
    rows = static.train[kept[static.train[:, 0]] & kept[static.train[:, 2]]]
    entities = np.array(list(static.entities), dtype=object)
    relations = np.array(list(static.relations), dtype=object)
    facts = np.stack([entities[rows[:, 0]], relations[rows[:, 1]], entities[rows[:, 2]]], axis=1)
    stream = KnowledgeStream.from_labels(f"{name}-cut", [facts])
    return stream.split("hybrid", parts=4, first=0.7, valid=0.08, test=0.1, seed=1)


def measured(stream: KnowledgeStream, model: str, asked: argparse.Namespace) -> dict[str, Any]:
    results = dicgrl.run(stream, model=model, dim=asked.dim, seed=asked.seed, device=asked.device)
    last = results["parts"][-1]
    return {
        "model": model,
        **{f"W {name}": last["whole"][name] for name in last["whole"] if name != "mean_rank"},
        "A mrr": last["average"]["mrr"],
        "seconds": sum(part["learn_seconds"] for part in results["parts"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", default="FB15k-237,films,WN18RR")
    parser.add_argument("--models", default=",".join(RUNNERS))
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    columns = ("W mrr", "W hits@1", "W hits@10", "W mrr_others", "W hits@1_others", "A mrr")
    table = Table(title=f"decoders with the defaults, dim {asked.dim}, in per cent")
    for heading in ("graph", "model", *columns, "seconds", "race"):
        table.add_column(heading, justify="left" if heading in ("graph", "model") else "right")
    rows = []
    for name in asked.graphs.split(","):
        stream = cut(name)
        found = race(stream, changes={"dim": asked.dim}, seed=asked.seed, device=asked.device)
        for model in asked.models.split(","):
            row = {"graph": name, **measured(stream, model, asked)}
            row["race"] = found.validation.get(model)
            rows.append(row)
            shown = [f"{100 * row[column]:.1f}" for column in columns]
            raced = "" if row["race"] is None else f"{100 * row['race']:.1f}"
            table.add_row(name, model, *shown, f"{row['seconds']:.0f}", raced)
    Console(width=160).print(table)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
