"""Networks judged on labelled nodes that select nothing.

    python benchmarks/folds.py NAME [--model gat] [--whole] [--vary "STRATEGY key=value ..." ...]
        [--disentangled] [--folds 5] [--seeds 1] [--device auto] [--json FILE]

What validation nodes select looks better on them than it is, and test nodes are to be read once. So
the training and validation nodes of each part are divided into folds: one is judged, the next one
selects the epoch, the others are learned from; every labelled node is judged once per seed. Test
nodes are never measured. A variant is a strategy and changes of its `best` recipe (on the plain
model, but for dicgrl and with `--disentangled`); with `--whole` all parts are merged, and it is
`plain` or `disentangled`. Rows have the mean over folds and seeds with its standard error, and the
mean difference to the first row, fold by fold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.progress import track
from rows import Rows

import dicgrl
from dicgrl.datasets import registered
from dicgrl.graph import NetworkPart, NetworkStream
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.settings import Settings

HEADINGS = ("variant", "whole", "average", "whole, difference", "average, difference")
Measured = tuple[float, float]


def folded(part: NetworkPart, folds: int, judged: int) -> NetworkPart:
    """A part whose test nodes are one fold of its labelled nodes, its validation nodes the next."""
    labelled = np.concatenate([part.train, part.valid])
    fold = np.random.default_rng(part.index).permutation(len(labelled)) % folds
    test, valid = fold == judged, fold == (judged + 1) % folds
    return replace(
        part, train=labelled[~(test | valid)], valid=labelled[valid], test=labelled[test]
    )


def begun(settings: Settings, part: NetworkPart, seed: int, device: str, place: Path) -> Learner:
    """A learner after its first part, which variants that learn it alike share."""
    alike = {k: v for k, v in settings.as_dict().items() if k not in settings.later_names}
    key = hashlib.sha256(json.dumps([alike, seed, part.train.tolist()]).encode()).hexdigest()
    if (place / key).exists():
        return Learner.load(place / key, device=device).fork(settings)
    learner = Learner(settings=settings, seed=seed, device=device)
    learner.learn(part)
    if not learner.strategy.keeps_state:
        learner.save(place / key)
    return learner


def measured(
    settings: Settings,
    parts: list[NetworkPart],
    seed: int,
    device: str,
    place: Path,
) -> Measured:
    """Accuracy in per cent over all judged nodes, and its mean over the parts."""
    learner = begun(settings, parts[0], seed, device, place)
    for part in parts[1:]:
        learner.learn(part)
    state = learner.evaluate()
    return 100 * state.whole["accuracy"], 100 * state.average["accuracy"]


def shown(values: list[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values) / len(values) ** 0.5:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="gat")
    parser.add_argument("--whole", action="store_true", help="all parts merged")
    parser.add_argument("--vary", action="append", help="one variant; the strategy comes first")
    parser.add_argument("--disentangled", action="store_true", help="for every strategy")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each variant")
    arguments = parser.parse_args()
    stream = dicgrl.load_stream(arguments.name)
    if not isinstance(stream, NetworkStream):
        parser.error(f"{arguments.name} is no network")
    if arguments.folds < 3:
        parser.error("--folds: at least 3, one to judge, one to select and one to learn from")
    parts = (stream.merged() if arguments.whole else stream).parts
    usual = ["plain", "disentangled"] if arguments.whole else ["upper", "frozen", "dicgrl"]
    title = f"{stream.name}, {arguments.model}: accuracy on {arguments.folds} folds, in per cent"
    rows = Rows(title, HEADINGS, arguments.json)
    first: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        for variant in arguments.vary or usual:
            kind, *changes = variant.split()
            recipe = load_recipe(
                "best",
                registered(arguments.name),
                arguments.model,
                disentangled=arguments.disentangled or kind in ("dicgrl", "disentangled"),
                strategy=None if arguments.whole else kind,
            )
            settings = recipe.settings.parsed(changes)
            every = [
                (fold, seed) for seed in range(arguments.seeds) for fold in range(arguments.folds)
            ]
            found = [
                measured(
                    settings,
                    [folded(part, arguments.folds, fold) for part in parts],
                    seed,
                    arguments.device,
                    Path(folder),
                )
                for fold, seed in track(every, description=variant, transient=True)
            ]
            first = first or found
            pairs = list(zip(found, first, strict=True))
            rows.add(
                variant,
                *(shown([one[i] for one in found]) for i in (0, 1)),
                *(shown([one[i] - other[i] for one, other in pairs]) for i in (0, 1)),
            )
    rows.show()


if __name__ == "__main__":
    main()
