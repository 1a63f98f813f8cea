"""The page of a night: HTML that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dicgrl.report.night_text import (
    Measure,
    Night,
    foretold_text,
    gate_state,
    gate_text,
    measures,
    metrics_shown,
    retraining_text,
    verdict,
)
from dicgrl.report.results_text import SHOWN
from dicgrl.report.sparkline import svg_line

MOST_NIGHTS = 90  # that trends show
_MOST_SETS = 40  # the newest test sets

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d7dde5; --paper: #fff;
  --good: #1a7f37; --bad: #b3261e; --mark: #2563eb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #333c49;
  --paper: #14181e; --good: #4ac26b; --bad: #ff7b72; --mark: #79a8ff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); } .verdict { font-weight: 600; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
.trends { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .7rem; }
figcaption { display: flex; justify-content: space-between; gap: .5rem; font-size: .85rem; }
svg { width: 100%; height: auto; display: block; } polyline { fill: none; stroke: var(--mark);
  stroke-width: 1.8; stroke-linejoin: round; } circle { fill: var(--mark); }
"""


def night_page(nights: Sequence[Night], number: int) -> str:
    """The page of a night.

    Args:
        nights: All nights of the run, oldest first; later ones are left out.
        number: Which of them it is about.
    """
    night = nights[number - 1]
    trends = nights[max(number - MOST_NIGHTS, 0) : number]
    title = escape(f"{night['dataset']}, night {number}")
    refused = not night["kept"] or any(gate["failed"] for gate in night["gates"])
    state = "bad" if refused else "good"
    body = [
        f'<h1>{title}</h1><p class="soft">{escape(_about(night))}</p>',
        f'<p class="verdict {state}">{escape(verdict(night))}</p>',
        *_facts(night),
        *_doubts(night),
        *_gates(night),
        *_held_out(night),
        *_retraining(night),
        *_trends(trends),
        *_sets(night),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _about(night: Night) -> str:
    when = night["time"].removesuffix("+00:00").replace("T", " ")
    said = [f"{when} UTC", night["model"], night["strategy"], night["device"], night["source"]]
    return " · ".join(text for text in [*said, night["message"]] if text)


def _facts(night: Night) -> Iterable[str]:
    facts = night["facts"]
    told = [f"{facts['learned']:,} facts learned of {facts['given']:,} given"]
    words = {"known": "known already", "held_out": "held out before"}
    told += [f"{facts[name]:,} {text}" for name, text in words.items() if facts[name]]
    told += [f"{count:,} new {kind}" for kind, count in facts["arrived"].items() if count]
    yield f"<h2>Facts</h2><p>{escape(', '.join(told))}.</p>"
    if facts["new"]:
        yield f"<p>{escape(foretold_text(night))}.</p>"
    if moved := night["moved"].get("mean"):
        yield f"<p>What was there before moved by {100 * moved:.1f} % on average.</p>"


def _doubts(night: Night) -> Iterable[str]:
    for doubt in night["doubts"]:
        yield f'<p class="bad">Warning: {escape(doubt)}</p>'


def _gates(night: Night) -> Iterable[str]:
    if not night["gates"]:
        return
    rows = []
    for gate in night["gates"]:
        state = gate_state(gate)
        colour = {"failed": "bad", "passed": "good"}.get(state, "soft")
        cells = (escape(gate["gate"]), f'<span class="{colour}">{state}</span>')
        rows.append([*cells, escape(gate_text(gate))])
    yield "<h2>Gates</h2>" + _table(["gate", "", "found"], rows)


def _held_out(night: Night) -> Iterable[str]:
    held_out = night.get("held_out", {})
    names = [name for name in metrics_shown(night) if name in held_out.get("metrics", {})]
    if not names:
        return
    rows = []
    for title, found in (
        ("before tonight", held_out["before"]),
        ("the same questions now", held_out["same"]),
        ("all that are held out", held_out),
    ):
        if found["metrics"]:
            cells = [f"{100 * found['metrics'][name]:.1f}" for name in names]
            rows.append([title, f"{found['asked']:,}", *cells])
    yield "<h2>Facts that are held out, in per cent</h2>"
    yield _table(["", "facts", *(SHOWN[name] for name in names)], rows)
    if held_out["retention"] is not None:
        kept = f"{100 * held_out['retention']:.1f}"
        yield f"<p>Of the first part's right answers {kept} % are still right (retention).</p>"


def _retraining(night: Night) -> Iterable[str]:
    if text := retraining_text(night):
        yield f"<h2>Retraining</h2><p>{escape(text[:1].upper() + text[1:])}.</p>"


def _trends(nights: Sequence[Night]) -> Iterable[str]:
    if len(nights) < 2:
        return
    figures = [_figure(each, nights) for each in measures(nights)]
    yield f'<h2>The last {len(nights)} nights</h2><div class="trends">{"".join(figures)}</div>'


def _figure(measure: Measure, nights: Sequence[Night]) -> str:
    series = [measure.of(night) for night in nights]
    title, last = escape(measure.title), escape(measure.shown(series[-1]))
    picture = svg_line(series, f"{measure.title} over {len(nights)} nights")
    caption = f"<figcaption><span>{title}</span><b>{last}</b></figcaption>"
    known = [value for value in series if value is not None]
    span = escape(f"{measure.shown(min(known))} to {measure.shown(max(known))}") if known else ""
    return f'<figure>{caption}{picture}<small class="soft">{span}</small></figure>'


def _sets(night: Night) -> Iterable[str]:
    sets = night.get("held_out", {}).get("sets", [])
    names = [name for name in metrics_shown(night) if sets and name in sets[0]]
    if not names:
        return
    rows = [
        [
            f"part {each['part']}",
            f"{each.get('sampled', each['count']):,} of {each['count']:,}",
            *(f"{100 * each[name]:.1f}" for name in names),
        ]
        for each in sets[-_MOST_SETS:]
    ]
    newest = f", the newest {_MOST_SETS}" if len(sets) > _MOST_SETS else ""
    yield f"<h2>Set by set{newest}</h2>"
    yield _table(["arrived with", "asked", *(SHOWN[name] for name in names)], rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are safe already."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
