"""How the tile of the ranking kernel was chosen: test triples per second for several tiles.

    python benchmarks/rank_tiles.py [--dataset FB15k-237] [--length 200] [--repeats 5]

A tile is queries x candidates of one program, by so many warps. Needs a GPU.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import torch
from machine import best, name_of, whole
from rich.console import Console
from rich.table import Table

from dicgrl.evaluation import Ranker
from dicgrl.models import Components, KnowledgeModel

TILES = (
    (16, 512, 4), (16, 1024, 8), (32, 512, 4), (16, 1024, 4),
    (8, 1024, 4), (32, 256, 4), (16, 256, 2), (8, 512, 4),
)  # fmt: skip
FORMS: dict[str, tuple[str, dict[str, Any], Components | None]] = {
    "p = 1": ("transe", {"p": 1}, None),
    "p = 2": ("transe", {"p": 2}, None),
    "top 4 of 8": ("transe", {"p": 1}, Components(8, 4)),
    "complex": ("complex", {}, None),
    "rotate": ("rotate", {}, None),
}


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA device")
    from dicgrl.kernels import query_ranks

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", default="FB15k-237")
    parser.add_argument("--length", type=int, default=200, help="of a whole vector, d")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    device, part = torch.device("cuda"), whole(arguments.dataset)
    known = np.concatenate([part.train, part.valid, part.test])
    ranker = Ranker(torch.from_numpy(known).to(device), part.num_relations)
    test = torch.from_numpy(part.test.copy()).to(device)
    models = {}
    for name, (model, options, components) in FORMS.items():
        models[name] = KnowledgeModel(model, arguments.length, components, options, device=device)
        models[name].grow(part.num_entities, part.num_relations)
    table = Table(title=f"Triples ranked per second, {arguments.dataset} on {name_of(device)}")
    for heading in ("queries", "candidates", "warps", *FORMS):
        table.add_column(heading, justify="right")
    for tile in TILES:
        query_ranks.QUERIES, query_ranks.CANDIDATES, query_ranks._WARPS = tile
        rates = []
        for ranked in models.values():

            def rank(ranked: KnowledgeModel = ranked) -> object:
                return ranker.rank(ranked, test, range(part.num_entities))

            rates.append(f"{len(test) / best(rank, device, arguments.repeats):,.0f}")
        table.add_row(*map(str, tile), *rates)
    Console().print(table)


if __name__ == "__main__":
    main()
