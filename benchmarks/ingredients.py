"""What the ingredients of bounded updates are worth, on validation data alone.

    python benchmarks/ingredients.py NAME [--set key=value ...] [--vary "key=value key=value" ...]
        [--model transe] [--strategy dicgrl] [--default] [--seed 0] [--device auto] [--json FILE]

The first part is learned once; then each variant (the `best` recipe of the strategy with `--set`,
and the changes of one `--vary`) learns the later ones. A row has the whole and the average metric
over the validation sets after the last part, the share of part 0's answers that are still right,
the MRR of the whole, and the time and the replay of a later part. With `--default` the graph is
learned as if it had no recipe. Test sets only filter ranks; they are not measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from rows import Rows

import dicgrl
from dicgrl.datasets import registered
from dicgrl.learner import Learner
from dicgrl.recipes import load_recipe
from dicgrl.strategies import strategy_named

HEADINGS = ("variant", "W", "A", "R", "MRR", "s per later part", "replayed last")
VARIANTS = (
    "",
    "start=random",
    "shield=0",
    "shield=10%",
    "arrive_epochs=0",
    "arrive_last=true",
    "later_epochs=0",
    "later_epochs=20 later_rate=0.5 pace=1 guard=true",
    "later_epochs=20 later_rate=0.5 pace=0 guard=true",
    "later_epochs=20 later_rate=0.5 pace=1 guard=false",
    "later_epochs=20 later_rate=0.5 pace=1 guard=true selection=top",
    "later_epochs=20 later_rate=0.5 pace=1 guard=true max_drift=0.1",
)


def measure(learner: Learner, stream: dicgrl.Stream, first: Any) -> list[str]:
    for part in stream.parts[learner.num_parts :]:
        learner.learn(part)
    trainer = learner.trainer
    sets = [trainer.examples("valid", part, part + 1) for part in range(trainer.num_parts)]
    outcomes = trainer.outcomes(sets)
    values = [100 * metrics[trainer.metric] for metrics, _ in outcomes]

    def whole(values: list[float]) -> float:
        return sum(v * len(s) for v, s in zip(values, sets, strict=True)) / sum(map(len, sets))

    ranks = [100 * metrics["mrr"] for metrics, _ in outcomes if "mrr" in metrics]
    kept = outcomes[0][1].cpu()[first].double().mean().item()
    later = learner.reports[1:]
    return [
        f"{whole(values):.1f}",
        f"{statistics.mean(values):.1f}",
        f"{100 * kept:.1f}",
        f"{whole(ranks):.1f}" if ranks else "",
        f"{statistics.mean(report.learn_seconds for report in later):.2f}",
        f"{later[-1].replayed_examples:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--model", default="transe")
    parser.add_argument("--strategy", default="dicgrl", help="another one to compare with")
    parser.add_argument("--set", dest="changes", action="append", default=[])
    parser.add_argument("--vary", action="append", help="one variant; several settings in it")
    parser.add_argument("--default", action="store_true", help="as if it had no recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="written anew after each variant")
    arguments = parser.parse_args()
    stream = dicgrl.load_stream(arguments.name)
    name = "" if arguments.default else registered(arguments.name)
    recipe = load_recipe(
        "best",
        name,
        arguments.model,
        disentangled=strategy_named(arguments.strategy).divided,
        strategy=arguments.strategy,
    )
    settings = recipe.settings.parsed(arguments.changes)
    title = f"{stream.name}, {arguments.model}, {arguments.strategy}: validation, in per cent"
    rows = Rows(title, HEADINGS, arguments.json)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "first"
        learner = Learner(settings=settings, seed=arguments.seed, device=arguments.device)
        learner.learn(stream.parts[0])
        first = learner.trainer.outcome(learner.trainer.examples("valid", 0, 1))[1].cpu()
        learner.save(folder)
        usual = VARIANTS if arguments.strategy == "dicgrl" else ("",)
        for variant in usual if arguments.vary is None else arguments.vary:
            changed = settings.parsed(variant.split())
            forked = Learner.load(folder, device=arguments.device).fork(changed)
            rows.add(variant or "the recipe", *measure(forked, stream, first))
    rows.show()


if __name__ == "__main__":
    main()
