"""Updates of growing networks beside retraining: accuracy, seconds and their share of upper's.

    python benchmarks/network_growth.py [--streams cora,citeseer,pubmed,classes,hetero,large]
        [--model gat] [--strategies upper,frozen,warm,fresh] [--seeds 3] [--on test|valid]
        [--set dropout=0.2] [--device cpu|cuda] [--json rows.json]

Default settings, one CPU thread unless another device is given; `cora=PATH` names a stream by its
path. The first part is learned once for all strategies. Seconds are those of a later part,
validation left out; `CPU` is the time of the processor for the same, validation included, which
does not depend on what else runs.
With `--on valid` the validation nodes are measured in place of the test nodes, to choose by.
"""

from __future__ import annotations

import argparse
import copy
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rows import Rows

import dicgrl
from dicgrl.datasets.synthetic_network import class_network
from dicgrl.graph import NetworkStream
from dicgrl.recipes import chosen_settings


def generated(name: str) -> NetworkStream:
    if name == "classes":  # class by class
        shares, arrival = (0.4, 0.2, 0.2, 0.2), (0, 0, 0, 1, 2, 3)
        return class_network(3000, 6, 6, 0.7, 32, 2.0, shares, arrival)
    if name == "hetero":  # neighbours have other classes
        return class_network(7600, 5, 8, 0.1, 100, 2.0)
    return class_network(100_000, 10, 6, 0.6, 32, 2.0, (0.9, 0.05, 0.05))


def stream_of(given: str, on: str, parts: int | None) -> tuple[str, NetworkStream]:
    name, _, path = given.partition("=")
    made = name in ("classes", "hetero", "large")
    stream = generated(name) if made else dicgrl.load_stream(path or name)
    assert isinstance(stream, NetworkStream)
    stream = stream[:parts]
    if on == "valid":
        stream = NetworkStream(name, tuple(replace(p, test=p.valid) for p in stream), {})
    return name, stream


@dataclass
class Found:
    """What a strategy reached, summed over seeds; times are of one later part."""

    whole: float = 0.0
    average: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0

    def add(self, other: Found) -> None:
        """Add what another seed gave."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def measure(stream: NetworkStream, begun: dicgrl.Learner, settings: dicgrl.Settings) -> Found:
    learner = copy.deepcopy(begun).fork(settings)
    found = Found()
    later = list(stream)[1:]
    for part in later:
        started = time.process_time()
        found.seconds += learner.learn(part).learn_seconds / len(later)
        found.cpu += (time.process_time() - started) / len(later)
    evaluated = learner.evaluate()
    found.whole, found.average = evaluated.whole["accuracy"], evaluated.average["accuracy"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", default="cora,citeseer,pubmed,classes,hetero,large")
    parser.add_argument("--model", default="gat")
    parser.add_argument("--strategies", default="upper,frozen,warm,fresh")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", type=int, help="only so many parts, the first one included")
    parser.add_argument("--on", choices=("test", "valid"), default="test")
    parser.add_argument("--set", action="append", default=[], help="key=value, for all strategies")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    headings = ("stream, strategy", "W", "A", "W %", "A %", "s", "s %", "CPU", "CPU %")
    title = f"{arguments.model}, {arguments.seeds} seeds, {arguments.on} nodes; % of upper's"
    rows = Rows(title, headings, arguments.json)
    for given in arguments.streams.split(","):
        name, stream = stream_of(given, arguments.on, arguments.parts)
        found: dict[str, Found] = {}
        for seed in range(arguments.seeds):
            first = None
            for strategy in arguments.strategies.split(","):
                settings = chosen_settings(None, arguments.model, strategy, "", {})
                settings = settings.parsed(arguments.set)
                if first is None or settings.form.divided != first.settings.form.divided:
                    first = dicgrl.Learner(settings=settings, seed=seed, device=arguments.device)
                    first.learn(stream[0])
                found.setdefault(strategy, Found()).add(measure(stream, first, settings))
        upper = found.get("upper", Found())
        for strategy, its in found.items():
            cells = [f"{100 * value / arguments.seeds:.1f}" for value in (its.whole, its.average)]
            cells += [share(its.whole, upper.whole), share(its.average, upper.average)]
            for mine, theirs in ((its.seconds, upper.seconds), (its.cpu, upper.cpu)):
                cells += [f"{mine / arguments.seeds:.2f}", share(mine, theirs)]
            rows.add(f"{name}, {strategy}", *cells)
            print(name, strategy, *cells, flush=True)
    rows.show()


def share(mine: float, theirs: float) -> str:
    return f"{100 * mine / theirs:.1f}" if theirs else ""


if __name__ == "__main__":
    main()
