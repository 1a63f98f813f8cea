"""How many answers newcomers crowd out, by kinds of questions, on validation data.

    python benchmarks/crowding.py NAME [--model transe] [--strategies dicgrl upper] [--seed 0]
        [--device auto] [--json FILE]

All parts are learned by the `best` recipe of each strategy. Then the answers of all validation
triples are ranked twice: among the entities of the first part, as if nobody had come (an answer
that came itself is ranked among them), and among all. Old are the entities of the first part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rows import Rows

import dicgrl
from dicgrl.evaluation import Ranker
from dicgrl.graph import KnowledgeStream
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.strategies import strategy_named
from dicgrl.trainers import LinkTrainer

HEADINGS = ("strategy", "question", "answers", "H@10 among old", "H@10 among all", "kept")
SPLITS = ("train", "valid", "test")  # the test triples only filter ranks
TOP = 10


def learned(
    stream: KnowledgeStream, model: str, strategy: str, seed: int, device: str
) -> LinkTrainer:
    """What a strategy makes of all parts."""
    divided = strategy_named(strategy).divided
    recipe = load_recipe("best", stream.name, model, disentangled=divided, strategy=strategy)
    learner = Learner(settings=recipe.settings, seed=seed, device=device)
    for part in stream.parts:
        learner.learn(part)
    assert isinstance(learner.trainer, LinkTrainer)
    return learner.trainer


def kinds(trainer: LinkTrainer, old: int) -> list[tuple[str, int, list[float]]]:
    """For each kind of question: how many, the share that is found, twice, and what is kept."""
    triples = trainer.examples("valid")
    known = torch.cat([trainer.examples(split) for split in SPLITS])
    ranker = Ranker(known, trainer.model.num_relations)
    found = {
        last: ranker.rank(trainer.model, triples, range(last)).realistic <= TOP
        for last in (old, trainer.model.num_entities)
    }
    before, after = found[old], found[trainer.model.num_entities]  # the head side first
    answer_is_new = triples[:, [0, 2]].T.ge(old)
    given_is_new = answer_is_new.flip(0)
    rows = []
    for given in (False, True):
        for answer in (False, True):
            of_kind = (given_is_new == given) & (answer_is_new == answer)
            if not of_kind.any():
                continue
            words = " to ".join("new" if new else "old" for new in (given, answer))
            hits = (before[of_kind], after[of_kind], after[of_kind & before])
            shares = [100 * each.double().mean().item() for each in hits]
            rows.append((words, int(of_kind.sum()), shares))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--strategies", nargs="+", default=["dicgrl", "upper"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each row")
    arguments = parser.parse_args()
    stream = dicgrl.load_stream(arguments.name)
    if not isinstance(stream, KnowledgeStream):
        parser.error(f"{arguments.name} is no knowledge graph")
    old = stream.parts[0].new_entities.stop
    rows = Rows(
        f"{stream.name}, {arguments.model}: validation, in per cent", HEADINGS, arguments.json
    )
    for strategy in arguments.strategies:
        trainer = learned(stream, arguments.model, strategy, arguments.seed, arguments.device)
        for words, count, shares in kinds(trainer, old):
            rows.add(strategy, words, f"{count:,}", *(f"{share:.1f}" for share in shares))
    rows.show()


if __name__ == "__main__":
    main()
