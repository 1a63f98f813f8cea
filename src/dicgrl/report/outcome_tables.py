"""What `dicgrl learn` and the commands that change a run say of what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from dicgrl.report.part_table import part_table
from dicgrl.report.terminal import counted

if TYPE_CHECKING:
    from dicgrl.intake import Intake
    from dicgrl.jobs.change import ChangeOutcome
    from dicgrl.jobs.learn import LearnOutcome


def learned_table(outcome: LearnOutcome) -> Group:
    """The table after a part, and what was left out of the facts."""
    intake = outcome.intake
    given = counted(intake.given, "fact")
    dropped, noted = _what_was_dropped(intake), _what_was_noted(outcome)
    if intake.is_empty:
        known = dropped or f"{intake.given:,} known already"
        measured = [part_table(outcome.results)] if outcome.caught_up else []
        return Group(Text(f"nothing new: {given}, {known}{noted}"), *measured)
    left = [Text(f"left out of {given}: {dropped}{noted}")] if dropped else []
    return Group(part_table(outcome.results), *left)


def changed_table(outcome: ChangeOutcome) -> Group:
    """What a change did, and how good the model is after it."""
    measured = outcome.results["parts"][-1]["tests"]
    return Group(Text(_said(outcome)), *([part_table(outcome.results)] if measured else []))


def _what_was_dropped(intake: Intake) -> str:
    reasons = {
        "known already": intake.known,
        "held out to measure with": intake.held_out,
        "dropped as self loops": intake.self_loops,
    }
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)


def _what_was_noted(outcome: LearnOutcome) -> str:
    words = {"dated": "of a later date", "again": "arrived again"}
    said = ", ".join(f"{count:,} {words[name]}" for name, count in outcome.noted.items())
    return f"; noted: {said}" if said and outcome.intake.known else ""


def _said(outcome: ChangeOutcome) -> str:
    """What a change did, in a line."""
    report = outcome.report
    words = {"forgotten": "fact", "renamed": "label", "merged": "pair", "revised": "node"}
    told = [
        f"{name} {counted(report.details[name], word)}"
        for name, word in words.items()
        if name in report.details
    ]
    if report.new_examples:
        told.append(f"learned {counted(report.new_examples, 'example')}")
    if report.epochs:
        told.append(f"{sum(report.positives.values()):,} examples processed")
    return f"{', '.join(told)} in {report.learn_seconds:.1f} s"
