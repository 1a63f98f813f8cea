"""What updates reach beside retraining, on validation triples: what a default is chosen by.

    python benchmarks/growth_trials.py ENTITY [--model transe] [--set key=value ...]
        [--vary "fresh passes=20" ...] [--on valid|test] [--seed 0] [--device auto] [--json FILE]

A graph is learned as if it had no recipe. Its first part is learned once; each variant, a strategy
and its settings, learns the later ones from there. A row has MRR and H@10 over the validation
triples after the last part, whole (W) and average (A), the same in per cent of upper's, the share
of part 0's answers that are still right (R), the MRR of each part, and the positives of the later
parts in millions. `upper` learns the last part only, as it begins anew each time; the positives are
those of all. Test sets only filter ranks unless `--on test` asks for them, once all is chosen.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from typing_extensions import override

import dicgrl
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.strategies import Learned, strategy_named
from dicgrl.strategies.bounds import Upper
from dicgrl.trainers import Trainer
from dicgrl.training.loop import Monitor

USUAL = ("upper", "warm", "fresh")
METRICS = ("mrr", "hits@1", "hits@10")
_MILLION = 1_000_000


class Last(Upper, name="upper-last"):
    """Upper that skips the parts whose model nobody looks at."""

    parts = 0  # of the stream

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        if trainer.newest < self.parts - 1:
            trainer.rebuild()
            return Learned()
        return super().later(trainer, monitor)


def measured(
    learner: Learner, stream: dicgrl.Stream, first: Any, on: str = "valid"
) -> dict[str, Any]:
    positives = 0
    for part in stream.parts[learner.num_parts :]:
        report = learner.learn(part)
        positives += sum((report.positives or {}).values())
        if isinstance(learner.strategy, Last) and part is not stream.parts[-1]:
            positives += learner.trainer.schedule.epochs * learner.trainer.count("train")
    trainer = learner.trainer
    sets = [trainer.examples(on, part, part + 1) for part in range(trainer.num_parts)]
    outcomes = trainer.outcomes(sets)
    row: dict[str, Any] = {}
    for metric in METRICS:
        values = [100 * found[metric] for found, _ in outcomes]
        sizes = [len(some) for some in sets]
        whole = sum(v * n for v, n in zip(values, sizes, strict=True)) / sum(sizes)
        row |= {f"W {metric}": whole, f"A {metric}": statistics.mean(values)}
        if metric == "mrr":
            row["parts"] = values
    row["R"] = 100 * outcomes[0][1].cpu()[first].double().mean().item()
    row["positives"] = positives / _MILLION
    row["seconds"] = sum(report.learn_seconds for report in learner.reports[1:])
    return row


def variants(asked: argparse.Namespace, stream: dicgrl.Stream, add: Callable[..., None]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "first"
        for variant in asked.vary or USUAL:
            strategy, *changes = variant.split()
            name = "upper-last" if strategy == "upper" else strategy
            recipe = load_recipe(
                "best",
                "",
                asked.model,
                disentangled=asked.divided or strategy_named(strategy).divided,
                strategy=name,
            )
            settings = recipe.settings.parsed([*asked.changes, *changes])
            if not folder.exists():
                learner = Learner(settings=settings, seed=asked.seed, device=asked.device)
                learner.learn(stream.parts[0])
                learner.save(folder)
                asked_first = learner.trainer.examples(asked.on, 0, 1)
                first = learner.trainer.outcome(asked_first)[1].cpu()
            learner = Learner.load(folder, device=asked.device).fork(settings)
            add(variant, measured(learner, stream, first, asked.on))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--divided", action="store_true", help="vectors of components")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--vary", action="append", help="a strategy and its settings")
    parser.add_argument("--on", choices=("valid", "test"), default="valid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each variant")
    asked = parser.parse_args()
    stream = dicgrl.load_stream(asked.name)
    Last.parts = len(stream.parts)
    title = f"{asked.name}, {asked.model}: {asked.on} triples, in per cent"
    table = Table(title=title)
    shown = ("W mrr", "A mrr", "W hits@1", "A hits@1", "W hits@10", "A hits@10", "R")
    for heading in ("variant", *shown, "W %", "A %", "positives", "seconds", "parts"):
        table.add_column(heading, justify="left" if heading == "variant" else "right")
    rows: list[dict[str, Any]] = []

    def add(variant: str, row: dict[str, Any]) -> None:
        named = {"dataset": asked.name, "model": asked.model, "on": asked.on, "seed": asked.seed}
        rows.append({**named, "variant": variant, **row})
        upper = next((r for r in rows if r["variant"] == "upper"), None)
        shares = [f"{100 * row[k] / upper[k]:.1f}" if upper else "" for k in ("W mrr", "A mrr")]
        parts = row["parts"] if len(row["parts"]) < 9 else [row["parts"][0], row["parts"][-1]]
        table.add_row(
            variant,
            *(f"{row[key]:.1f}" for key in shown),
            *shares,
            f"{row['positives']:.2f}",
            f"{row['seconds']:.2f}",
            " ".join(f"{value:.1f}" for value in parts),
        )
        if asked.json:
            asked.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")

    variants(asked, stream, add)
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
