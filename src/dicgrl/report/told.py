"""What a `Run` answers: the values that a command prints as JSON, in a notebook its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table

from dicgrl.common.html import html_lines, html_table
from dicgrl.report.evaluation_table import evaluation_table, tests_table
from dicgrl.report.night_table import night_table, trends_table
from dicgrl.report.outcome_tables import changed_table, learned_table
from dicgrl.report.overview_table import overview_table
from dicgrl.report.versions_table import diff_tables

if TYPE_CHECKING:
    from dicgrl.jobs.change import ChangeOutcome
    from dicgrl.jobs.learn import LearnOutcome
    from dicgrl.learner import Learner

Content = RenderableType | Sequence[RenderableType]


class Told(dict[str, Any]):
    """A dict that a notebook shows as the tables which the command prints.

    Args:
        values: The values.
        content: The tables and the lines around them; without it the values are a table.

    Example:
        >>> Told({"version": 3})._repr_html_().count("<td>")
        2
    """

    def __init__(self, values: Mapping[str, Any], content: Content | None = None) -> None:
        super().__init__(values)
        self._content = content

    def _repr_html_(self) -> str:
        if self._content is None:
            return html_table("", ("", ""), self.items())
        return _html(self._content)


def learned(outcome: LearnOutcome) -> Told:
    """What became of facts that were learned."""
    return Told(outcome.told, learned_table(outcome))


def changed(outcome: ChangeOutcome) -> Told:
    """What became of a change."""
    return Told(outcome.results, changed_table(outcome))


def night_told(night: dict[str, Any]) -> Told:
    """A night."""
    return Told(night, night_table(night))


def tested(source: str, learner: Learner, protocol: str) -> Told:
    """What is measured on the test sets of a run."""
    found = learner.evaluate(protocol=protocol)
    protocols = learner.strategy.describe_protocol(learner.trainer)
    return Told(asdict(found) | {"protocol": protocols}, tests_table(source, found))


def measured(source: str, found: dict[str, Any]) -> Told:
    """What was measured on triples."""
    return Told(found, evaluation_table(source, found))


def described(found: dict[str, Any], nights: list[dict[str, Any]]) -> Told:
    """What a run is, and its nights."""
    return Told(found, _described(found, nights))


def _described(found: dict[str, Any], nights: list[dict[str, Any]]) -> list[RenderableType]:
    return [overview_table(found), *([trends_table(nights)] if nights else [])]


def compared(found: dict[str, Any]) -> Told:
    """What changed between two versions."""
    return Told(found, diff_tables(found))


def _html(content: Content) -> str:
    if isinstance(content, Table):
        header = [str(column.header) for column in content.columns]
        rows = zip(*(map(str, column.cells) for column in content.columns), strict=True)
        return html_table(str(content.title or ""), header, rows)
    if isinstance(content, Group):
        return "".join(map(_html, content.renderables))
    if isinstance(content, list):
        return "".join(map(_html, content))
    return html_lines(str(content))
