"""Forgetting on a dense corner of FB15k-237, small enough for a CPU; no test triple is read.

    python benchmarks/forgetting.py [--entities 2500] [--seed 3] [--set dim=100 --set epochs=60 ...]

As `dicgrl reproduce forgetting`, on the triples between so many of the entities with most of them
(but for the first hundred, which are hubs); half of the validation triples choose the model, the
others stand in the column of tests. It needs the dataset, in DICGRL_DATA or fetched.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np
import torch
from machine import name_of

from dicgrl import KnowledgeStream, load_stream
from dicgrl.graph import KnowledgeStreamBuilder
from dicgrl.graph.arrays import IntArray
from dicgrl.recipes import load_recipe
from dicgrl.research.forgetting import KINDS, study_forgetting

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
    """Print H@10 and MRR of each kind of facts for each model, in per cent."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entities", type=int, default=2500)
    options.add_argument("--seed", type=int, default=3)
    options.add_argument("--set", action="append", dest="changes", default=None)
    given = options.parse_args()
    recipe = load_recipe("best", "FB15k-237", "transe", strategy="fresh")
    changed = recipe.settings.parsed(given.changes or SMALL)
    recipe = dataclasses.replace(recipe, settings=changed)
    found = study_forgetting(corner(given.entities), recipe, 0.05, seed=given.seed)
    print(f"{name_of(torch.device('cpu'))}; {found['counts']}")
    for name, row in found["rows"].items():
        told = (
            f"{kind} {100 * row['metrics'][kind]['hits@10']:.1f} / "
            f"{100 * row['metrics'][kind]['mrr']:.1f}"
            for kind in KINDS
        )
        print(
            f"{name:>10}: {', '.join(told)}; {row['positives'] / 1e6:.2f} M, {row['seconds']:.0f} s"
        )


if __name__ == "__main__":
    main()
