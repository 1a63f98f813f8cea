from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.report.night_charts import Line, bars, interval, ticks, trend_chart
from dicgrl.report.night_page import night_page
from dicgrl.report.sparkline import sparkline, svg_line

VOID = {"meta", "polyline", "circle", "line"}


class Checker(HTMLParser):
    """Every element ends, nothing is loaded; gives the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onclick"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def night(number: int = 1, **changes: Any) -> dict[str, Any]:
    metrics = {"mrr": 0.3, "hits@10": 0.5}
    pooled = {"asked": 90, "metrics": metrics}
    found = {
        "night": number,
        "version": number + 1,
        "time": "2026-01-02T03:04:05+00:00",
        "dataset": "films",
        "source": "tonight.tsv",
        "message": "",
        "model": "transe",
        "strategy": "fresh",
        "device": "cpu",
        "facts": {"given": 12, "known": 1, "held_out": 1, "new": 10, "learned": 10}
        | {"newcomers": 4, "arrived": {"entities": 3, "relations": 0}},
        "foretold": {"facts": 10, "answerable": 6, "asked": 6, "metrics": metrics},
        "moved": {"rows": 5, "mean": 0.02},
        "doubts": [],
        "seconds": {"learn": 1.0, "measure": 0.5, "all": 2.0},
        "held_out": {"split": "test", "facts": 90, **pooled, "before": pooled, "same": pooled}
        | {"sets": [{"part": 0, "count": 90, **metrics}], "retention": 0.9},
        "gates": [{"gate": "mrr-drop 5%", "failed": False, "now": 0.3, "then": 0.3, "when": "a"}],
        "kept": True,
    }
    return found | changes


def read(page: str) -> str:
    checker = Checker()
    checker.feed(page)
    assert not checker.open
    return checker.text


def test_a_page_says_what_a_night_was() -> None:
    text = read(night_page([night(1), night(2), night(3)], 2))
    for words in ("films, night 2", "kept as version 3", "mrr-drop 5%", "passed", "40.0", "30.0"):
        assert words in text
    assert "The last 2 nights" in text  # later ones are none of its business


def test_a_refused_night_names_its_gates() -> None:
    gates = [{"gate": "doubts", "failed": True, "now": 1}]
    text = read(night_page([night(gates=gates, kept=False, doubts=["it knows nothing"])], 1))
    assert "refused by doubts" in text and "it knows nothing" in text


def test_a_night_without_anything_has_a_page() -> None:
    facts = {"given": 1, "known": 1, "held_out": 0, "new": 0, "learned": 0, "newcomers": 0}
    empty = night(foretold={}, moved={}, gates=[], facts=facts | {"arrived": {}}, seconds={})
    del empty["held_out"]
    assert "nothing new" in read(night_page([empty], 1))


@given(st.text(min_size=1))
def test_names_are_text_whatever_they_are(name: str) -> None:
    hostile = f"<script>{name}</script>"
    page = night_page([night(dataset=hostile, source=hostile, doubts=[hostile])], 1)
    read(page)
    assert html.escape(hostile) in page


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=40))
def test_small_pictures_show_order(values: list[float | None]) -> None:
    line = sparkline(values)
    known = [v for v in values[-30:] if v is not None]
    assert len(line) == (len(values[-30:]) if known else 0)
    pairs = [(v, c) for v, c in zip(values[-30:], line, strict=False) if v is not None]
    for (a, x), (b, y) in zip(sorted(pairs), sorted(pairs)[1:], strict=False):
        assert a <= b and x <= y
    read(svg_line(values, "a & b"))


@pytest.mark.parametrize("value", [0.0, -3.0, 1e300])
def test_a_level_line_is_in_the_middle(value: float) -> None:
    assert sparkline([value, value]) == "▅▅"


@given(st.floats(-1e4, 1e4), st.floats(0, 1e4))
def test_ticks_are_few_round_and_reach_around(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert found[0] <= low + 1e-6 and low + span <= found[-1] + 1e-6
    assert 2 <= len(found) <= 6
    steps = [b - a for a, b in pairwise(found)]
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert f"{steps[0]:e}"[0] in "125"


def points(page: str, kind: str) -> list[tuple[float, float]]:
    (found,) = re.findall(rf'<polyline class="{kind}" points="([^"]*)"', page)
    return [(float(x), float(y)) for x, y in (place.split(",") for place in found.split())]


@given(st.lists(st.floats(0, 100), min_size=2, max_size=30))
def test_a_trend_goes_up_where_its_values_do(values: list[float]) -> None:
    other = Line("other", "other", [None] * (len(values) - 1) + [50.0])
    chart = trend_chart([Line("a & b", "main", values), other], range(len(values)), [], {})
    read(chart)
    places = points(chart, "main")
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    for (value, (_, y)), (more, (_, above)) in combinations(zip(values, places, strict=True), 2):
        assert (value - more) * (y - above) <= 1e-6  # the larger stands higher


def test_a_chart_marks_refused_nights_and_retrainings() -> None:
    def since(version: int) -> dict[str, Any]:
        return {"retraining": {"evidence": {"version": version, "seconds": 1.0, "share": 0.1}}}

    nights = [
        night(1, **since(1)),
        night(2, kept=False, **since(1)),
        night(3),
        night(4, **since(7)),
    ]
    text = read(night_page(nights, 4))
    assert "night 2: MRR, held out 30.0, MRR, foretold 30.0, refused" in text
    assert "night 4: MRR, held out 30.0, MRR, foretold 30.0, retrained as version 7" in text
    assert "night 3: MRR, held out 30.0, MRR, foretold 30.0" in text


def test_the_gain_stands_beside_nothing_and_what_pays() -> None:
    for gain, error in ((4.0, 0.5), (-3.0, 0.5), (0.2, 1.5)):
        picture = interval(gain, error, 1.0)
        left = {
            kind: float(at)
            for kind, at in re.findall(r'class="(\w+)" style="left:([\d.]+)%', picture)
        }
        order = sorted([(0.0, "zero"), (1.0, "worth"), (gain, "dot"), (gain - error, "span")])
        assert [left[kind] for _, kind in order] == sorted(left.values())
        assert all(0 <= at <= 100 for at in left.values())
        read(picture)


def test_bars_are_as_high_as_their_values() -> None:
    picture = bars([("0", 0.2, "part 0: <20>"), ("1", 0.4, ""), ("2", 0.0, "")])
    assert re.findall(r"height:([\d.]+)%", picture) == ["50.0", "100.0", "0.0"]
    read(picture)
