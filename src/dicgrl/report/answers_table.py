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
    told = any(answer.probability is not None for answer in answers)
    table = Table()
    table.add_column("", justify="right")
    table.add_column("answer")
    for heading in ("score", *(["probability"] if told else [])):
        table.add_column(heading, justify="right")
    table.add_column("")
    for number, answer in enumerate(answers, 1):
        shown = answer.name if answer.name == answer.label else f"{answer.name} ({answer.label})"
        values = [f"{answer.score:.3f}", *([probability_text(answer.probability)] if told else [])]
        table.add_row(str(number), shown, *values, state_of(answer, other))
    return titled(question, table, note)


def probability_text(probability: float | None) -> str:
    """A probability with the digits that mean something; empty where there is none.

    Example:
        >>> probability_text(0.3333), probability_text(0.00042), probability_text(None)
        ('0.333', '0.0004', '')
    """
    if probability is None:
        return ""
    return f"{probability:.3f}" if probability >= 0.001 else f"{probability:.1g}"


def state_of(answer: Any, other: str) -> str:
    """Whether an answer is known, or held out to measure with; `other` if neither."""
    return "known" if answer.known else "held out" if answer.held_out else other
