"""Speed of filtered ranking beside PyKEEN: test triples per second, both sides of each.

    python benchmarks/rank_speed.py [--model transe|distmult|complex|rotate] [--device cuda|cpu]
        [--dataset FB15k-237] [--length 200] [--batch 256] [--triples N] [--repeats 3] [--json FILE]

`--length` counts real numbers: ComplEx and RotatE have half as many complex ones. All entities are
candidates, known triples of all splits are filtered. `PyTorch path` is this library with its
kernels switched off. PyKEEN: RankBasedEvaluator with batches of `--batch`; its RotatE takes one
norm of all differences instead of the sum of moduli, hence another MRR. The floor is what scores
take if every instruction runs as fast as those of a matrix product: two per dimension for
TransE (p = 1), one for a dot product, two and a half for a modulus, whose root is slower still.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import MODELS, best, halved, instructions, name_of, pykeen_model, whole
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.graph import KnowledgePart
from dicgrl.models import Components, KnowledgeModel

# For each dimension of a pair.
INSTRUCTIONS = {"transe": 2, "distmult": 1, "complex": 1, "rotate": 2.5}


def known_triples(part: KnowledgePart) -> Tensor:
    return torch.from_numpy(np.concatenate([part.train, part.valid, part.test]))


def ours(
    part: KnowledgePart,
    arguments: argparse.Namespace,
    components: Components | None = None,
    model: tuple[str, dict[str, Any]] | None = None,
    share: int = 1,
) -> tuple[float, float]:
    """Test triples per second, and the MRR that they have."""
    device = torch.device(arguments.device)
    test = torch.from_numpy(part.test[: arguments.triples : share].copy()).to(device)
    name, options = model or (arguments.model, MODELS[arguments.model][0])
    ranked = KnowledgeModel(name, arguments.length, components, options, device=device)
    ranked.grow(part.num_entities, part.num_relations)
    ranker = Ranker(known_triples(part).to(device), part.num_relations)
    candidates = range(part.num_entities)
    metrics = ranking_metrics(ranker.rank(ranked, test, candidates))
    spent = best(lambda: ranker.rank(ranked, test, candidates), device, arguments.repeats)
    return len(test) / spent, metrics["mrr"]


def pykeen(part: KnowledgePart, arguments: argparse.Namespace) -> tuple[float | None, float | None]:
    """Test triples per second and their MRR; None where PyKEEN is not installed."""
    if find_spec("pykeen") is None:
        return None, None
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.triples import CoreTriplesFactory

    device = torch.device(arguments.device)
    known = known_triples(part)
    factory = CoreTriplesFactory.create(
        known, num_entities=part.num_entities, num_relations=part.num_relations
    )
    model = pykeen_model(arguments.model, arguments.length, triples_factory=factory).to(device)
    options = MODELS[arguments.model][0]
    same = KnowledgeModel(arguments.model, arguments.length, None, options)  # that of our rows
    same.grow(part.num_entities, part.num_relations)
    relations = same.relations.rows
    if arguments.model == "rotate":  # PyKEEN has the number, not its angle
        turned = torch.polar(torch.ones_like(relations), relations)
        relations = torch.view_as_real(turned).flatten(1)
    with torch.no_grad():
        weights = (model.entity_representations[0], model.relation_representations[0])
        for weight, rows in zip(weights, (same.entities.rows, relations), strict=True):
            weight._embeddings.weight.copy_(rows)
    test = torch.from_numpy(part.test[: arguments.triples].copy())
    evaluator = RankBasedEvaluator(filtered=True, clear_on_finalize=True)

    def evaluate() -> Any:
        return evaluator.evaluate(
            model,
            test,
            additional_filter_triples=[known],
            batch_size=arguments.batch,
            device=device,
            use_tqdm=False,
        )

    mrr = float(evaluate().get_metric("both.realistic.inverse_harmonic_mean_rank"))
    return len(test) / best(evaluate, device, arguments.repeats, warm_up=0), mrr


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="transe")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dataset", default="FB15k-237")
    parser.add_argument("--length", type=int, default=200, help="of a whole vector, d")
    parser.add_argument("--batch", type=int, default=256, help="of PyKEEN")
    parser.add_argument("--triples", type=int, help="test triples; all on a GPU, else 500")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    part = whole(arguments.dataset)
    if arguments.triples is None:
        arguments.triples = len(part.test) if device.type == "cuda" else 500

    rows: list[tuple[str, float | None, float | None]] = [("PyKEEN", *pykeen(part, arguments))]
    os.environ["DICGRL_KERNELS"] = "0"
    rows.append(("dicgrl, PyTorch path", *ours(part, arguments)))
    if device.type == "cuda":
        del os.environ["DICGRL_KERNELS"]
        half = halved(arguments.model)
        rows += [
            ("dicgrl, kernels", *ours(part, arguments)),
            (f"dicgrl, kernels, top {half.top} of {half.count}", *ours(part, arguments, half)),
        ]
        if arguments.model == "transe":
            rows += [
                ("dicgrl, kernels, p = 2", *ours(part, arguments, model=("transe", {"p": 2}))),
                ("dicgrl, kernels, ConvKB", *ours(part, arguments, model=("convkb", {}), share=10)),
            ]
    work = 2 * INSTRUCTIONS[arguments.model] * part.num_entities * arguments.length
    rows.append(("floor", instructions(device) / work, None))

    table = Table(
        title=f"Filtered ranks, {arguments.model} d={arguments.length}, {arguments.triples:,} test "
        f"triples, {arguments.dataset} on {name_of(device)}"
    )
    for heading in ("", "triples/s", "times PyKEEN", "MRR"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate, mrr in rows:
        table.add_row(
            name,
            "not installed" if rate is None else f"{rate:,.0f}",
            "" if rate is None or rows[0][1] is None else f"{rate / rows[0][1]:.1f}",
            "" if mrr is None else f"{mrr:.5f}",
        )
    Console().print(table)
    if arguments.json:
        settings = {key: value for key, value in vars(arguments).items() if key != "json"}
        entries = [{"row": n, "triples_per_second": r, "mrr": m} for n, r, m in rows]
        result = {"device": name_of(device), "settings": settings, "rows": entries}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
