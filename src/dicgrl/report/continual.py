"""Tables and curves of runs that learn part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from dicgrl.files import replacing_file

SHOWN = {"mrr": "MRR", "hits@1": "H@1", "hits@3": "H@3", "hits@10": "H@10", "accuracy": "accuracy"}
_MAIN = ("hits@10", "mrr", "accuracy")

Results = dict[str, Any]


def main_metrics(results: Results) -> list[str]:
    """The metrics that curves and comparisons show, the most important first."""
    measured: dict[str, float] = next((p["whole"] for p in results["parts"] if p["whole"]), {})
    return [name for name in _MAIN if name in measured]


def part_table(results: Results) -> Table:
    """Metrics on every test set so far, in per cent, after the newest part."""
    newest = results["parts"][-1]
    title = f"{_title(results)}, after part {newest['part']}, in per cent"
    table = Table(title=title, title_justify="left", min_width=len(title))
    table.add_column("test set")
    table.add_column("count", justify="right")
    columns = [name for name in SHOWN if name in newest["whole"]]
    for name in columns:
        table.add_column(SHOWN[name], justify="right")
    for test in newest["tests"]:
        cells = [f"{test[name] * 100:.1f}" for name in columns]
        table.add_row(f"part {test['part']}", f"{test['count']:,}", *cells)
    if newest["tests"]:
        table.add_section()
    total = sum(test["count"] for test in newest["tests"])
    for name in ("whole", "average"):
        cells = [f"{newest[name][column] * 100:.1f}" for column in columns]
        table.add_row(name, f"{total:,}" if name == "whole" else "", *cells)
    table.caption = _caption(newest)
    return table


def _caption(part: dict[str, Any]) -> str:
    text = f"{part['new_examples']:,} new examples learned in {part['learn_seconds']:.1f} s"
    if part["replayed_examples"]:
        text += f", {part['replayed_examples']:,} old ones replayed"
    if part["candidates"]:
        text += f" (activated {part['activated']:,} of {part['candidates']:,} neighbours)"
    if part["forgetting"] is not None:
        text += f"; forgetting {part['forgetting'] * 100:.1f}"
    return text


def comparison_table(runs: Sequence[Results]) -> Table:
    """Several runs side by side after their last part."""
    same = {run["dataset"] for run in runs}
    title = f"{', '.join(sorted(same))}: after the last part, in per cent"
    table = Table(title=title, title_justify="left", min_width=len(title))
    metrics = main_metrics(runs[0])[:2]
    table.add_column("run")
    for name in metrics:
        table.add_column(f"{SHOWN[name]} whole", justify="right")
        table.add_column(f"{SHOWN[name]} average", justify="right")
    for heading in ("forgetting", "retention", "replayed", "s per later part"):
        table.add_column(heading, justify="right")
    for run, label in zip(runs, run_labels(runs), strict=True):
        last = run["parts"][-1]
        cells = []
        for name in metrics:
            cells += [_percent(last["whole"].get(name)), _percent(last["average"].get(name))]
        later = run["parts"][1:]
        seconds = sum(part["learn_seconds"] for part in later) / max(len(later), 1)
        table.add_row(
            label,
            *cells,
            _percent(run["forgetting"]),
            _percent(run["retention"]),
            f"{sum(part['replayed_examples'] for part in later):,}",
            f"{seconds:.1f}" if later else "",
        )
    return table


def run_labels(runs: Sequence[Results]) -> list[str]:
    """What tells runs apart: the strategy, and whatever else is not the same in all of them."""
    parts: dict[str, Callable[[Results], str]] = {
        "dataset": lambda run: run["dataset"],
        "strategy": lambda run: run["strategy"],
        "model": lambda run: run["model"] + (" disentangled" if _components(run) else ""),
        "recipe": lambda run: run["recipe"],
        "seed": lambda run: f"seed {run['seed']}",
    }
    kept = [
        make
        for name, make in parts.items()
        if name == "strategy" or len({make(run) for run in runs}) > 1
    ]
    if len({run["strategy"] for run in runs}) == len(runs):
        kept = [parts["strategy"]]  # that alone tells them apart
    return [", ".join(make(run) for make in kept) for run in runs]


def draw_curves(runs: Sequence[Results], path: Path) -> None:
    """Draw whole and average metrics over the parts, one line per run; PNG, SVG or PDF by ending.

    Args:
        runs: Results of the runs.
        path: The picture to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window, no global state
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    metrics = main_metrics(runs[0])
    figure = Figure(figsize=(5 * 2, 3.6 * max(len(metrics), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(max(len(metrics), 1), 2, squeeze=False)
    for row, metric in zip(grid, metrics, strict=False):
        for axes, scope in zip(row, ("average", "whole"), strict=True):
            for run, label in zip(runs, run_labels(runs), strict=True):
                measured = [part for part in run["parts"] if metric in part[scope]]
                numbers = [part["part"] for part in measured]
                values = [part[scope][metric] * 100 for part in measured]
                axes.plot(numbers, values, marker="o", label=label)
            axes.set_title(f"{SHOWN[metric]}, {scope}")
            axes.set_xlabel("after part")
            axes.set_ylabel("per cent")
            axes.grid(alpha=0.3)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(runs) > 1 and metrics:
        grid[0][0].legend()
    figure.suptitle(", ".join(sorted({_title(run, len(runs) == 1) for run in runs})))
    with replacing_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=120)


def predictions_table(question: str, answers: Sequence[Any]) -> Table:
    """Answers to a question, best first."""
    table = Table(title=question, title_justify="left", min_width=len(question))
    for heading, side in (("", "right"), ("answer", "left"), ("score", "right"), ("", "left")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for number, answer in enumerate(answers, 1):
        shown = answer.name if answer.name == answer.label else f"{answer.name} ({answer.label})"
        table.add_row(str(number), shown, f"{answer.score:.3f}", "known" if answer.known else "new")
    return table


def _components(run: Results) -> int:
    return int(run["settings"]["components"])


def _title(run: Results, with_strategy: bool = True) -> str:
    form = " disentangled" if _components(run) else ""
    title = f"{run['dataset']}, {run['model']}{form}"
    return f"{title}, {run['strategy']}" if with_strategy else f"{run['dataset']}, {run['model']}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value * 100:.1f}"
