"""The same number of trials for every strategy, on validation data alone.

    python benchmarks/trials.py NAME [--model transe] [--only emr ...] [--trials 3] [--seed 0]
        [--set key=value ...] [--device auto] [--json docs/results/trials-NAME-MODEL.json]

A trial is the `best` recipe of a strategy with some settings changed; the first is the recipe as it
is, the next ones double the rate (from the first part on) and try what is the strategy's own, such
as the start from neighbours where the recipe has it not. All rows have vectors of about the same
active size, the same epochs of the first part and the same budget; upper is tried divided as well.
Chosen is what has the highest mean over the parts' validation sets (MRR or accuracy) after the last
part (A). Test sets are taken out of the stream. A file that is there is gone on with: finished
trials are not repeated.
"""

from __future__ import annotations

import argparse
import json
import math
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
from dicgrl.strategies import strategy_named
from dicgrl.tasks import task_of_model

Changes = Mapping[str, str]
METRIC = {"links": "mrr", "nodes": "accuracy"}
TWICE: Changes = {"lr": "2x"}
GENTLE: Changes = {"later_epochs": "50", "later_rate": "0.2", "validate_on": "none"}
ONE_COMPONENT = {
    "links": ("components=1", "top=1"),
    "nodes": ("components=1", "top=1", "hidden=64"),
}
# What each row tries of its own, for links and for nodes; a value with an x is a multiple.
OWN: dict[str, dict[str, Changes]] = {
    "frozen": {"links": {"start": "neighbours"}, "nodes": {"dropout": "0.4"}},
    "lower": {"links": {"start": "neighbours"}, "nodes": GENTLE},
    "ewc": {"links": {"start": "neighbours"}, "nodes": GENTLE},
    "emr": {"links": {"later_epochs": "30"}, "nodes": GENTLE},
    "gem": {"links": {"later_epochs": "30"}, "nodes": GENTLE},
    "warm": {"links": {"effort": "20%"}, "nodes": {"effort": "20%"}},
    "fresh": {"links": {"passes": "20"}, "nodes": {"effort": "20%"}},
    "dicgrl": {"links": {"guard": "true"}, "nodes": {"later_rate": "0.5"}},
    "dicgrl, K=1": {"links": {"guard": "true"}, "nodes": {"later_rate": "0.5"}},
    "upper": {"links": {"lr": "4x"}, "nodes": {"dropout": "0.4"}},
    "upper, divided": {"links": {"lr": "4x"}, "nodes": {"dropout": "0.4"}},
}


def trials_of(row: str, task: str) -> list[Changes]:
    """What is tried of a row: as many trials as of every other."""
    return [{}, TWICE, OWN[row][task]]


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

    metrics = list(measured[0])
    return {
        "whole": {metric: round(whole(metric), 5) for metric in metrics},
        "average": {m: round(statistics.fmean(each[m] for each in measured), 5) for m in metrics},
        "seconds": round(sum(report.learn_seconds for report in later), 2),
        "positives": sum(sum(report.positives.values()) for report in later),
    }


def _first_of(settings: Settings) -> str:
    known = {k: v for k, v in settings.as_dict().items() if k not in settings.later_names}
    return json.dumps(known, sort_keys=True)


def planned(
    name: str, model: str, only: Sequence[str], changes: Sequence[str]
) -> Iterator[tuple[dict[str, Any], Settings]]:
    """The trials of all rows, and their settings."""
    task = task_of_model(model).recipe
    for row in OWN:
        if only and not any(words in row for words in only):
            continue
        strategy, _, variant = row.partition(", ")
        recipe = load_recipe(
            "best",
            registered(name),
            model,
            disentangled=strategy_named(strategy).divided or bool(variant),
            strategy=strategy,
        )
        own = ONE_COMPONENT[task] if variant == "K=1" else ()
        settings = recipe.settings.parsed([*changes, *own])
        for values in trials_of(row, task):
            tried = changed(settings, values)
            words = " ".join(f"{key}={value}" for key, value in values.items()) or "recipe"
            plan = {"row": row, "tried": words, "values": dict(values)}
            yield plan, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--only", action="append", help="rows with this in their name")
    parser.add_argument("--trials", type=int, default=3, help="of each row, the first so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="changes", action="append", default=[], help="for all rows")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each trial, and gone on with")
    arguments = parser.parse_args()
    stream = without_test(dicgrl.load_stream(arguments.name))
    task = task_of_model(arguments.model).recipe
    metric = METRIC[task]
    command = f"python benchmarks/trials.py {arguments.name} --model {arguments.model}"
    command += f" --seed {arguments.seed}"
    file: dict[str, Any] = {
        "command": " ".join([command, *(f"--set {change}" for change in arguments.changes)]),
        "dataset": stream.name,
        "model": arguments.model,
        "seed": arguments.seed,
        "metric": metric,
        "planned": list(OWN),
        "trials": [],
    }
    if arguments.json and arguments.json.is_file():
        file["trials"] = json.loads(arguments.json.read_text(encoding="utf-8"))["trials"]
    finished = {(each["row"], json.dumps(each["values"])) for each in file["trials"]}
    plans = planned(arguments.name, arguments.model, arguments.only or (), arguments.changes)
    with tempfile.TemporaryDirectory() as place:
        for plan, settings in plans:
            if trials_of(plan["row"], task).index(plan["values"]) >= arguments.trials:
                continue
            if (plan["row"], json.dumps(plan["values"])) in finished:
                continue
            begun = time.perf_counter()
            plan |= trial(stream, settings, arguments.seed, arguments.device, Path(place))
            plan["active"] = _active(settings)
            file["trials"].append(plan)
            file["trials"].sort(key=lambda each: list(OWN).index(each["row"]))
            if arguments.json:
                write_json(arguments.json, file)
            average, whole = (100 * plan[judged][metric] for judged in ("average", "whole"))
            print(
                f"{plan['row']:16} {metric}: A {average:.2f}  W {whole:.2f}  "
                f"{time.perf_counter() - begun:5.1f} s  {plan['tried']}",
                flush=True,
            )


def _active(settings: Settings) -> int:
    """Numbers of a vector that a triple, or an edge of a network, uses."""
    from dicgrl.models.components import Components

    count, top = settings.components, settings.top
    if "hidden" in settings.as_dict():  # of each head or component
        return int(settings.hidden * (top if count else settings.heads))
    size = Components(count, top).size(settings.dim) if count else settings.dim
    return math.prod((top, size)) if count else size


if __name__ == "__main__":
    main()
