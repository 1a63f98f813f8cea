"""Tables and curves of runs that learn part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.common.atomic import replacing_file
from dicgrl.report.terminal import counted, titled

SHOWN = {"mrr": "MRR", "hits@1": "H@1", "hits@3": "H@3", "hits@10": "H@10", "accuracy": "accuracy"}
_MAIN = ("hits@10", "mrr", "accuracy")
_ONE = {"entities": "entity", "relations": "relation", "nodes": "node", "classes": "class"}

Results = dict[str, Any]


def main_metrics(runs: Sequence[Results]) -> list[str]:
    """The metrics that curves and comparisons show, the most important first."""
    measured = {name for run in runs for part in run["parts"] for name in part["whole"]}
    return [name for name in _MAIN if name in measured]


def part_table(results: Results) -> Group:
    """Metrics on every test set so far, in per cent, after the newest part."""
    newest = results["parts"][-1]
    title = f"{_title(results)}, after part {newest['part']}, in per cent"
    if not newest["tests"]:
        return titled(title, Text("no test set so far: nothing was measured"), _caption(newest))
    table = Table()
    table.add_column("test set")
    table.add_column("count", justify="right")
    columns = [name for name in SHOWN if name in newest["whole"]]
    for name in columns:
        table.add_column(SHOWN[name], justify="right")
    for test in newest["tests"]:
        cells = [f"{test[name] * 100:.1f}" for name in columns]
        table.add_row(f"part {test['part']}", f"{test['count']:,}", *cells)
    table.add_section()
    total = sum(test["count"] for test in newest["tests"])
    for name in ("whole", "average"):
        cells = [f"{newest[name][column] * 100:.1f}" for column in columns]
        table.add_row(name, f"{total:,}" if name == "whole" else "", *cells)
    return titled(title, table, _caption(newest))


def _caption(part: dict[str, Any]) -> str:
    new, replayed = part["new_examples"], part["replayed_examples"]
    learned = f"{new:,} new" + (f" and {replayed:,} old" if replayed else "")
    one = new == 1 and not replayed
    text = f"learned {learned} example{'' if one else 's'} in {_seconds(part['learn_seconds'])} s"
    if new and not part["epochs"]:
        text = f"learned nothing of {counted(new, 'new example')}"
    arrived = [
        f"1 {_ONE[kind]}" if count == 1 else f"{count:,} {kind}"
        for kind, count in part.get("arrived", {}).items()
        if count
    ]
    if arrived:
        text = f"{' and '.join(arrived)} arrived; {text}"
    if part["candidates"]:
        of = f"{part['activated']:,} of"
        if part["activated"] == part["candidates"]:
            of = "all"
        neighbours = f"{of} {part['candidates']:,} old neighbours"
        text += f"; {neighbours} share a component and are activated"
    text += _moved(part.get("drift", {}))
    if part["forgetting"] is not None:
        text += f"; forgetting {part['forgetting'] * 100:.1f}"
    return text


def _moved(drift: dict[str, Any]) -> str:
    """How far old components moved, or old nodes of a network."""
    if "nodes" in drift:
        changed = f"{counted(drift['nodes'], 'old node')} changed class"
        return f"; {changed}, probabilities moved by {drift['mean'] * 100:.1f} % on average"
    if drift.get("rows"):
        far = f"by {drift['mean'] * 100:.1f} % of their length on average"
        rows = counted(drift["rows"], "old component")  # each is a row of a divided model
        return f"; {rows} moved {far}, {drift['largest'] * 100:.0f} % at most"
    return ""


def comparison_table(runs: Sequence[Results]) -> Group:
    """Several runs side by side after their last part."""
    same = {run["dataset"] for run in runs}
    table = Table()
    metrics = main_metrics(runs)[:2]
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
            _seconds(seconds) if later else "",
        )
    return titled(f"{', '.join(sorted(same))}: after the last part, in per cent", table)


def run_labels(runs: Sequence[Results]) -> list[str]:
    """What tells runs apart: the strategy, and whatever else is not the same in all of them.

    Settings are named where nothing else differs; runs that are alike in all of it are numbered.
    """
    parts: list[Callable[[Results], str]] = [
        lambda run: run["dataset"],
        lambda run: run["strategy"],
        lambda run: run["model"] + (" disentangled" if _components(run) else ""),
        lambda run: run["recipe"],
        lambda run: f"seed {run['seed']}",
    ]
    kept = [make for i, make in enumerate(parts) if i == 1 or len({make(r) for r in runs}) > 1]
    if len({run["strategy"] for run in runs}) == len(runs):
        kept = [parts[1]]  # that alone tells them apart
    labels = [", ".join(make(run) for make in kept) for run in runs]
    for label in {label for label in labels if labels.count(label) > 1}:
        alike = [i for i, other in enumerate(labels) if other == label]
        differing = _differing_settings([runs[i] for i in alike])
        for i in alike:
            values = [f"{key}={runs[i]['settings'].get(key)}" for key in differing]
            labels[i] = ", ".join([label, *values])
    return [
        f"{label} ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def _differing_settings(runs: Sequence[Results]) -> list[str]:
    keys = [key for key in runs[0]["settings"] if key not in ("model", "strategy", "components")]
    return [key for key in keys if len({str(run["settings"].get(key)) for run in runs}) > 1]


def draw_curves(runs: Sequence[Results], path: Path) -> None:
    """Draw whole and average metrics over the parts, one line per run; PNG, SVG or PDF by ending.

    Args:
        runs: Results of the runs.
        path: The picture to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window, no global state
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    metrics = main_metrics(runs)
    figure = Figure(figsize=(10, 3.6 * len(metrics) or 2), layout="constrained")
    FigureCanvasAgg(figure)
    labels = run_labels(runs)
    if not metrics:
        figure.text(0.5, 0.4, "no test sets: nothing was measured", ha="center")
    # Whole and average share their scale, so that one can be read against the other.
    grid: Any = figure.subplots(len(metrics), 2, squeeze=False, sharey="row") if metrics else []
    for row, metric in zip(grid, metrics, strict=True):
        for axes, scope in zip(row, ("average", "whole"), strict=True):
            for run, label, marker in zip(runs, labels, cycle("oDs^vPX*"), strict=False):
                measured = [part for part in run["parts"] if metric in part[scope]]
                numbers = [part["part"] for part in measured]
                values = [part[scope][metric] * 100 for part in measured]
                axes.plot(numbers, values, marker=marker, alpha=0.8, label=label)
            axes.set_title(f"{SHOWN[metric]}, {scope}")
            axes.set_xlabel("after part")
            axes.set_ylabel("per cent")
            axes.grid(alpha=0.3)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(runs) > 1 and metrics:
        handles, names = grid[0][0].get_legend_handles_labels()
        columns = max(1, min(len(names), 110 // (max(map(len, names)) + 8)))
        figure.legend(handles, names, loc="outside lower center", ncols=columns)
    figure.suptitle(", ".join(sorted({_title(run, len(runs) == 1) for run in runs})))
    with replacing_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=120)


def predictions_table(
    question: str, answers: Sequence[Any], other: str = "new", note: str = ""
) -> Group:
    """Answers to a question, best first.

    Args:
        question: The question.
        answers: The answers.
        other: What is said of answers that are not known.
        note: What is said below them.
    """
    table = Table()
    for heading, side in (("", "right"), ("answer", "left"), ("score", "right"), ("", "left")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for number, answer in enumerate(answers, 1):
        shown = answer.name if answer.name == answer.label else f"{answer.name} ({answer.label})"
        table.add_row(str(number), shown, f"{answer.score:.3f}", state_of(answer, other))
    return titled(question, table, note)


def state_of(answer: Any, other: str) -> str:
    """Whether an answer is known, or set aside to measure with; `other` if neither."""
    return "known" if answer.known else "set aside" if answer.aside else other


def _components(run: Results) -> int:
    return int(run["settings"]["components"])


def _title(run: Results, with_strategy: bool = True) -> str:
    form = " disentangled" if _components(run) else ""
    title = f"{run['dataset']}, {run['model']}{form}"
    return f"{title}, {run['strategy']}" if with_strategy else f"{run['dataset']}, {run['model']}"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value * 100:.1f}"
