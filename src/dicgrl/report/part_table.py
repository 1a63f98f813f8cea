"""The table after a part: what is known of every test set so far."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from dicgrl.errors import shown
from dicgrl.report.evaluation_table import test_sets
from dicgrl.report.results_text import (
    Results,
    positives_text,
    run_title,
    sample_text,
    seconds_text,
)
from dicgrl.report.terminal import counted, number_of, titled


def part_table(results: Results) -> Group:
    """Metrics on every test set so far, in per cent, after the newest part."""
    newest = results["parts"][-1]
    title = f"{run_title(results)}, after part {newest['part']}, in per cent"
    if not newest["tests"]:
        skipped = newest.get("evaluate_seconds") == 0  # it was never asked
        text = "" if skipped else "no test set so far: "
        return titled(title, Text(f"{text}nothing was measured"), _caption(newest))
    table = test_sets(newest["tests"], newest["whole"], newest["average"], newest.get("sampled"))
    return titled(title, table, _caption(newest))


def _caption(part: dict[str, Any]) -> str:
    new, replayed = part["new_examples"], part["replayed_examples"]
    learned = f"{new:,} new" + (f" and {replayed:,} old" if replayed else "")
    one = new == 1 and not replayed
    text = (
        f"learned {learned} example{'' if one else 's'} in {seconds_text(part['learn_seconds'])} s"
    )
    if passed := positives_text([part]):
        text += f" (positives: {passed})"
    if new and not part["epochs"]:
        text = f"learned nothing of {counted(new, 'new example')}"
    brought = part.get("arrived", {}) | {"edges": part.get("edges", 0)}
    arrived = [number_of(count, kind) for kind, count in brought.items() if count]
    if arrived:
        said = " and ".join(filter(None, [", ".join(arrived[:-1]), arrived[-1]]))
        text = f"{said} arrived; {text}"
    if part["candidates"]:
        of = f"{part['activated']:,} of"
        if part["activated"] == part["candidates"]:
            of = "all"
        neighbours = f"{of} {part['candidates']:,} old neighbours"
        text += f"; {neighbours} share a component and are activated"
    text += _moved(part.get("drift", {})) + _hardly_learned(part.get("new_classes", {}))
    if part["forgetting"] is not None:
        text += f"; forgetting {part['forgetting'] * 100:.1f}"
    if found := part.get("calibration"):
        by_chance = f"{found['ece_by_chance'] * 100:.1f}"
        text += f"; calibration error {found['ece'] * 100:.1f} ({by_chance} by chance)"
    measured = [sample_text(part)] if part["tests"] else []
    if part["tests"] and "evaluate_seconds" in part:
        measured.append(f"in {seconds_text(part['evaluate_seconds'])} s")
    return text + ("; measured " + " ".join(filter(None, measured)) if any(measured) else "")


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


def _hardly_learned(classes: dict[str, dict[str, int]]) -> str:
    """New classes that do not even know most of the nodes that they were learned from."""
    return "".join(
        f"; class {shown(label)} is hardly learned: {found['right']:,} of its {found['of']:,} "
        "training nodes are right"
        for label, found in classes.items()
        if 2 * found["right"] < found["of"]
    )
