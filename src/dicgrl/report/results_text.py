"""How results are put into words: names of metrics, titles and labels of runs, numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class _MetricNames(dict[str, str]):
    """Names of metrics in tables; one that is not known is called what it is."""

    def __missing__(self, metric: str) -> str:
        return metric


SHOWN = _MetricNames(
    {
        "mrr": "MRR",
        "hits@1": "H@1",
        "hits@1_others": "H@1 others",
        "hits@3": "H@3",
        "hits@10": "H@10",
        "mrr_snapshot": "MRR snapshot",
        "hits@1_snapshot": "H@1 snapshot",
        "hits@3_snapshot": "H@3 snapshot",
        "hits@10_snapshot": "H@10 snapshot",
    }
)
_ORDER = [*SHOWN, "accuracy"]
_MAIN = ("hits@10", "mrr", "accuracy")

Results = dict[str, Any]
"""What `results.json` says."""


def main_metrics(runs: Sequence[Results]) -> list[str]:
    """The metrics that curves and comparisons show, the most important first."""
    measured = {name for run in runs for part in run["parts"] for name in part["whole"]}
    return [name for name in _MAIN if name in measured] or sorted(measured)[:2]


def metric_order(metric: str) -> tuple[int, str]:
    """Where a metric stands in a table: known ones first."""
    return (_ORDER.index(metric) if metric in _ORDER else len(_ORDER)), metric


def table_metrics(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The metrics of rows that a table in per cent shows, in order.

    Of those without the entities of the questions it is H@1, where that makes a difference.

    Example:
        >>> table_metrics([{"mrr": 0.5, "hits@1": 0.1, "hits@1_others": 0.4, "mean_rank": 3.0}])
        ['mrr', 'hits@1', 'hits@1_others']
    """
    names = {name for row in rows for name in row} - {"loss", "mean_rank"}
    kept = [name for name in names if not name.endswith("_others")]
    if any(_differs(row) for row in rows):
        kept.append("hits@1_others")
    return sorted(kept, key=metric_order)


def others_text(metrics: Mapping[str, float]) -> str:
    """What H@1 is without the entities of the questions; empty where it is the same.

    Example:
        >>> others_text({"hits@1": 0.1, "hits@1_others": 0.4})
        'H@1 10.0, and 40.0 among entities other than that of the question'
    """
    if not _differs(metrics):
        return ""
    first, other = (f"{100 * metrics[name]:.1f}" for name in ("hits@1", "hits@1_others"))
    return f"H@1 {first}, and {other} among entities other than that of the question"


def _differs(metrics: Mapping[str, float]) -> bool:
    """Whether H@1 without the entities of the questions is another one, as tables show it."""
    if "hits@1_others" not in metrics:  # another task, or an earlier version
        return False
    first, other = metrics["hits@1"], metrics["hits@1_others"]
    return f"{100 * first:.1f}" != f"{100 * other:.1f}"


def run_title(run: Results, with_strategy: bool = True) -> str:
    """The dataset, the model and how it learns."""
    form = " disentangled" if _components(run) else ""
    title = f"{run['dataset']}, {run['model']}{form}"
    return f"{title}, {run['strategy']}" if with_strategy else f"{run['dataset']}, {run['model']}"


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
            values = [f"{key}={runs[i]['settings'][key]}" for key in differing]
            labels[i] = ", ".join([label, *values])
    return [
        f"{label} ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def _differing_settings(runs: Sequence[Results]) -> list[str]:
    """Settings that all of the runs have, not all with the same value.

    What only some have follows from another one that differs, or from the version that wrote it.
    """
    settings = [run["settings"] for run in runs]
    return [
        key
        for key in settings[0]
        if key not in ("model", "strategy", "components")
        and all(key in each for each in settings)
        and len({str(each[key]) for each in settings}) > 1
    ]


def _components(run: Results) -> int:
    return int(run["settings"].get("components", 0))


def seconds_text(value: float) -> str:
    """Seconds, with a second digit where they are few.

    Example:
        >>> seconds_text(12.34), seconds_text(0.123)
        ('12.3', '0.12')
    """
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def count_text(value: float) -> str:
    """A large number in few characters.

    Example:
        >>> [count_text(value) for value in (640, 1_234, 56_789, 1_200_000, 3.4e9)]
        ['640', '1.2k', '57k', '1.2M', '3.4G']
    """
    for unit in ("", "k", "M"):
        if value < 999.5:
            return f"{value:.0f}{unit}" if not unit or value >= 9.95 else f"{value:.1f}{unit}"
        value /= 1000
    return f"{value:.1f}G"


def positives_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """Examples x epochs of parts, the mean over them, and the share of old ones.

    Empty where no part has counted them.

    Example:
        >>> positives_text([{"positives": {"new": 900, "old": 100}}, {"positives": {}}])
        '1.0k, 10 % old'
    """
    counted = [part["positives"] for part in parts if part.get("positives")]
    if not counted:
        return ""
    new, old = (sum(each[kind] for each in counted) for kind in ("new", "old"))
    share = f", {100 * old / (new + old):.0f} % old" if old else ""
    return count_text((new + old) / len(counted)) + share


def sample_text(part: Mapping[str, Any]) -> str:
    """On how much a part was measured; empty for everything.

    Example:
        >>> sample_text({"sampled": 1250, "tests": [{"part": 0, "count": 10_000, "sampled": 1250}]})
        'on 1,250 of 10,000 test examples'
    """
    if part.get("sampled") is None:
        return ""
    total = sum(test["count"] for test in part["tests"])
    return f"on {part['sampled']:,} of {total:,} test examples"


def percent_text(value: float | None) -> str:
    """A share in per cent; empty where there is none."""
    return "" if value is None else f"{value * 100:.1f}"
