"""Every number of the pages is that of the file that it names; a changed digit is found."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
SCRIPT = SimpleNamespace(**run_path(str(ROOT / "scripts" / "docs_numbers.py")))
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
REPORTS = sorted(FOLDER.glob("reproduce-*.json"))


def marked() -> list[tuple[str, Any]]:
    found = []
    for path in SCRIPT.pages():
        blocks = SCRIPT.blocks(path.read_text(encoding="utf-8"))
        found += [(path.name, block) for block in blocks if block.mark is not None]
    return found


def test_numbers_agree_with_their_sources_and_all_name_one() -> None:
    assert list(SCRIPT.wrong_numbers()) == []


def test_a_changed_digit_is_found() -> None:
    """The last digit of every number that has an entry."""
    changed = 0
    for name, block in marked():
        missed = 0
        if block.mark["entries"].strip() == "none":
            continue
        entries = re.sub(r"<!--|-->", "", block.mark[0])
        unsourced = entries.count("_;") + entries.rstrip().endswith("_")
        text = block.text
        for match in re.finditer(r"\d+\.\d+", text):
            at = match.end() - 1  # the last digit: a rounded number differs at once
            digit = str((int(text[at]) + 1) % 10)
            other = SCRIPT.Block(
                block.line, text[:at] + digit + text[at + 1 :], block.mark, block.section
            )
            changed += 1
            missed += not SCRIPT.compare(other)
        # Those that say that they are not measured here may be anything.
        rows = text.count("\n|") - 1 if block.mark["rows"] else 1
        assert missed <= unsourced * rows, (name, block.line)
    assert changed > 200


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_tables_of_a_report_show_its_numbers(path: Path) -> None:
    """The cells of a stored table are its stored numbers, which are the means of its seeds."""
    report = json.loads(path.read_text(encoding="utf-8"))
    for table in report["tables"]:
        lines = table["markdown"].splitlines()[2:]
        assert len(lines) == len(table["rows"])
        for line, row in zip(lines, table["rows"], strict=True):
            allowed = shown_numbers(row)
            labels = {str(value) for value in row.values() if isinstance(value, str)}
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            for cell in cells:
                if cell in labels:
                    continue
                for number in NUMBER.findall(cell):
                    assert number in allowed, (line, number)


def shown_numbers(value: Any) -> set[str]:
    """All numbers of a row as its table may show them; means are checked against their seeds."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, int | float):
        forms = ((sign, comma, d) for sign in ("", "+") for comma in ("", ",") for d in range(5))
        return {f"{value:{sign}{comma}.{digits}f}" for sign, comma, digits in forms}
    if isinstance(value, dict):
        if value.get("values") and "mean" in value:
            assert value["mean"] == pytest.approx(statistics.fmean(value["values"]))
            if value["std"] is not None:
                assert value["std"] == pytest.approx(statistics.stdev(value["values"]))
            value = {key: value[key] for key in ("mean", "std", "paper", "difference")}
        return set().union(*map(shown_numbers, value.values()), *map(shown_numbers, value))
    if isinstance(value, list):
        return set().union(*map(shown_numbers, value))
    return set(NUMBER.findall(str(value)))


def test_what_a_mark_may_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"strategy": name, "whole": {"values": [a, b], "mean": (a + b) / 2}, "parts": [1.0, 3.0]}
        for name, a, b in (
            ("emr", 40.0, 42.0),
            ("upper", 50.0, 51.0),
            ("upper, divided", 1.0, 2.0),
        )
    ]
    report = {"tables": [{"title": "Films: all edges", "rows": rows}]}
    (tmp_path / "reproduce-x.json").write_text(json.dumps(report))
    monkeypatch.setitem(SCRIPT.value_of.__globals__, "FOLDER", tmp_path)
    SCRIPT.value_of.__globals__["_tables"].cache_clear()
    for entry, value in (
        ("x[emr].whole", 41.0),
        ("x[emr edges].whole.least", 40.0),
        ("x[upper divided].whole", 1.5),
        ("100 * x[emr].whole / x[upper].whole", 100 * 41 / 50.5),
        ("mean(x[emr].parts.0:)", 2.0),
        ("most(x[emr].parts.0:, 2)", 3.0),
    ):
        assert SCRIPT.value_of(entry) == pytest.approx(value)
    for entry in (
        "x[gem].whole",
        "x[edges].whole",
        "x[emr].half",
        "y[emr].whole",
        "x[emr",
        "open(1)",
    ):
        with pytest.raises(SCRIPT.WrongNumberError):
            SCRIPT.value_of(entry)

    def said(text: str, mark: str) -> list[str]:
        (block,) = SCRIPT.blocks(f"{text}\n<!-- figures{mark} -->\n")
        return SCRIPT.compare(block)

    assert said("W 41.0, of 50 runs", ": x[emr].whole") == []
    assert said("W 41.1", ": x[emr].whole") and said("W 41.0 and 2.5", ": x[emr].whole")
    assert said("W 41", ": #x[emr].whole") == [] and said("W 42", ": #x[emr].whole")
    assert said("d 2.5, W 41.0", ": _; x[emr].whole") == []
    table = "| | W |\n| --- | --- |\n| a | 41.0 |\n| b | 50.5 |"
    assert said(table, " of emr | upper: x[{}].whole") == []
    assert said(table, " of upper | emr: x[{}].whole") and said(table, " of emr: x[{}].whole")
    SCRIPT.value_of.__globals__["_tables"].cache_clear()


def test_a_number_without_a_source_is_found() -> None:
    def command(section: str) -> str:
        (block,) = SCRIPT.blocks(section)
        return str(block.command)

    assert command("W is 41.0.") == ""
    assert command("W is 41.0 (`python benchmarks/x.py`).")
    assert command("W is 41.0 (`OMP_NUM_THREADS=1 dicgrl run films`).")
    assert not command("W is 41.0 (`dicgrl reproduce films --seeds 3`).")  # there is a file
    assert command(
        "W is 41.0 (`dicgrl reproduce films --set dim=8`)."
    )  # which is of other settings
    assert command("W is 41.0 ([notes](archive/laboratory-notes.md)).")
