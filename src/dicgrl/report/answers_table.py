"""The table of answers to a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from dicgrl.report.terminal import titled


def answers_table(
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
    """Whether an answer is known, or held out to measure with; `other` if neither."""
    return "known" if answer.known else "held out" if answer.held_out else other
