"""How reliable probabilities are on test examples after every part.

    python benchmarks/calibration.py NAME [--model transe] [--strategy fresh] [--set dim=64]
        [--parts N] [--seed 0] [--device auto] [--json FILE]

Settings are those of the `best` recipe, with the changes of `--set`. ECE is the expected
calibration error of first answers in ten bins of equal size, with what perfect probabilities would
show by chance beside it; Brier is their mean squared error, beside that of always saying the mean.
Seconds are those of the processor for fitting after the part.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rows import Rows

import dicgrl
from dicgrl.ask.trust import examined
from dicgrl.datasets import registered
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.strategies import strategy_named
from dicgrl.tasks import task_named

HEADINGS = (
    "part",
    "fitted on",
    "answers",
    "ECE",
    "by chance",
    "Brier",
    "of the mean",
    "ECE of ten",
    "CPU s",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="")
    parser.add_argument("--strategy", default="fresh")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="changes")
    parser.add_argument("--parts", type=int, default=0, help="the first ones alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each row")
    given = parser.parse_args()
    stream = dicgrl.load_stream(given.name)
    model = given.model or task_named(stream.task).usual_model(registered(given.name))
    divided = strategy_named(given.strategy).divided
    recipe = load_recipe("best", stream.name, model, disentangled=divided, strategy=given.strategy)
    settings = recipe.settings.parsed(given.changes)
    learner = Learner(settings=settings, seed=given.seed, device=given.device)
    rows = Rows(f"{stream.name}, {model}, {given.strategy}: probabilities on test examples",
                HEADINGS, given.json)  # fmt: skip
    for number, part in enumerate(stream):
        if given.parts and number == given.parts:
            break
        report = learner.learn(part)
        started = time.process_time()
        examined(learner.ask)
        seconds = time.process_time() - started
        learner.evaluate(at_most=2000)
        found = report.calibration["test"]
        keys = ("ece", "ece_by_chance", "brier", "brier_of_mean")
        ten = found.get("ten_best", {}).get("ece")
        rows.add(
            str(number),
            f"{report.calibration['facts']:,}",
            f"{found['count']:,}",
            *(f"{found[key]:.3f}" for key in keys),
            "" if ten is None else f"{ten:.3f}",
            f"{seconds:.2f}",
        )
    rows.show()


if __name__ == "__main__":
    main()
