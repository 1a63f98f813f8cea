"""A graph night by night: the nightly model, one that is never updated, and real retraining.

    python benchmarks/nights.py films --nights 12 --first 0.4 --set dim=32 --set epochs=30
    python benchmarks/nights.py FB15k-237 --nights 60 --device cuda
    python benchmarks/nights.py FB15k-237 --nights 20 --entities 0.4 --set dim=32

All parts of the dataset are merged and split anew: a first part, then nights. The nightly model
learns them by the job behind `dicgrl nightly`; the stale one only lets newcomers start; every few
nights a copy of the nightly model is retrained on all that is known, as `dicgrl retrain` does. All
are measured on the test facts of all nights so far, among all entities so far. The run, with the
page of every night, stays in --out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import name_of

import dicgrl
from dicgrl.common.devices import pick_device
from dicgrl.errors import ModelWarning
from dicgrl.graph import SPLITS, KnowledgeStream
from dicgrl.jobs.results import results_of
from dicgrl.learner import Learner
from dicgrl.nights.job import NightOptions, nightly


@dataclass(frozen=True, slots=True)
class Setting:
    """What arrives, and how it is learned.

    Attributes:
        name: The dataset.
        by: The way to split it.
        nights: How many nights follow the first part.
        first: The share of the first part.
        entities: The share of entities that are taken.
        strategy: How a night is learned.
        every: After how many nights the truth is looked at.
        changes: Settings of the model.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
    """

    name: str
    by: str = "nightly"
    nights: int = 12
    first: float = 0.4
    entities: float = 1.0
    strategy: str = "fresh"
    every: int = 4
    changes: tuple[str, ...] = ()
    seed: int = 0
    device: str = "auto"

    def stream(self) -> KnowledgeStream:
        """What arrives, in parts; facts are held out as the dataset has them."""
        whole = dicgrl.load_stream(self.name).merged()
        if not isinstance(whole, KnowledgeStream):
            raise SystemExit("nights are of knowledge graphs")
        if self.entities < 1:
            whole = _some_of(whole, self.entities, self.seed)
        return whole.split(self.by, parts=self.nights + 1, first=self.first, seed=self.seed)

    def learner(self, strategy: str = "") -> Learner:
        """A model that knows nothing."""
        changes: dict[str, Any] = {}
        for text in self.changes:
            key, _, value = text.partition("=")
            changes[key] = json.loads(value) if value[:1] in "-.0123456789" else value
        used = {"seed": self.seed, "device": self.device, **changes}
        return Learner("transe", strategy or self.strategy, **used)


def _some_of(whole: KnowledgeStream, share: float, seed: int) -> KnowledgeStream:
    """The triples among a share of the entities; a twentieth each is held out anew."""
    part = whole.parts[0]
    kept = np.random.default_rng(seed).random(part.num_entities) < share
    rows = np.concatenate([getattr(part, split) for split in SPLITS])
    rows = rows[kept[rows[:, 0]] & kept[rows[:, 2]]]
    columns = (part.entities, part.relations, part.entities)
    labels = [names.labels(rows[:, at]) for at, names in enumerate(columns)]
    triples = list(zip(*labels, strict=True))
    return KnowledgeStream.from_labels(whole.name, [triples], valid=0.05, test=0.05, seed=seed)


@dataclass(frozen=True, slots=True)
class Night:
    """A night and what the three models know after it.

    Attributes:
        number: Counted from 1; 0 is the first part.
        report: The report of the nightly job; empty for the first part.
        nightly: Metrics of the nightly model over all test facts so far.
        stale: Those of the model that is never updated.
        retrained: Those of one that was retrained; None on other nights.
        seconds: What the night's learning took, and the retraining.
    """

    number: int
    report: dict[str, Any]
    nightly: dict[str, float]
    stale: dict[str, float]
    retrained: dict[str, float] | None
    seconds: tuple[float, float]


def lived(setting: Setting, out: Path) -> Iterator[Night]:
    """Let nights pass; the run is in `out`."""
    stream = setting.stream()
    learner, stale = setting.learner(), setting.learner("frozen")
    learner.learn(stream[0])
    stale.learn(stream[0])
    found = learner.evaluate()
    about = {"dataset": setting.name, "task": stream.task, "recipe": "default", "published": {}}
    learner.save(out, about=about, keep="last", results=results_of(learner, about))
    took = learner.reports[0].learn_seconds
    yield Night(0, {}, found.whole, stale.evaluate().whole, None, (took, 0.0))
    options = NightOptions(device=setting.device, evaluate="all")
    for part in stream.parts[1:]:
        outcome = nightly(out, part, options)
        stale.learn(part)
        retrained, seconds = None, 0.0
        if part.index % setting.every == 0 or part.index == setting.nights:
            again = Learner.load(out, device=setting.device)
            started = time.perf_counter()
            again.retrain()
            seconds = time.perf_counter() - started
            retrained = again.evaluate().whole
        now = outcome.night["held_out"]["metrics"]
        times = (outcome.night["seconds"]["learn"], seconds)
        yield Night(part.index, outcome.night, now, stale.evaluate().whole, retrained, times)


def main() -> None:
    """Print a line for every night."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--by", default="nightly")
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--first", type=float, default=0.5)
    parser.add_argument("--entities", type=float, default=1.0)
    parser.add_argument("--strategy", default="fresh")
    parser.add_argument("--every", type=int, default=10, help="nights between two retrainings")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="a new folder for the run")
    parser.add_argument("--json", type=Path, help="written anew after every night")
    given = vars(parser.parse_args())
    out, written = given.pop("out"), given.pop("json")
    setting = Setting(**given | {"changes": tuple(given["changes"])})
    warnings.simplefilter("ignore", ModelWarning)
    print(f"{name_of(pick_device(setting.device))}; {setting}")
    print("MRR and H@10 in per cent; signal and truth: what retraining would add to the MRR")
    print(
        f"{'night':>5} {'facts':>7} {'new':>5} {'foretold':>8} {'nightly':>8} {'stale':>6} "
        f"{'retrained':>9} {'H@10':>6} {'signal':>12} {'truth':>6} {'learn s':>8} {'retrain s':>9}"
    )
    nights = []
    with tempfile.TemporaryDirectory() as place:
        for night in lived(setting, out or Path(place) / "run"):
            nights.append(night)
            print(line(night), flush=True)
            if written:
                written.write_text(json.dumps([asdict(each) for each in nights]), encoding="utf-8")


def line(night: Night) -> str:
    """A night in a line, in per cent."""
    report, truth = night.report, night.retrained
    signal = report.get("retraining", {})
    facts = report.get("facts", {"learned": 0, "newcomers": 0})
    foretold = report.get("foretold", {}).get("metrics", {}).get("mrr")
    told = f"{100 * signal['gain']:+.1f} ± {100 * signal['error']:.1f}" if "gain" in signal else ""
    gained = None if truth is None else 100 * (truth["mrr"] - night.nightly["mrr"])
    retrained = None if truth is None else truth["mrr"]
    return (
        f"{night.number:>5} {facts['learned']:>7,} "
        f"{100 * facts['newcomers'] / max(facts['learned'], 1):>4.0f}% {_shown(foretold):>8} "
        f"{_shown(night.nightly['mrr']):>8} {_shown(night.stale['mrr']):>6} "
        f"{_shown(retrained):>9} {_shown(night.nightly['hits@10']):>6} {told:>12} "
        f"{'' if gained is None else f'{gained:+.1f}':>6} "
        f"{night.seconds[0]:>8.1f} {night.seconds[1]:>9.1f}"
    )


def _shown(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
