"""docs/results.md is what its script makes of the measured files, and its numbers are theirs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
REPRODUCED = "## The paper's tables and figures, measured again"
OWN = PAGE.partition(REPRODUCED)[0]  # tests/research looks after the rest
FIRST = "## Link prediction, merged graph"  # what follows the index
COMMAND = re.compile(
    r"`dicgrl run (?P<dataset>\S+) --merged --model (?P<model>\S+)"
    r"(?P<disentangled> --disentangled)? --recipe (?P<recipe>\S+)`"
)


def rows_with(pattern: str) -> list[list[str]]:
    """Cells of the table rows that match."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in OWN.partition(FIRST)[2].splitlines()  # without the index
        if line.startswith("|") and re.search(pattern, line)
    ]


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", cell)]


def links() -> list[dict[str, Any]]:
    text = (FOLDER / "link-prediction-whole.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_page_is_current() -> None:
    script = run_path(str(ROOT / "scripts" / "results_page.py"))
    assert script["page"](FOLDER) == PAGE, "run python scripts/results_page.py"


def test_every_run_has_its_row_with_its_numbers() -> None:
    rows = {}
    for row in rows_with("transe|convkb"):
        asked = COMMAND.fullmatch(row[-1])
        assert asked, row[-1]
        rows[asked["dataset"], asked["model"], bool(asked["disentangled"])] = (asked, row)
    results = links()
    assert len(rows) == len(results) == 8
    for result in results:
        divided = result["settings"]["components"] > 0
        asked, row = rows[result["dataset"], result["model"], divided]
        assert asked["recipe"] == result["recipe"] and result["seed"] == 0  # as the command has it
        ours, theirs, difference = (numbers(cell) for cell in row[3:6])
        assert row[0] == result["dataset"] and row[1].lower() == result["model"]
        for index, metric in enumerate(("mrr", "hits@10")):
            assert ours[index] == pytest.approx(100 * result["test"][metric], abs=0.0501)
            assert theirs[index] == result["published"][metric]
            assert difference[index] == pytest.approx(ours[index] - theirs[index])
        assert row[6] == f"{result['best_epoch']} of {result['epochs']}"
        assert float(row[7]) == pytest.approx(result["learn_seconds"], abs=0.501)
        assert result["device"] in PAGE


def test_how_often_the_paper_is_reached() -> None:
    reached = [
        sum(round(100 * r["test"][m], 1) >= r["published"][m] for r in links())
        for m in ("mrr", "hits@10")
    ]
    sentence = " ".join(PAGE.split())
    assert f"MRR is reached in {reached[0]} of 8 rows and its H@10 in {reached[1]} of 8" in sentence


def test_aspects_are_those_of_the_file() -> None:
    measured = json.loads((FOLDER / "aspects.json").read_text(encoding="utf-8"))
    rows = rows_with("published|learned")
    assert len(rows) == len(measured) == 4
    for row, entry in zip(rows, measured, strict=True):
        assert row[:3] == [str(entry["components"]), str(entry["top"]), entry["routing"]]
        for cell, name in zip(
            row[3:], ("start", "separation", "rand", "mrr", "hits@10"), strict=True
        ):
            spread = entry["measured"][name]
            assert numbers(cell) == pytest.approx([spread["mean"], spread["std"]], abs=0.00501)


def test_node_classification_where_it_was_measured() -> None:
    path = FOLDER / "node-classification-whole.json"
    if not path.is_file():
        pytest.skip("not measured yet")
    rows = {row[-1].strip("`"): row for row in rows_with("±")}
    measured = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) == len(measured)
    for entry in measured:
        row = rows[entry["command"].replace("--whole", "--merged")]
        assert row[0] == entry["dataset"] and row[2] == entry["form"]
        scale = 100 if entry["accuracy_mean"] <= 1 else 1
        expected = [entry["accuracy_mean"] * scale, entry["accuracy_std"] * scale]
        assert numbers(row[3]) == pytest.approx(expected, abs=0.0501)


def test_pictures_are_there() -> None:
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGE):
        begins = b"\x89PNG" if name.endswith(".png") else b"<?xml"
        assert (ROOT / "docs" / name).read_bytes().startswith(begins)


def index_of(page: str) -> list[tuple[str, str, str]]:
    """Claim, number and anchor of each line of the index."""
    text = page.partition("## Index")[2].partition(FIRST)[0]
    return re.findall(r"^\| (.+) \| (.*) \| \[.+\]\(#(.+)\) \|$", text, re.MULTILINE)


def test_every_section_has_its_line_in_the_index() -> None:
    script = run_path(str(ROOT / "scripts" / "results_page.py"))
    slug = script["results_index"].slug
    _, _, below = PAGE.partition("## Index")
    titles = re.findall(r"^#{2,3} (.+)$", below, re.MULTILINE)
    found = index_of(PAGE)
    assert all(number for _, number, _ in found)
    no_claim = {REPRODUCED.strip("# "), "Where it falls short"}
    assert {anchor for _, _, anchor in found} == {slug(t) for t in titles if t not in no_claim}


def test_numbers_of_the_index_stand_in_their_sections() -> None:
    sections = re.split(r"^#{2,3} ", PAGE.partition(FIRST)[2], flags=re.MULTILINE)
    for claim, number, anchor in index_of(PAGE)[4:]:
        section = next(s for s in sections if anchor == _anchor(s.partition("\n")[0]))
        for given in re.findall(r"\d+\.\d+|\d+ of \d+", number):
            # Seconds have one digit in their table.
            value = f"{float(given):.1f}" if re.fullmatch(r"\d\.\d\d", given) else given
            assert value in section or value.replace(" of ", " of its ") in section, claim


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_claims_about_growth_are_made_of_what_is_finished() -> None:
    claims_of = run_path(str(ROOT / "scripts" / "results_page.py"))["results_index"].claims_of

    def report(target: str, *rows: dict[str, Any]) -> dict[str, Any]:
        tables = [{"rows": list(rows)}]
        return {"target": target, "recipe": "best", "title": "Growth", "tables": tables}

    def row(whole: float | None, cost: float | None = 9.0, **names: str) -> dict[str, Any]:
        return {**names, "whole_share": {"mean": whole}, "positives_share": {"mean": cost}}

    table = [
        row(99.0, dataset="FACT", strategy="fresh"),
        row(90.0, dataset="FACT", strategy="warm"),
        row(98.0, 1.9, dataset="nightly", strategy="fresh"),
    ]
    ((_, number),) = claims_of(report("growth", *table))
    assert number == (
        "99.0 % with 9.0 % of the positives (FACT), 98.0 % with 1.9 % of the positives (nightly)"
    )
    efforts = [
        row(value, strategy=name, effort=effort)
        for name, value in (("fresh", 99.0), ("warm", 97.0), ("fresh", 98.0))
        for effort in ("10%", "20%")
    ]
    ((_, number),) = claims_of(report("growth-effort", *efforts))
    assert number == "fresh 98.0 to 99.0 %, warm 97.0 to 97.0 %"
    variants = [row(99.0, variant="fresh"), row(80.0, variant="dicgrl")]
    ((_, number),) = claims_of(report("ablation", *variants))
    assert number == "fresh 99.0 to 99.0 %, dicgrl 80.0 to 80.0 %"
    alone = row(None, None, dataset="FACT", strategy="fresh")
    assert claims_of(report("growth", alone)) == claims_of(report("growth")) == [("Growth", "")]


def test_a_reproduced_target_has_its_section(tmp_path: Path) -> None:
    for path in FOLDER.iterdir():
        if not path.name.startswith(("reproduce-", "notes-")):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    script = run_path(str(ROOT / "scripts" / "results_page.py"))
    alone = script["page"](tmp_path)  # sections appear with their files
    assert alone.partition(FIRST)[2] == OWN.partition(FIRST)[2].rstrip() + "\n"
    own = 4 + len(list(FOLDER.glob("trials-*.json")))
    assert len(index_of(alone)) == own
    report = {
        "name": "reproduce-time-best",
        "target": "time",
        "title": "Seconds of learning",
        "paper": "Figure 7",
        "command": "dicgrl reproduce time --recipe best --seeds 3",
        "recipe": "best",
        "seeds": 3,
        "date": ["2026-11-15", "2026-11-16"],
        "devices": ["NVIDIA H200"],
        "at_once": [1],
        "missing": [],
        "tables": [{"title": "FB15k-237", "markdown": "| | part 0 |\n| --- | ---: |", "rows": []}],
        "figures": [
            {"title": "Seconds", "file": "reproduce-time-best"},
            {"title": "Lost", "file": "reproduce-time-best-lost"},
        ],
        "notes": ["Fast."],
        "runs": [{}],
    }
    (tmp_path / "reproduce-time-best.json").write_text(json.dumps(report))
    (tmp_path / "reproduce-time-best.svg").write_text("<?xml")
    (tmp_path / "notes-time-best.md").write_text("Slower than light.\n")
    (tmp_path / "notes-table1-best.md").write_text("There is no table 1 yet.\n")
    page = script["page"](tmp_path)
    section = page.partition(REPRODUCED)[2]
    assert page.partition(FIRST)[2].startswith(OWN.partition(FIRST)[2].rstrip())
    assert index_of(page)[own:] == [("Seconds of learning", "", "seconds-of-learning-recipe-best")]
    for words in (
        "### Seconds of learning, recipe best",
        "`dicgrl reproduce time --recipe best --seeds 3`",
        "NVIDIA H200",
        "2026-11-15 to 2026-11-16",
        "| | part 0 |",
        "![Seconds](results/reproduce-time-best.svg)",
        "Slower than light.",
    ):
        assert words in section
    assert "Lost" not in section and "table 1" not in section


def test_a_result_of_another_recipe_is_told_apart() -> None:
    script = run_path(str(ROOT / "scripts" / "results_page.py"))
    result = next(r for r in links() if (r["model"], r["dataset"]) == ("transe", "FB15k-237"))
    assert script["is_current"](result)
    younger = {k: v for k, v in result["settings"].items() if k not in ("weighting", "shield_rank")}
    assert not script["is_current"](result | {"settings": younger})  # it was even then
    assert not script["is_current"](result | {"settings": result["settings"] | {"lr": 0.5}})
    other = result["settings"] | {"later_epochs": 7}
    assert script["is_current"](result | {"settings": other})
