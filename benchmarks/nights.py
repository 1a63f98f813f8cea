"""A graph night by night: the nightly model, one that is never updated, and real retraining.

    python benchmarks/nights.py films --nights 12 --first 0.4 --set dim=32 --set epochs=30
    python benchmarks/nights.py FB15k-237 --nights 60 --entities 0.5 --set dim=64 --json FILE
    python benchmarks/nights.py FB15k-237 --nights 60 --set dim=200 --device cuda --jobs 8
    python benchmarks/nights.py --read FILE --picture nights.svg

All parts of the dataset are merged and split anew: a first part, then nights. The nightly model
learns them by the job behind `dicgrl nightly`; the stale one only lets newcomers start; every few
nights a copy of the nightly model is retrained on all that is known, as `dicgrl retrain` does. All
are measured on the test facts of all nights so far, among all entities so far. With `--jobs` the
stale model and the retrainings have processes of their own; the results are the same. The run, with
the page of every night, stays in --out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

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
        looks: How many models are retrained then, each from another seed; their mean is the truth.
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
    looks: int = 1
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
        retrained: Those of models that were retrained, one for each look; none on other nights.
        seconds: What the night's learning took, and a retraining.
    """

    number: int
    report: dict[str, Any]
    nightly: dict[str, float]
    stale: dict[str, float]
    retrained: list[dict[str, float]]
    seconds: tuple[float, float]

    def truth(self, metric: str = "mrr") -> float | None:
        """What the retrained models reach; None where none was retrained."""
        return fmean(each[metric] for each in self.retrained) if self.retrained else None


class Workers(Protocol):
    """Runs functions now or in other processes."""

    def submit(self, work: Any, /, *given: Any) -> Future[Any]:
        """Begin with a piece of work."""


class _Here:
    """Runs each function at once, in this process."""

    def submit(self, work: Any, /, *given: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given))
        return done


@contextlib.contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """That many processes beside this one; none with 1, when all is done in turn."""
    if jobs <= 1:
        yield _Here()
        return
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(jobs - 1, mp_context=context) as pool:
        yield pool


def stale_nights(setting: Setting) -> list[dict[str, float]]:
    """What a model knows after each night that is never updated."""
    warnings.simplefilter("ignore", ModelWarning)
    stale, known = setting.learner("frozen"), []
    for part in setting.stream().parts:
        stale.learn(part)
        known.append(stale.evaluate().whole)
    return known


def _nobody(setting: Setting) -> list[dict[str, float]]:
    return [{}] * (setting.nights + 1)


def retrained(out: Path, version: int, device: str, look: int) -> tuple[dict[str, float], float]:
    """What a copy of a version knows once it was retrained, and the seconds of that."""
    warnings.simplefilter("ignore", ModelWarning)
    again = Learner.load(out, at=version, device=device)
    again.trainer.seed += look
    again.trainer.reseed()
    started = time.perf_counter()
    again.retrain()
    seconds = time.perf_counter() - started
    return again.evaluate().whole, seconds


def lived(
    setting: Setting, out: Path, pool: Workers | None = None, *, with_stale: bool = True
) -> Iterator[Night]:
    """Let nights pass; the run is in `out`. Nights come in their order, each once it is known."""
    pool = pool or _Here()
    stale = pool.submit(stale_nights if with_stale else _nobody, setting)
    waiting: deque[tuple[Night, list[Future[Any]]]] = deque()
    for night in _nightly(setting, out):
        looks = []
        if night.number and (night.number % setting.every == 0 or night.number == setting.nights):
            given = (out, night.report["version"], setting.device)
            looks = [pool.submit(retrained, *given, look) for look in range(setting.looks)]
        waiting.append((night, looks))
        while waiting and stale.done() and all(look.done() for look in waiting[0][1]):
            yield _whole(*waiting.popleft(), stale.result())
    while waiting:
        yield _whole(*waiting.popleft(), stale.result())


def _whole(night: Night, looks: list[Future[Any]], stale: list[dict[str, float]]) -> Night:
    found = [look.result() for look in looks]
    took = fmean(seconds for _, seconds in found) if found else 0.0
    return replace(
        night,
        stale=stale[night.number],
        retrained=[metrics for metrics, _ in found],
        seconds=(night.seconds[0], took),
    )


def _nightly(setting: Setting, out: Path) -> Iterator[Night]:
    """The nights of the nightly model alone."""
    stream, learner = setting.stream(), setting.learner()
    learner.learn(stream[0])
    found = learner.evaluate()
    about = {"dataset": setting.name, "task": stream.task, "recipe": "default", "published": {}}
    learner.save(out, about=about, results=results_of(learner, about))
    yield Night(0, {}, found.whole, {}, [], (learner.reports[0].learn_seconds, 0.0))
    options = NightOptions(device=setting.device, evaluate="all")
    for part in stream.parts[1:]:
        report = nightly(out, part, options).night
        yield Night(
            part.index,
            report,
            report["held_out"]["metrics"],
            {},
            [],
            (report["seconds"]["learn"], 0.0),
        )


def main() -> None:
    """Print a line for every night."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?")
    parser.add_argument("--by", default="nightly")
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--first", type=float, default=0.5)
    parser.add_argument("--entities", type=float, default=1.0)
    parser.add_argument("--strategy", default="fresh")
    parser.add_argument("--every", type=int, default=10, help="nights between two retrainings")
    parser.add_argument("--looks", type=int, default=1, help="models that are retrained each time")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="a new folder for the run")
    parser.add_argument("--json", type=Path, help="a row for every night")
    parser.add_argument("--picture", type=Path, help="a picture of the three models")
    parser.add_argument("--read", type=Path, help="show what --json wrote")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ModelWarning)
    if given.read:
        told = json.loads(given.read.read_text(encoding="utf-8"))
        _print(told["about"], map(night_of, told["rows"]))
        rows = told["rows"]
    elif given.name is None:
        parser.error("say which dataset, or --read a file")
    else:
        known = {each.name: getattr(given, each.name) for each in fields(Setting)}
        rows = run(Setting(**known | {"changes": tuple(given.changes)}), given)
    if given.picture:
        draw(rows, given.picture)


def run(setting: Setting, given: argparse.Namespace) -> list[dict[str, Any]]:
    """Let the nights pass, print and write them; gives their rows."""
    about = {
        "command": f"python benchmarks/nights.py {' '.join(sys.argv[1:])}",
        "device": name_of(pick_device(setting.device)),
        "setting": asdict(setting),
    }
    rows: list[dict[str, Any]] = []

    def noted(nights: Iterator[Night]) -> Iterator[Night]:
        for night in nights:
            rows.append(_row(night))
            if given.json:
                written = json.dumps({"about": about, "rows": rows}, indent=1)
                given.json.write_text(written + "\n", encoding="utf-8")
            yield night

    with tempfile.TemporaryDirectory() as place, workers(given.jobs) as pool:
        _print(about, noted(lived(setting, given.out or Path(place) / "run", pool)))
    return rows


def _row(night: Night) -> dict[str, Any]:
    """A night, without what its report says of the test facts of every night before."""
    row = asdict(night)
    for name in ("held_out", "facts") if night.report else ():
        kept = row["report"][name].items()
        row["report"][name] = {key: value for key, value in kept if key not in ("sets", "arrived")}
    return {"night": f"night {night.number}", **row}


def night_of(row: dict[str, Any]) -> Night:
    """The night that a row of a file is."""
    return Night(**{each.name: row[each.name] for each in fields(Night)})


def _print(about: dict[str, Any], nights: Iterator[Night]) -> None:
    print(about["command"])
    print(f"{about['device']}; {about['setting']}")
    print("MRR and H@10 in per cent; signal and truth: what retraining would add to the MRR")
    print(
        f"{'night':>5} {'facts':>7} {'new':>5} {'foretold':>8} {'nightly':>8} {'stale':>6} "
        f"{'retrained':>9} {'H@10':>6} {'signal':>12} {'truth':>6} {'learn s':>8} {'retrain s':>9}"
    )
    for night in nights:
        print(line(night), flush=True)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the three models, and what they foretold of each night."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    nights = [night_of(row) for row in rows]
    numbers = [night.number for night in nights]
    looked = [night for night in nights if night.retrained]
    for label, values, color in (
        ("nightly", [night.nightly["mrr"] for night in nights], "#2a78d6"),
        ("never updated", [night.stale["mrr"] for night in nights], "#888888"),
    ):
        axes.plot(numbers, [100 * value for value in values], color=color, lw=2, label=label)
    foretold = [(n.number, n.report["foretold"]["metrics"].get("mrr")) for n in nights[1:]]
    known = [(number, 100 * value) for number, value in foretold if value is not None]
    style: dict[str, Any] = {"color": "#2a78d6", "alpha": 0.45, "ms": 3, "lw": 0}
    axes.plot(*zip(*known, strict=True), "o", label="foretold: tonight's facts", **style)
    axes.plot(
        [night.number for night in looked],
        [100 * (night.truth() or 0.0) for night in looked],
        "D",
        color="#c2410c",
        ms=6 if len(looked) <= 20 else 3,
        label="retrained",
    )
    axes.set_xlabel("night")
    axes.set_ylabel("MRR, per cent")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=2)
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)


def line(night: Night) -> str:
    """A night in a line, in per cent."""
    report, truth = night.report, night.truth()
    signal = report.get("retraining", {})
    facts = report.get("facts", {"learned": 0, "newcomers": 0})
    foretold = report.get("foretold", {}).get("metrics", {}).get("mrr")
    told = f"{100 * signal['gain']:+.1f} ± {100 * signal['error']:.1f}" if "gain" in signal else ""
    gained = None if truth is None else 100 * (truth - night.nightly["mrr"])
    return (
        f"{night.number:>5} {facts['learned']:>7,} "
        f"{100 * facts['newcomers'] / max(facts['learned'], 1):>4.0f}% {_shown(foretold):>8} "
        f"{_shown(night.nightly['mrr']):>8} {_shown(night.stale['mrr']):>6} "
        f"{_shown(truth):>9} {_shown(night.nightly['hits@10']):>6} {told:>12} "
        f"{'' if gained is None else f'{gained:+.1f}':>6} "
        f"{night.seconds[0]:>8.1f} {night.seconds[1]:>9.1f}"
    )


def _shown(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
