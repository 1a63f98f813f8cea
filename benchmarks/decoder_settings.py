"""Settings of ComplEx and DistMult for whole graphs, tried on validation triples alone.

    python benchmarks/decoder_settings.py [--graphs FB15k-237,WN18RR] [--only complex] [--jobs 4]
        [--set key=value ...] [--device auto] [--seed 0] [--json FILE]

A candidate learns all parts of a graph merged and is measured once, on all of its validation
triples; test sets are taken out of the stream before. Candidates run side by side in processes of
their own, those that take longest first, and each is printed as a line of JSON when it ends.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any, NamedTuple

import dicgrl
from dicgrl.common.atomic import write_json
from dicgrl.jobs.sweep import without_test
from dicgrl.learner import Learner
from dicgrl.settings import Settings
from dicgrl.trainers import LinkTrainer

# As Lacroix et al. (2018) have it, but for steps, which are fewer.
_COMMON: dict[str, Any] = {
    "negatives": 0,
    "known_negatives": True,
    "inverses": True,
    "optimizer": "adagrad",
    "lr": 0.1,
    "tf32": True,
    "dim": 1000,
    "epochs": 50,
    "decay": 1.0,
    "patience": 0,
    "validate_at_most": 1,  # the last epoch is kept, and measured apart
    "validate_every": 10_000,
}
_FB: dict[str, Any] = {**_COMMON, "batch": 500, "n3": 0.05}
_WN: dict[str, Any] = {**_COMMON, "batch": 250, "n3": 0.1}

CANDIDATES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("FB15k-237", "complex"): {
        "long": {**_FB, "dim": 2000, "epochs": 40},
        "falling": _FB,
        "even": {**_FB, "decay": 0.0},
        "one way": {**_FB, "inverses": False},
    },
    ("WN18RR", "complex"): {
        "long": {**_WN, "batch": 100, "epochs": 30},
        "falling": _WN,
        "even": {**_WN, "decay": 0.0},
        "one way": {**_WN, "inverses": False},
    },
    ("FB15k-237", "distmult"): {"falling": _FB},
    ("WN18RR", "distmult"): {"falling": _WN},
}


class Trial(NamedTuple):
    """A candidate on a graph, and where it is tried."""

    graph: str
    model: str
    name: str
    changes: tuple[str, ...]
    seed: int
    device: str

    def settings(self) -> Settings:
        """What it learns with."""
        own = CANDIDATES[self.graph, self.model][self.name]
        return Settings(self.model, "fresh", **own).parsed(self.changes)


def measured(trial: Trial) -> dict[str, Any]:
    """What a candidate reaches on the validation triples of the merged graph."""
    settings = trial.settings()
    part = without_test(dicgrl.load_stream(trial.graph).merged())[0]
    learner = Learner(settings=settings, seed=trial.seed, device=trial.device)
    began = time.perf_counter()
    learner.learn(part)
    trainer = learner.trainer
    assert isinstance(trainer, LinkTrainer)
    found = trainer.measure(trainer.examples("valid"))
    usual = Settings(trial.model, "fresh").as_dict()
    changed = {key: v for key, v in settings.as_dict().items() if v != usual.get(key)}
    return {
        "graph": trial.graph,
        "model": trial.model,
        "candidate": trial.name,
        "mrr": round(found["mrr"], 4),
        "hits@1": round(found["hits@1"], 4),
        "hits@10": round(found["hits@10"], 4),
        "learn_seconds": round(learner.reports[-1].learn_seconds, 1),
        "seconds": round(time.perf_counter() - began, 1),
        "device": str(trainer.device),
        "seed": trial.seed,
        "settings": changed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", default="FB15k-237,WN18RR")
    parser.add_argument("--only", default="complex", help="models, such as complex,distmult")
    parser.add_argument("--candidates", default="", help="such as long,falling; all unless given")
    parser.add_argument("--jobs", type=int, default=4, help="candidates side by side")
    parser.add_argument("--set", dest="changes", action="append", default=[], help="for all")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="written anew after each candidate")
    asked = parser.parse_args()
    graphs, models = asked.graphs.split(","), asked.only.split(",")
    if any((graph, model) not in CANDIDATES for graph in graphs for model in models):
        parser.error(f"there are candidates for {', '.join(map(' '.join, CANDIDATES))}")
    wanted = asked.candidates.split(",") if asked.candidates else []
    trials = [
        Trial(graph, model, name, tuple(asked.changes), asked.seed, asked.device)
        for model in models
        for graph in graphs
        for name in CANDIDATES[graph, model]
        if not wanted or name in wanted
    ]
    trials.sort(key=lambda trial: trial.name != "long")
    rows = []
    with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(measured, trials):
            print(json.dumps(row), flush=True)
            rows.append(row)
            if asked.json:
                write_json(asked.json, rows)


if __name__ == "__main__":
    main()
