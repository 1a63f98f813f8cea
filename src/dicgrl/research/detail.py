"""What a report keeps of each run, so that any number of a table can be made again from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "accuracy")
_DIGITS = 5  # of shares of 1


def run_detail(results: Mapping[str, Any]) -> dict[str, Any]:
    """W and A of every metric after each part, the matrix part by part, and what it cost.

    Row i of a matrix has the metric on the test sets 0..i after part i; None where there is none.

    Args:
        results: As `dicgrl run` writes them; those of a merged graph have no parts.
    """
    parts: Sequence[Mapping[str, Any]] = results.get("parts", ())
    if not parts or "whole" not in parts[-1]:
        return {}
    names = [name for name in METRICS if name in parts[-1]["whole"]]
    return {
        "whole": {name: [_short(part["whole"].get(name)) for part in parts] for name in names},
        "average": {name: [_short(part["average"].get(name)) for part in parts] for name in names},
        "matrix": {name: [_tested(part, name) for part in parts] for name in names},
        "retention": _short(results.get("retention")),
        "seconds": [round(part["learn_seconds"], 3) for part in parts],
        "positives": [sum((part.get("positives") or {}).values()) for part in parts],
        "replayed": [part.get("replayed_examples", 0) for part in parts],
    }


def _tested(part: Mapping[str, Any], name: str) -> list[float | None]:
    found = {test["part"]: _short(test.get(name)) for test in part["tests"]}
    return [found.get(number) for number in range(part["part"] + 1)]


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
