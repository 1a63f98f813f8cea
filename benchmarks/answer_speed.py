"""Speed of answers beside PyKEEN: seconds for many questions for tails, the best k of each.

    python benchmarks/answer_speed.py [--device cuda|cpu] [--entities 100000] [--questions 1000]
        [--length 200] [-k 10] [--model transe] [--pairs 10000] [--asked 20] [--repeats 3]
        [--json FILE]

A random graph of ten triples per entity; whether its vectors were trained does not matter for the
cost. Labels go in and labels with scores come out. PyKEEN: `predict_target`, which answers one
question at a time, with the same vectors where the model is TransE; `--asked` of the questions are
asked, and the seconds stand for all of them. `same answers` is the share of their best k that both
give. Processor seconds are those of all threads together: what is left of them on a busy machine is
the work itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import best, busy, name_of
from rich.console import Console
from rich.table import Table
from update_scale import PER_ENTITY, RELATIONS, Growing

from dicgrl.ask.links import LinkAsking
from dicgrl.ask.names import Names
from dicgrl.learner import Learner
from dicgrl.models import KnowledgeModel
from dicgrl.trainers import LinkTrainer

Question = tuple[str, str, None]
# Models of PyKEEN, and how many real numbers one of its vectors has for each of its length.
PYKEEN = {
    "transe": ("TransE", 1),
    "distmult": ("DistMult", 1),
    "complex": ("ComplEx", 2),
    "rotate": ("RotatE", 2),
}


def asking_of(asked: argparse.Namespace, **division: Any) -> LinkAsking:
    """A model of a graph that nothing was learned of."""
    learner = Learner(asked.model, device=asked.device, dim=asked.length, **division)
    trainer = learner.trainer
    assert isinstance(trainer, LinkTrainer)
    trainer.take(Growing(seed=0).part(PER_ENTITY * asked.entities))
    return LinkAsking(trainer, Names())


def questions_of(asked: argparse.Namespace) -> list[Question]:
    random = np.random.default_rng(1)
    heads = random.integers(asked.entities, size=asked.questions)
    relations = random.integers(RELATIONS, size=asked.questions)
    return [(str(head), str(kind), None) for head, kind in zip(heads, relations, strict=True)]


def pykeen(
    asked: argparse.Namespace, like: KnowledgeModel, questions: Sequence[Question]
) -> Callable[[], list[list[str]]] | None:
    """Gives the answers to the questions; None where PyKEEN is not installed."""
    if find_spec("pykeen") is None or asked.model not in PYKEEN:
        return None
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    import pykeen.models
    from pykeen.predict import predict_target
    from pykeen.triples import CoreTriplesFactory

    some = np.stack([np.arange(RELATIONS), np.arange(RELATIONS), np.arange(RELATIONS)], 1)
    factory = CoreTriplesFactory.create(
        torch.from_numpy(some), num_entities=asked.entities, num_relations=RELATIONS
    )
    norm = {"scoring_fct_norm": 1} if asked.model == "transe" else {}
    name, numbers = PYKEEN[asked.model]
    length = asked.length // numbers
    model: Any = getattr(pykeen.models, name)(
        triples_factory=factory, embedding_dim=length, random_seed=0, **norm
    ).to(asked.device)
    if asked.model == "transe":
        weights = (model.entity_representations[0], model.relation_representations[0])
        with torch.no_grad():
            for weight, table in zip(weights, (like.entities, like.relations), strict=True):
                weight._embeddings.weight.copy_(table.rows)

    def answers() -> list[list[str]]:
        found = []
        for head, relation, _ in questions:
            table = predict_target(model, head=int(head), relation=int(relation)).df
            labels = [str(tail) for tail in table["tail_id"].head(asked.k + 1)]
            # PyKEEN answers with the entity of the question, too.
            found.append([label for label in labels if label != head][: asked.k])
        return found

    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--length", type=int, default=200, help="of a vector, d")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=10_000, help="whose relation is asked for")
    parser.add_argument("--asked", type=int, default=20, help="questions that PyKEEN answers")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    device = torch.device(asked.device)
    questions = questions_of(asked)
    few = questions[: asked.asked]
    plain = asking_of(asked)
    random = np.random.default_rng(2)
    pairs = [(str(h), str(t)) for h, t in random.integers(asked.entities, size=(asked.pairs, 2))]

    many, share = len(questions), len(questions) / len(few)
    rows: list[tuple[str, int, float, float]] = []

    def measure(name: str, count: int, work: Callable[[], object], times: float = 1) -> None:
        spent = best(work, device, asked.repeats), busy(work, asked.repeats)
        rows.append((name, count, times * spent[0], times * spent[1]))

    theirs = pykeen(asked, plain.trainer.model, few)
    if theirs is not None:
        measure("PyKEEN", many, theirs, share)
    measure("dicgrl", many, lambda: plain.predict_links(questions, k=asked.k))
    seen = plain.among("seen")
    measure("among seen", many, lambda: seen.predict_links(questions, k=asked.k))
    measure(
        "one at a time",
        many,
        lambda: [plain.predict_links([each], k=asked.k) for each in few],
        share,
    )
    divided = asking_of(asked, components=8, top=4)
    measure("top 4 of 8", many, lambda: divided.predict_links(questions, k=asked.k))
    measure("relations of pairs", len(pairs), lambda: plain.predict_relations(pairs, k=asked.k))
    same = None
    if theirs is not None and asked.model == "transe":
        mine = [{one.label for one in each} for each in plain.predict_links(few, k=asked.k)]
        pair = zip(mine, theirs(), strict=True)
        same = sum(len(own & set(other)) for own, other in pair) / (asked.k * len(few))

    table = Table(
        title=f"The best {asked.k} of {asked.entities:,} entities, {asked.model} "
        f"d={asked.length}, on {name_of(device)}"
    )
    for heading in ("", "questions", "seconds", "processor seconds", "times PyKEEN"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, count, spent, worked in rows:
        compared = theirs is not None and count == many
        times = f"{rows[0][2] / spent:.1f}, {rows[0][3] / worked:.1f}" if compared else ""
        table.add_row(name, f"{count:,}", f"{spent:.2f}", f"{worked:.2f}", times)
    Console().print(table)
    if same is not None:
        Console().print(f"same answers: {100 * same:.1f} %")
    if asked.json:
        settings = {key: value for key, value in vars(asked).items() if key != "json"}
        names = ("row", "questions", "seconds", "processor_seconds")
        entries = [dict(zip(names, row, strict=True)) for row in rows]
        result = {"device": name_of(device), "settings": settings, "rows": entries, "same": same}
        asked.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
