"""docs/leaderboard.md is what its script makes of the measured files; its front is a front."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
SCRIPT = SimpleNamespace(**run_path(str(ROOT / "scripts" / "leaderboard.py")))
BOARD = ("x", "best", "MRR, A", "seconds")


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    assert page == SCRIPT.page(FOLDER), "run python scripts/leaderboard.py"
    assert (FOLDER / SCRIPT.PICTURE).read_bytes().startswith(b"<?xml")


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    rows = [
        SCRIPT.Entry(BOARD, str(number), float(quality), 0.0, float(cost), 1, "")
        for number, (quality, cost) in enumerate(points)
    ]
    best = SCRIPT.front(rows)
    assert best
    for row in rows:
        beaten = any(
            other.quality >= row.quality
            and other.cost <= row.cost
            and (other.quality, other.cost) != (row.quality, row.cost)
            for other in rows
        )
        assert (row in best) == (not beaten)
    assert [entry.cost for entry in best] == sorted(entry.cost for entry in best)


def value(number: float) -> dict[str, Any]:
    return {"values": [number], "mean": number, "std": None}


def report(target: str, title: str, rows: list[dict[str, Any]]) -> str:
    tables = [{"title": title, "markdown": "", "rows": rows}]
    return json.dumps({"target": target, "recipe": "best", "tables": tables})


def test_a_new_file_is_a_new_board(tmp_path: Path) -> None:
    """Rows of tables and of rivals differ: MRR beside H@10, or one of several metrics."""
    parts = [
        {
            "dataset": "films",
            "model": "transe",
            "strategy": name,
            "average": value(40.0 + at),
            "whole": value(41.0),
            "average_mrr": value(20.0 + at),
            "whole_mrr": value(21.0),
            "seconds": value(2.0),
            "positives": value(1000.0 * (at + 1)),
        }
        for at, name in enumerate(("emr", "upper", "frozen"))
    ]
    (tmp_path / "reproduce-films-best.json").write_text(report("films", "Films: per cent", parts))
    first = SCRIPT.page(tmp_path)
    assert "| emr transe | 20.0 | 21.0 | 1,000 | 1 | **front** |" in first
    assert "| frozen transe | 22.0 | 21.0 | 3,000 | 1 | control |" in first
    rivals = [
        {
            "dataset": "ENTITY",
            "strategy": name,
            "protocol": "snapshot",
            "average": {"mrr": value(25.0 - at)},
            "whole": {"mrr": value(26.0)},
            "positives": value(3.5 + at),
            "seconds": value(9.0),
        }
        for at, name in enumerate(("fresh", "lkge"))
    ]
    title = "With equal care, protocol snapshot: per cent"
    (tmp_path / "reproduce-ckge-best.json").write_text(report("ckge", title, rivals))
    second = SCRIPT.page(tmp_path)
    assert "## ENTITY, ckge: With equal care, protocol snapshot, recipe best" in second
    assert "| fresh | 25.0 | 26.0 | 3.50 M | 1 | **front** |" in second
    assert "| lkge | 24.0 | 26.0 | 4.50 M | 1 |  |" in second
    assert set(first.splitlines()) - set(second.splitlines()) <= {
        line for line in first.splitlines() if " of " in line
    }
    SCRIPT.draw(tmp_path, tmp_path / "board.svg")
    assert (tmp_path / "board.svg").read_bytes().startswith(b"<?xml")


def test_rows_of_other_kinds_are_left_out(tmp_path: Path) -> None:
    rows = [{"dataset": "films", "model": "transe", "form": "plain", "mrr": value(3.0)}]
    (tmp_path / "reproduce-table3-best.json").write_text(report("table3", "Merged", rows))
    assert SCRIPT.entries(tmp_path) == []


def test_files_of_other_kinds_have_boards_of_their_own(tmp_path: Path) -> None:
    """Per cent and millions, shares and counts, the best trial of each row."""
    grown = [
        {
            "dataset": "FACT",
            "strategy": name,
            "effort": effort,
            "split": split,
            "A mrr": {"values": [30.0, 32.0], "mean": 31.0 - at},
            "W mrr": {"values": [30.0, 32.0], "mean": 30.0},
            "positives": {"values": [at, at], "mean": 60.0 - at},
        }
        for at, (name, effort, split) in enumerate(
            [("upper", "default", "test"), ("fresh", "20%", "test"), ("warm", "default", "valid")]
        )
    ]
    (tmp_path / "growth.json").write_text(json.dumps({"rows": grown}))
    cuts = [
        {"graph": "films", "model": model, "A mrr": 0.25 + at, "W mrr": 0.5, "seconds": 30.0 + at}
        for at, model in enumerate(("transe", "rotate"))
    ]
    (tmp_path / "decoders-cuts.json").write_text(json.dumps(cuts))
    trials = [
        {"row": row, "average": {"mrr": mrr}, "whole": {"mrr": 0.1}, "positives": 1000 * at + 1000}
        for at, (row, mrr) in enumerate(
            [("emr", 0.2), ("emr", 0.3), ("upper, divided", 0.25), ("upper, divided", 0.1)]
        )
    ]
    file = {"dataset": "films", "model": "transe", "metric": "mrr", "trials": trials}
    (tmp_path / "trials-films-transe.json").write_text(json.dumps(file))
    found = SCRIPT.entries(tmp_path)
    assert {(e.board[0], e.label, round(e.quality, 3), e.cost, e.seeds) for e in found} == {
        ("FACT, growth: test triples", "upper transe", 31.0, 60.0, 2),
        ("FACT, growth: test triples", "fresh transe, effort=20%", 30.0, 59.0, 2),
        ("FACT, growth: valid triples", "warm transe", 29.0, 58.0, 2),
        ("films, cut to 10,000 triples", "fresh transe", 25.0, 30.0, 1),
        ("films, cut to 10,000 triples", "fresh rotate", 125.0, 31.0, 1),
        ("films, best of equal trials: validation", "emr transe", 30.0, 2000.0, 1),
        ("films, best of equal trials: validation", "upper transe, divided", 25.0, 3000.0, 1),
    }
    page = SCRIPT.page(tmp_path)
    assert "FACT, growth: valid triples" not in page  # one row is no comparison
    assert "| fresh transe, effort=20% | 30.0 | 30.0 | 59.0 M | 2 | **front** |" in page
    assert "[growth.json](results/growth.json)" in page


def test_every_stream_with_committed_rows_is_on_the_page() -> None:
    page = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    growth = json.loads((FOLDER / "growth.json").read_text(encoding="utf-8"))
    boards = {(row["dataset"], row["split"]) for row in growth["rows"]}
    several = {
        b for b in boards if sum((r["dataset"], r["split"]) == b for r in growth["rows"]) > 1
    }
    for dataset, split in several:
        assert f"## {dataset}, growth: {split} triples" in page
    for path in FOLDER.glob("reproduce-*.json"):
        for table in json.loads(path.read_text(encoding="utf-8"))["tables"]:
            for row in table["rows"]:
                if isinstance(row.get("average"), dict) and "strategy" in row:
                    assert f"## {row['dataset']}, " in page, (path.name, row["dataset"])
