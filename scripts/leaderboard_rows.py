"""What docs/leaderboard.md compares: the rows of all measured files, as entries of boards.

Files differ in what they hold, and each kind is read here: the reports of `dicgrl reproduce`
(reproduce-*.json, rows with a dataset, a strategy, `whole` and `average`), updates on streams that
grow in different ways (growth.json), decoders on cuts of graphs (decoders-cuts.json) and trials of
settings on validation data (trials-*.json, the best trial of each row).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Board = tuple[str, str, str, str]  # stream and table, recipe, metric, measure of cost


@dataclass(frozen=True, slots=True)
class Entry:
    """One strategy on one stream.

    Attributes:
        board: Which other entries it is compared with.
        label: Strategy and decoder.
        quality: In per cent.
        whole: The same, pooled over all test examples.
        cost: Of the later parts.
        seeds: How many runs it is the mean of.
        source: The file.
    """

    board: Board
    label: str
    quality: float
    whole: float
    cost: float
    seeds: int
    source: str

    @property
    def is_control(self) -> bool:
        """Whether it never learns a later part."""
        return self.label.startswith("frozen")

    def beats(self, other: Entry) -> bool:
        """Whether it is as good and as cheap, and better or cheaper."""
        pairs = (self.quality, -self.cost), (other.quality, -other.cost)
        return pairs[0] != pairs[1] and all(a >= b for a, b in zip(*pairs, strict=True))


def entries(folder: Path) -> list[Entry]:
    """The rows of all reports, in the order of their streams.

    Args:
        folder: The folder of the reports.
    """
    found: list[Entry] = []
    for pattern, read in _READERS.items():
        for path in sorted(folder.glob(pattern)):
            found += read(json.loads(path.read_text(encoding="utf-8")), path.name)
    return found


def _of_report(report: Mapping[str, Any], source: str) -> Iterator[Entry]:
    for part in report.get("tables", ()):
        rows = [row for row in part["rows"] if _is_entry(row)]
        yield from _entries(report, str(part["title"]), rows, source)


def _of_growth(file: Mapping[str, Any], source: str) -> Iterator[Entry]:
    """Per cent, positives in millions; test and validation triples are apart."""
    for row in file["rows"]:
        which = f"{row['dataset']}, growth: {row['split']} triples"
        effort = "" if row["effort"] == "default" else f", effort={row['effort']}"
        quality, whole, cost = (_mean(row[key]) for key in ("A mrr", "W mrr", "positives"))
        assert quality is not None and whole is not None and cost is not None
        label, seeds = f"{row['strategy']} transe{effort}", _seeds(row["A mrr"])
        board = (which, "default", "MRR, A", "positives")
        yield Entry(board, label, quality, whole, cost, seeds, source)


def _of_cuts(rows: Sequence[Mapping[str, Any]], source: str) -> Iterator[Entry]:
    """Shares; the seconds are those of all parts, the first one included."""
    for row in rows:
        board = (f"{row['graph']}, cut to 10,000 triples", "default", "MRR, A", "seconds")
        quality, whole = 100 * row["A mrr"], 100 * row["W mrr"]
        yield Entry(board, f"fresh {row['model']}", quality, whole, row["seconds"], 1, source)


def _of_trials(file: Mapping[str, Any], source: str) -> Iterator[Entry]:
    """Shares; of each row the trial with the best average."""
    metric = file["metric"]
    best: dict[str, Mapping[str, Any]] = {}
    for trial in file["trials"]:
        known = best.setdefault(trial["row"], trial)
        if trial["average"][metric] > known["average"][metric]:
            best[trial["row"]] = trial
    named = "MRR" if metric == "mrr" else metric
    which = f"{file['dataset']}, best of equal trials: validation"
    board = (which, "best", f"{named}, A", "positives")
    for row, trial in best.items():
        quality, whole = (100 * trial[judged][metric] for judged in ("average", "whole"))
        strategy, _, variant = row.partition(", ")
        label = f"{strategy} {file['model']}" + (f", {variant}" if variant else "")
        cost = float(trial["positives"])
        yield Entry(board, label, quality, whole, cost, 1, source)


def _seeds(value: Any) -> int:
    return len(_of({"": value}, "").get("values", ())) or 1


def _is_entry(row: Mapping[str, Any]) -> bool:
    named = isinstance(row.get("dataset"), str) and (row.get("strategy") or row.get("variant"))
    judged = isinstance(row.get("average"), dict) and isinstance(row.get("whole"), dict)
    return bool(named and judged and "effort" not in row)


def _entries(
    report: Mapping[str, Any], title: str, rows: Sequence[Mapping[str, Any]], source: str
) -> Iterator[Entry]:
    metric = _metric(rows)
    counted = all(_mean(_of(row, "positives")) is not None for row in rows)
    cost = "positives" if counted else "seconds"
    about = title.partition(":")[0]
    for row in rows:
        quality, whole = (_quality(row, judged, metric) for judged in ("average", "whole"))
        spent = _mean(_of(row, cost))
        if quality is None or whole is None or spent is None:
            continue
        which = f"{row['dataset']}, {report['target']}: {about}"
        named = " ".join(str(row[k]) for k in ("strategy", "variant", "model") if row.get(k))
        if row.get("stage"):  # it did less than it does now
            named += f" ({row['stage']})"
        seeds = _seeds(row.get("seconds"))
        shown = f"{metric}, A" if metric != "paper" else _papers(title)
        board = (which, str(report["recipe"]), shown, cost)
        yield Entry(board, named, quality, whole, spent, seeds, source)


def _metric(rows: Sequence[Mapping[str, Any]]) -> str:
    """MRR where every row has it, else the metric of the paper."""
    has = all("average_mrr" in row or "mrr" in row["average"] for row in rows)
    return "MRR" if has and rows else "paper"


def _papers(title: str) -> str:
    return "accuracy, A" if "accuracy" in title or "Networks" in title else "H@10, A"


def _quality(row: Mapping[str, Any], judged: str, metric: str) -> float | None:
    if metric == "MRR":
        found = row.get(f"{judged}_mrr") or row[judged].get("mrr")
        return _mean(found)
    return _mean(row[judged])


def _of(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def _mean(value: Any) -> float | None:
    found = value.get("mean") if isinstance(value, Mapping) else value
    return None if found is None else float(found)


_READERS: dict[str, Callable[[Any, str], Iterator[Entry]]] = {
    "reproduce-*.json": _of_report,
    "growth.json": _of_growth,
    "decoders-cuts.json": _of_cuts,
    "trials-*.json": _of_trials,
}
