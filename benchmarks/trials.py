"""The same number of trials for every strategy, on validation data alone.

    python benchmarks/trials.py NAME [--model transe] [--trials 8] [--only emr] [--seed 0]
        [--set key=value ...] [--device auto] [--json docs/results/trials-NAME-MODEL.json]

A trial is the `best` recipe of a strategy with some settings drawn from the strategy's grid below;
the first trial is the recipe as it is. All rows have vectors of about the same active size and the
same budget, start from neighbours is open to every one, and upper is tried divided as well. Chosen
is what has the highest mean over the parts' validation MRR after the last part (A). Test sets are
taken out of the stream. A file that is there is gone on with: finished trials are not repeated.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dicgrl
from dicgrl.common.atomic import write_json
from dicgrl.datasets import registered
from dicgrl.jobs.sweep import without_test
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.settings import Settings

METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
Grid = Mapping[str, Sequence[str]]

_CONTINUED: Grid = {
    "start": ("random", "neighbours"),
    "later_epochs": ("10", "30"),
    "later_rate": ("0.3", "1"),
}
_RETRAINED: Grid = {"lr": ("0.5x", "1x", "2x"), "epochs": ("0.5x", "1x", "2x")}
_SHIELDED: Grid = {
    "start": ("random", "neighbours"),
    "later_epochs": ("10", "30"),
    "later_rate": ("0.3", "1"),
    "pace": ("1", "3"),
}
ROWS: dict[str, tuple[str, bool, tuple[str, ...], Grid]] = {
    # the row: strategy, whether it is divided, settings that make the row, grid
    "frozen": ("frozen", False, (), {"start": ("random", "neighbours")}),
    "lower": ("lower", False, (), _CONTINUED),
    "ewc": ("ewc", False, (), {**_CONTINUED, "strength": ("30", "300", "3000")}),
    "emr": ("emr", False, (), _CONTINUED),
    "gem": ("gem", False, (), _CONTINUED),
    "warm": (
        "warm",
        False,
        (),
        {"start": ("random", "neighbours"), "effort": ("10%", "20%"), "later_rate": ("0.3", "0.7")},
    ),
    "fresh": (
        "fresh",
        False,
        (),
        {
            "start": ("random", "neighbours"),
            "effort": ("10%", "20%"),
            "passes": ("5", "10", "20"),
            "old_pace": ("0", "1"),
        },
    ),
    "dicgrl": ("dicgrl", True, (), _SHIELDED),
    "dicgrl, K=1": ("dicgrl", True, ("components=1", "top=1"), _SHIELDED),
    "upper": ("upper", False, (), _RETRAINED),
    "upper, divided": ("upper", True, (), _RETRAINED),
}


def combinations(grid: Grid, count: int, seed: int) -> list[dict[str, str]]:
    """So many combinations without repeats, the recipe as it is first; all where there are fewer.

    Args:
        grid: Settings and their values.
        count: How many.
        seed: Seed of the draw, the same for every row.
    """
    every: list[dict[str, str]] = [{}]
    for key, values in grid.items():
        every = [{**each, key: value} for each in every for value in values]
    random.Random(seed).shuffle(every)  # more trials later begin with the same ones
    return [{}, *every[: count - 1]]


def changed(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Settings with what a trial changes; `0.5x` is a multiple of what the recipe has."""
    texts = []
    for key, value in values.items():
        if value.endswith("x"):
            usual = getattr(settings, key)
            number = usual * float(value.removesuffix("x"))
            value = str(round(number) if isinstance(usual, int) else number)
        texts.append(f"{key}={value}")
    return settings.parsed(texts)


def trial(
    stream: dicgrl.Stream, settings: Settings, seed: int, device: str, firsts: Path
) -> dict[str, Any]:
    """Learn the stream; what the validation sets say after the last part, and what it took."""
    first = firsts / str(abs(hash(_first_of(settings))))
    if first.exists() and settings.strategy != "ewc":  # which remembers something of the part
        learner = Learner.load(first, device=device).fork(settings)
    else:
        learner = Learner(settings=settings, seed=seed, device=device)
        learner.learn(stream[0])
        if not learner.strategy.keeps_state:
            learner.save(first)
    for number in range(1, len(stream)):
        learner.learn(stream[number])
    trainer = learner.trainer
    parts = [p for p in range(trainer.num_parts) if trainer.count("valid", p, p + 1)]
    sets = [trainer.examples("valid", part, part + 1) for part in parts]
    measured = [metrics for metrics, _ in trainer.outcomes(sets)]
    sizes = [len(each) for each in sets]
    later = learner.reports[1:]

    def whole(metric: str) -> float:
        found = (m[metric] * size for m, size in zip(measured, sizes, strict=True))
        return sum(found) / sum(sizes)

    return {
        "whole": {metric: round(whole(metric), 5) for metric in METRICS},
        "average": {m: round(statistics.fmean(each[m] for each in measured), 5) for m in METRICS},
        "seconds": round(sum(report.learn_seconds for report in later), 2),
        "positives": sum(sum(report.positives.values()) for report in later),
    }


def _first_of(settings: Settings) -> str:
    known = {k: v for k, v in settings.as_dict().items() if k not in settings.later_names}
    return json.dumps(known, sort_keys=True)


def planned(
    name: str, model: str, count: int, seed: int, only: str, changes: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The trials of all rows."""
    for row, (strategy, divided, own, grid) in ROWS.items():
        if only.lower() not in row:
            continue
        recipe = load_recipe(
            "best", registered(name), model, disentangled=divided, strategy=strategy
        )
        settings = recipe.settings.parsed([*changes, *own])
        for values in combinations(grid, count, seed):
            tried = changed(settings, values)
            yield {"row": row, "strategy": strategy, "values": values, "settings": tried}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="changes", action="append", default=[], help="for all rows")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each trial, and gone on with")
    arguments = parser.parse_args()
    stream = without_test(dicgrl.load_stream(arguments.name))
    command = f"python benchmarks/trials.py {arguments.name} --model {arguments.model}"
    command += f" --trials {arguments.trials} --seed {arguments.seed}"
    file: dict[str, Any] = {
        "command": " ".join([command, *(f"--set {change}" for change in arguments.changes)]),
        "dataset": stream.name,
        "model": arguments.model,
        "seed": arguments.seed,
        "judged_by": "average mrr of the validation sets after the last part",
        "trials": [],
    }
    if arguments.json and arguments.json.is_file():
        file["trials"] = json.loads(arguments.json.read_text(encoding="utf-8"))["trials"]
    finished = {(each["row"], json.dumps(each["values"])) for each in file["trials"]}
    with tempfile.TemporaryDirectory() as place:
        for plan in planned(
            arguments.name,
            arguments.model,
            arguments.trials,
            arguments.seed,
            arguments.only,
            arguments.changes,
        ):
            settings = plan.pop("settings")
            if (plan["row"], json.dumps(plan["values"])) in finished:
                continue
            begun = time.perf_counter()
            plan |= trial(stream, settings, arguments.seed, arguments.device, Path(place))
            plan["active"] = _active(settings)
            file["trials"].append(plan)
            if arguments.json:
                write_json(arguments.json, file)
            shown = " ".join(f"{key}={value}" for key, value in plan["values"].items()) or "recipe"
            print(
                f"{plan['row']:16} A MRR {100 * plan['average']['mrr']:.2f}  "
                f"W MRR {100 * plan['whole']['mrr']:.2f}  {time.perf_counter() - begun:5.1f} s  "
                f"{shown}",
                flush=True,
            )


def _active(settings: Settings) -> int:
    """Numbers of a vector that a triple uses."""
    from dicgrl.models.components import Components

    count, top = settings.components, settings.top
    size = Components(count, top).size(settings.dim) if count else settings.dim
    return math.prod((top, size)) if count else size


if __name__ == "__main__":
    main()
