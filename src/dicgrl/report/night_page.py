"""The page of a night: HTML that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dicgrl.report.night_charts import Line, bars, interval, trend_chart
from dicgrl.report.night_style import STYLE
from dicgrl.report.night_text import (
    LEAST_GAIN,
    Measure,
    Night,
    foretold_text,
    gate_state,
    gate_text,
    left_out,
    measures,
    metrics_shown,
    retraining_text,
    verdict,
)
from dicgrl.report.results_text import SHOWN
from dicgrl.report.sparkline import svg_line

MOST_NIGHTS = 90  # that trends show
_MOST_SETS = 40  # the newest test sets
_FOLLOWED = ("mrr", "accuracy", "foretold-mrr", "foretold-accuracy")


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
    state, sign = ("bad", "✕") if refused else ("good", "✓")
    body = [
        f"<header><h1>{title}</h1>"
        f'<span class="verdict {state}">{sign} {escape(verdict(night))}</span>'
        f'<p class="soft">{escape(_about(night))}</p></header>',
        *_tiles(night),
        *_doubts(night),
        *_gates(night),
        *_trend(trends),
        *_facts(night),
        *_held_out(night),
        *_retraining(night),
        *_sets(night),
        *_trends(trends),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _section(heading: str, *body: str, kind: str = "") -> str:
    """A card with a heading, both of which are safe already."""
    named = f' class="{kind}"' if kind else ""
    return f"<section{named}><h2>{heading}</h2>{''.join(body)}</section>"


def _about(night: Night) -> str:
    when = night["time"].removesuffix("+00:00").replace("T", " ")
    said = [f"{when} UTC", night["model"], night["strategy"], night["device"], night["source"]]
    return " · ".join(text for text in [*said, night["message"]] if text)


def _tiles(night: Night) -> Iterable[str]:
    """The numbers that are looked at first."""
    held_out, tiles = night.get("held_out", {}), []
    for name in metrics_shown(night):
        if name in held_out.get("metrics", {}):
            changed = ""
            if name in held_out["before"]["metrics"] and name in held_out["same"]["metrics"]:
                changed = _changed(
                    held_out["same"]["metrics"][name] - held_out["before"]["metrics"][name]
                )
            tiles.append((SHOWN[name], f"{100 * held_out['metrics'][name]:.1f}", changed))
    foretold = night["foretold"].get("metrics", {})
    if main := next((name for name in metrics_shown(night) if name in foretold), ""):
        value = f"{100 * foretold[main]:.1f}"
        tiles.append((f"{SHOWN[main]}, foretold", value, "of tonight's facts"))
    facts = night["facts"]
    new = sum(count for count in facts["arrived"].values() if count)
    tiles.append(("facts learned", f"{facts['learned']:,}", f"{new:,} new labels" if new else ""))
    if (seconds := night["seconds"].get("all")) is not None:
        tiles.append(
            ("seconds", f"{seconds:,.3g}", f"{night['seconds']['learn']:,.3g} of learning")
        )
    yield (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><span class="soft">{escape(title)}</span><b>{escape(value)}</b>'
            f"<small>{said}</small></div>"
            for title, value, said in tiles
        )
        + "</div>"
    )


def _changed(by: float) -> str:
    """How the same questions are answered beside last night, in points; nothing has no colour."""
    shown = f"{100 * abs(by):.1f}"
    if not float(shown):
        return "as before tonight"
    kind, sign = ("good", "▲") if by > 0 else ("bad", "▼")
    return f'<span class="{kind}">{sign} {shown}</span> since last night'


def _facts(night: Night) -> Iterable[str]:
    facts = night["facts"]
    told = [f"{facts['learned']:,} facts learned of {facts['given']:,} given"]
    told += left_out(night)
    told += [f"{count:,} new {kind}" for kind, count in facts["arrived"].items() if count]
    lines = [f"<p>{escape(', '.join(told))}.</p>"]
    if facts["new"]:
        lines.append(f"<p>{escape(foretold_text(night))}.</p>")
    if moved := night["moved"].get("mean"):
        lines.append(f"<p>What was there before moved by {100 * moved:.1f} % on average.</p>")
    yield _section("Facts", *lines)


def _doubts(night: Night) -> Iterable[str]:
    for doubt in night["doubts"]:
        yield f'<section class="doubt"><b class="bad">Warning</b> {escape(doubt)}</section>'


def _gates(night: Night) -> Iterable[str]:
    if not night["gates"]:
        return
    rows = []
    for gate in night["gates"]:
        state = gate_state(gate)
        colour = {"failed": "bad", "passed": "good"}.get(state, "soft")
        cells = (escape(gate["gate"]), f'<span class="{colour}">{state}</span>')
        rows.append([*cells, escape(gate_text(gate))])
    yield _section("Gates", _table(["gate", "", "found"], rows, kind="words"))


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
    table = _table(["", "facts", *(SHOWN[name] for name in names)], rows)
    kept = ""
    if held_out["retention"] is not None:
        share = f"{100 * held_out['retention']:.1f}"
        kept = f"<p>Of the first part's right answers {share} % are still right (retention).</p>"
    yield _section("Facts that are held out, in per cent", table, kept)


def _retraining(night: Night) -> Iterable[str]:
    if not (text := retraining_text(night)):
        return
    found, picture = night["retraining"], ""
    if found.get("gain") is not None:
        picture = interval(100 * found["gain"], 100 * found["error"], 100 * LEAST_GAIN)
    yield _section("Retraining", f"<p>{escape(text[:1].upper() + text[1:])}.</p>", picture)


def _trend(nights: Sequence[Night]) -> Iterable[str]:
    """The metric that a run is judged by, held out and foretold."""
    followed = [each for each in measures(nights) if each.name in _FOLLOWED]
    if not followed or len(nights) < 2:
        return
    main = followed[0].name
    shown = [each for each in followed if each.name in (main, f"foretold-{main}")]
    lines = [
        Line(each.title, kind, [None if (v := each.of(n)) is None else 100 * v for n in nights])
        for each, kind in zip(shown, ("main", "other"), strict=False)
    ]
    refused = [at for at, night in enumerate(nights) if not night["kept"]]
    numbers = [night["night"] for night in nights]
    chart = trend_chart(lines, numbers, refused, _retrained(nights))
    if chart:
        yield _section(f"The last {len(nights)} nights, in per cent", chart)


def _retrained(nights: Sequence[Night]) -> dict[int, str]:
    """Before which nights everything was learned again, by position."""
    trained = [n.get("retraining", {}).get("evidence", {}).get("version") for n in nights]
    found: dict[int, str] = {}
    last = None
    for at, version in enumerate(trained):
        if version is not None and last not in (None, version):
            found[at] = f"retrained as version {version}"
        last = last if version is None else version
    return found


def _trends(nights: Sequence[Night]) -> Iterable[str]:
    if len(nights) < 2:
        return
    figures = [_figure(each, nights) for each in measures(nights)]
    yield _section("Night by night", f'<div class="trends">{"".join(figures)}</div>')


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
    heights = [
        (str(each["part"]), each[names[0]], f"part {each['part']}: {100 * each[names[0]]:.1f}")
        for each in sets[-_MOST_SETS:]
    ]
    table = _table(["arrived with", "asked", *(SHOWN[name] for name in names)], rows)
    yield _section(
        f"{SHOWN[names[0]]} by the part that facts arrived with{newest}",
        bars(heights) if len(heights) > 1 else "",
        f"<details><summary>in numbers</summary>{table}</details>" if len(heights) > 1 else table,
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are safe already."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
