"""How much of the history a part activates where no budget bounds it.

    python benchmarks/activation_share.py [NAME ...] [--seed 0] [--json FILE]

For the later parts of a knowledge graph: the share of all old triples that are neighbours of new
ones (of order 1; of order 1 or 2) and use a component that these use as well, for several
divisions. Relations attend at random, as at the start of training; with one component alone there
is nothing to tell triples apart by, so that all neighbours are activated. Nothing is trained.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rows import Rows

import dicgrl
from dicgrl.graph import KnowledgeStream
from dicgrl.settings import Settings
from dicgrl.strategies.activator import activator_of
from dicgrl.strategies.base import StrategySettings
from dicgrl.trainers import LinkTrainer

DIVISIONS = ((1, 1), (8, 4), (8, 2), (8, 1))  # components, and how many of them a triple uses
HEADINGS = ("components", "graph", "order 1", "order 1 or 2")


def shares(
    stream: KnowledgeStream, components: int, top: int, seed: int
) -> list[tuple[float, float]]:
    """For each later part, the share of old triples of order 1, and of order 1 or 2."""
    settings = Settings(
        "transe",
        "dicgrl",
        dim=top,
        components=components,
        top=top,
        routing="published",
        fan=0,
    )
    trainer = LinkTrainer(settings, seed, torch.device("cpu"))
    found = []
    for part in stream.parts:
        trainer.take(part)
        old = trainer.count("train", 0, trainer.newest)
        if old:
            activator = activator_of(trainer, settings.of(StrategySettings))
            activated = activator.activate(old).concerned
            found.append(((activated.order == 1).sum() / old, len(activated) / old))
    return found


def span(values: list[float]) -> str:
    """The lowest and the highest of some shares, in per cent."""
    low, high = f"{100 * min(values):.1f}", f"{100 * max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=["FB15k-237", "WN18RR"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="written anew after each row")
    arguments = parser.parse_args()
    rows = Rows("Old triples that a part activates, in per cent", HEADINGS, arguments.json)
    for components, top in DIVISIONS:
        for name in arguments.names:
            stream = dicgrl.load_stream(name)
            if not isinstance(stream, KnowledgeStream):
                parser.error(f"{name} is no knowledge graph")
            found = shares(stream, components, top, arguments.seed)
            division = f"{top} of {components}"
            rows.add(division, name, *(span([each[i] for each in found]) for i in (0, 1)))
    rows.show()


if __name__ == "__main__":
    main()
