"""Node classification on the whole networks of the paper (appendix A, table 4), several seeds.

    python benchmarks/node_classification.py [--datasets cora,citeseer,pubmed] [--models gat,sage]
        [--seeds 5] [--json docs/results/node-classification-whole.json]

Runs recipe `best`, plain and disentangled, on the CPU; selected on validation data, test read once.
With `--json`, rows are added to the file or replace those of the same dataset, model and form.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import dicgrl
from dicgrl.jobs.merged import run_merged
from dicgrl.recipes import load_recipe


def measure(dataset: str, model: str, form: str, seeds: int) -> dict[str, Any]:
    stream = dicgrl.load_stream(dataset)
    recipe = load_recipe("best", dataset, model, disentangled=form == "disentangled")
    runs = [run_merged(stream, recipe, seed=seed, device="cpu") for seed in range(seeds)]
    found = [run["test"]["accuracy"] for run in runs]
    return {
        "dataset": dataset,
        "model": model,
        "form": form,
        "accuracy_mean": statistics.mean(found),
        "accuracy_std": statistics.stdev(found) if seeds > 1 else 0.0,
        "validation_mean": statistics.mean(run["validation"]["accuracy"] for run in runs),
        "seeds": seeds,
        "published": recipe.published,
        "learn_seconds": statistics.mean(run["learn_seconds"] for run in runs),
        "device": runs[0]["device"],
        "command": f"dicgrl run {dataset} --whole --model {model} --{form} --recipe best --seed N",
        "settings": recipe.settings.as_dict(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", default="cora,citeseer,pubmed")
    parser.add_argument("--models", default="gat,sage")
    parser.add_argument("--forms", default="plain,disentangled")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for dataset in arguments.datasets.split(","):
        for model in arguments.models.split(","):
            for form in arguments.forms.split(","):
                rows.append(measure(dataset, model, form, arguments.seeds))
                if arguments.json:
                    _store(arguments.json, rows[-1])
    table = Table(title=f"Accuracy in per cent, mean (std) of {arguments.seeds} seeds")
    for heading in ("dataset", "model", "form", "valid", "test", "paper", "seconds"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row["dataset"],
            row["model"],
            row["form"],
            f"{100 * row['validation_mean']:.1f}",
            f"{100 * row['accuracy_mean']:.1f} ({100 * row['accuracy_std']:.1f})",
            str(row["published"].get("accuracy", "")),
            f"{row['learn_seconds']:.0f}",
        )
    Console().print(table)


def _store(path: Path, row: dict[str, Any]) -> None:
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    key = ("dataset", "model", "form")
    stored = [r for r in stored if any(r[k] != row[k] for k in key)]
    stored = sorted([*stored, row], key=lambda r: tuple(r[k] for k in key))
    path.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
