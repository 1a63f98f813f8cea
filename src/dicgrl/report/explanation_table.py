"""Tables of an explanation."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dicgrl.ask.explain import Explanation
from dicgrl.report.answers_table import probability_text
from dicgrl.report.terminal import titled


def explanation_tables(found: Explanation) -> list[Group]:
    """What speaks for a triple; its components, and the old triples that it would activate."""
    tables = [_support(found)]
    if found.components:
        tables += [_components(found), _activated(found)]
    return tables


def _support(found: Explanation) -> Group:
    table = Table()
    table.add_column("known facts that speak for it")
    table.add_column("kind")
    table.add_column("contribution", justify="right")
    table.add_column("the rule holds", justify="right")
    for entry in found.support:
        facts = "; ".join(
            " -- ".join(fact) + (f" ({date})" if date else "")
            for fact, date in zip(entry.facts, entry.dates, strict=True)
        )
        rule = "" if entry.holds is None else f"{entry.holds:.0%} of {entry.seen:,}"
        table.add_row(facts, entry.kind, f"{entry.contribution:.3f}", rule)
    kind = "known" if found.known else "held out to measure with" if found.held_out else "new"
    probability = probability_text(found.probability)
    parts = [f"score {found.score:.3f}", f"probability {probability}" if probability else "", kind]
    content = table if found.support else Text("no known fact speaks for it")
    return titled(" -- ".join(found.triple), content, ", ".join(filter(None, parts)))


def _components(found: Explanation) -> Group:
    used = Table()
    used.add_column("component", justify="right")
    used.add_column("attention", justify="right")
    for component, weight in sorted(found.components.items(), key=lambda item: -item[1]):
        used.add_row(str(component), f"{weight:.3f}")
    return titled("Uses the components", used)


def _activated(found: Explanation) -> Group:
    title = f"Would activate {sum(found.activated.values()):,} of {found.candidates:,} old triples"
    title += " (" + ", ".join(f"order {k}: {v:,}" for k, v in found.activated.items()) + ")"
    table = Table()
    table.add_column("old triple")
    table.add_column("order", justify="right")
    table.add_column("shared components")
    table.add_column("merit", justify="right")
    for entry in found.best:
        shared = ", ".join(map(str, entry.shared))
        table.add_row(" -- ".join(entry.triple), str(entry.order), shared, f"{entry.merit:.4f}")
    return titled(title, table)
