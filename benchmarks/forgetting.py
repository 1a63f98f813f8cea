"""Forgetting on a dense corner of FB15k-237, small enough for a CPU; no test triple is read.

    python benchmarks/forgetting.py [--entities 2500] [--seeds 6 7 8] [--set dim=100 ...]
        [--json FILE]

As `dicgrl reproduce forgetting`, on the triples between so many of the entities with most of them
(but for the first hundred, which are hubs); half of the validation triples choose the model, the
others stand in the column of tests. It needs the dataset, in DICGRL_DATA or fetched.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from machine import name_of

from dicgrl import KnowledgeStream, load_stream
from dicgrl.graph import KnowledgeStreamBuilder
from dicgrl.graph.arrays import IntArray
from dicgrl.recipes import load_recipe
from dicgrl.research.forgetting import KINDS, ROWS, study_forgetting

HUBS = 100
SMALL = ("dim=100", "epochs=60", "negatives=16", "batch=1024", "lr=0.003")


def corner(entities: int) -> KnowledgeStream:
    """The triples of FB15k-237 between some of its entities."""
    stream = load_stream("FB15k-237")
    assert isinstance(stream, KnowledgeStream)
    (part,) = stream.merged()
    degree = np.bincount(part.train[:, [0, 2]].ravel(), minlength=part.num_entities)
    inside = np.zeros(part.num_entities, np.bool_)
    inside[np.argsort(-degree, kind="stable")[HUBS : HUBS + entities]] = True
    builder = KnowledgeStreamBuilder("corner")

    def rows(triples: IntArray) -> IntArray:
        some = triples[inside[triples[:, 0]] & inside[triples[:, 2]]]
        heads, tails = (part.entities.labels(some[:, column]) for column in (0, 2))
        return builder.rows(heads, part.relations.labels(some[:, 1]), tails)

    train, valid = rows(part.train), rows(part.valid)
    builder.add(train, valid[::2], valid[1::2])
    return builder.build()


def main() -> None:
    """Print H@10 and MRR of each kind of facts for each model, means over seeds in per cent."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entities", type=int, default=2500)
    options.add_argument("--seeds", type=int, nargs="+", default=[6, 7, 8])
    options.add_argument("--set", action="append", dest="changes", default=None)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    recipe = load_recipe("best", "FB15k-237", "transe", strategy="fresh")
    changed = recipe.settings.parsed(given.changes or SMALL)
    recipe = dataclasses.replace(recipe, settings=changed)
    stream = corner(given.entities)
    every = []
    for seed in given.seeds:
        every.append(study_forgetting(stream, recipe, 0.05, seed=seed))
        print(f"seed {seed}: {every[-1]['counts']}", flush=True)
        show({name: summed([row]) for name, row in every[-1]["rows"].items()})
    rows = {name: summed([found["rows"][name] for found in every]) for name in ROWS}
    print(f"{name_of(torch.device('cpu'))}; mean of {len(every)}")
    show(rows)
    if given.json:
        told = [{"model": name, "counts": every[0]["counts"], **row} for name, row in rows.items()]
        given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The means of rows: per cent by kind, millions of positives, seconds."""
    means = {
        kind: {m: 100 * mean(row["metrics"][kind][m] for row in rows) for m in ("hits@10", "mrr")}
        for kind in KINDS
    }
    positives, seconds = (mean(row[name] for row in rows) for name in ("positives", "seconds"))
    return {**means, "positives": positives / 1e6, "seconds": seconds}


def show(rows: Mapping[str, Mapping[str, Any]]) -> None:
    """A line for each model."""
    for name, row in rows.items():
        told = (f"{kind} {row[kind]['hits@10']:.1f} / {row[kind]['mrr']:.1f}" for kind in KINDS)
        print(f"{name:>10}: {', '.join(told)}; {row['positives']:.2f} M, {row['seconds']:.0f} s")


if __name__ == "__main__":
    main()
