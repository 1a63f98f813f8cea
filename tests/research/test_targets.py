"""Targets on tiny streams, and which cells the paper's targets need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicgrl import UserError
from dicgrl.datasets.paper import PAPER_DATASETS
from dicgrl.recipes import load_recipe
from dicgrl.research.cells import Cell, load_cell
from dicgrl.research.job import reproduce
from dicgrl.research.kinds import Curves, Panel, PartsTable, WholeTable
from dicgrl.research.rows import (
    STRATEGIES,
    conditions_of,
    fair_cells,
    label_of,
    strategy_cells,
)
from dicgrl.research.studies import CaseStudy, count_table
from dicgrl.research.target import Options, Target
from dicgrl.research.targets import TARGETS, targets
from tests.research.conftest import SMALL

FEW = ("frozen", "lower", "dicgrl")
OPTIONS = Options("best", 2, (*SMALL, "dim=8", "arrive_epochs=1"))


def tiny(links: str, nodes: str) -> list[Target]:
    ring = strategy_cells(links, "transe", strategies=FEW)
    pairs = strategy_cells(nodes, "gat", "graph=part", strategies=FEW)
    lines = {str(cell.strategy): cell for cell in ring}
    return [
        PartsTable("links", "Links", "Table 1", {"Graphs": ring}, "hits@10"),
        PartsTable("nodes", "Nodes", "Table 2", {"Networks": pairs}, "accuracy"),
        Curves(
            "curves",
            "Curves",
            "Figure 4",
            [Panel("ring", lines, "mrr", "a"), Panel("ring", lines, "seconds", "b")],
        ),
    ]


def test_targets_share_cells_and_write_their_reports(
    links: str, nodes: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome, reports = reproduce(tiny(links, nodes), OPTIONS, out, device="cpu")
    assert not outcome.failed and len(outcome.ran) == 2 * len(FEW) * 2  # curves need no more
    assert {path.name for path in out.iterdir() if path.is_file()} == {
        *(f"reproduce-{name}-best.{end}" for name in ("links", "nodes", "curves") for end in
          ("md", "json")),
        *(f"reproduce-{name}.{end}" for name in
          ("curves-best-a", "curves-best-b", "links-best-cost", "nodes-best-cost")
          for end in ("png", "svg")),
    }  # fmt: skip
    (first, content), second, third = reports
    assert [row[2] for row in content.tables[0].cells] == list(FEW)
    row = first["tables"][0]["rows"][1]
    cells = OPTIONS.cells(strategy_cells(links, "transe", strategies=["lower"])[0])
    measured, passed = [], []
    for cell in cells:
        done = load_cell(out, cell)
        assert done is not None
        measured.append(100 * done.results["parts"][-1]["average"]["hits@10"])
        later = [part["positives"] for part in done.results["parts"][1:]]
        passed.append(sum(each["new"] + each["old"] for each in later) / len(later))
    assert row["positives"]["values"] == passed and passed[0] > 0
    assert row["average"]["values"] == measured and row["average"]["paper"] is None
    assert json.loads((out / "reproduce-links-best.json").read_text()) == first
    assert first["command"] == (
        "dicgrl reproduce links --recipe best --seeds 2 --set epochs=2 --set later_epochs=1 "
        "--set dim=8 --set arrive_epochs=1"
    )
    assert first["devices"] == ["cpu"] and first["missing"] == [] and len(first["runs"]) == 6
    (axes,) = content.pictures[0].draw().axes
    drawn = dict(zip(axes.get_legend_handles_labels()[1], axes.collections[::2], strict=True))
    seconds, average = drawn["lower"].get_offsets().tolist()[0]
    assert seconds == pytest.approx(max(row["seconds"]["mean"], 1e-3))
    assert average == pytest.approx(row["average"]["mean"])
    page = (out / "reproduce-curves-best.md").read_text(encoding="utf-8")
    assert page.startswith("# Curves, recipe best\n")
    assert "![Curves, a](reproduce-curves-best-a.svg)" in page
    assert second[0]["runs"][0]["settings"]["graph"] == "part"
    assert third[1].tables[1].header[-1] == "sum"

    again, _ = reproduce(tiny(links, nodes), OPTIONS, out, device="cpu")
    assert not again.ran and len(again.kept) == 12


def test_only_some_cells_are_run_and_the_report_shows_what_is_there(
    links: str, nodes: str, tmp_path: Path
) -> None:
    target = tiny(links, nodes)[0]
    options = Options("best", 2, SMALL)  # `arrive_epochs` would be refused: nobody uses it here
    outcome, ((report, content),) = reproduce(
        [target], options, tmp_path / "out", only="ring transe lower", device="cpu"
    )
    assert len(outcome.ran) == 2
    assert [row[2] for row in content.tables[0].cells] == ["lower"]
    assert len(report["missing"]) == 4
    with pytest.raises(UserError, match="no cell's name contains it"):
        reproduce([target], OPTIONS, tmp_path / "out", only="nobody", device="cpu")


def test_all_cells_fail(links: str, nodes: str, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no luck")

    outcome, reports = reproduce(
        tiny(links, nodes)[:1], OPTIONS, tmp_path / "out", device="cpu", run=fail
    )
    assert set(outcome.failed.values()) == {"RuntimeError: no luck"} and len(outcome.failed) == 6
    assert reports == []


def test_a_change_reaches_the_cells_that_have_the_setting(links: str, nodes: str) -> None:
    (link,), (node,) = (
        Options("best", 1, ("dim=16", "hidden=4", "epochs=3")).cells(cell)
        for cell in (Cell(links, "transe", "lower"), Cell(nodes, "gat", "lower"))
    )
    assert link.changes == ("dim=16", "epochs=3") and node.changes == ("hidden=4", "epochs=3")
    with pytest.raises(UserError, match="unknown setting 'dims'; did you mean 'dim'"):
        Options("best", 1, ("dims=16",)).check([Cell(links, "transe", "lower")])


def test_whole_forms(links: str, tmp_path: Path) -> None:
    forms = ("plain", "disentangled", "disentangled-nodes", "disentangled-triple")
    target = WholeTable(
        "whole", "Whole", "Table 3", [Cell(links, "transe", form=f) for f in forms], ("mrr",)
    )
    options = Options("best", 1, ("epochs=1", "dim=8"))
    outcome, ((report, content),) = reproduce([target], options, tmp_path / "out", device="cpu")
    assert not outcome.failed
    assert [row[2] for row in content.tables[0].cells] == list(forms)
    attention = [run["settings"]["attention"] for run in report["runs"]]
    assert attention == ["relation", "relation", "nodes", "triple"]


@pytest.mark.parametrize("newcomer", ["e14", "nobody"])
def test_the_case_study(links: str, tmp_path: Path, newcomer: str) -> None:
    cell = Cell(links, "transe", "dicgrl", "disentangled", case=(newcomer, "e0", "e12"))
    target = CaseStudy("case", "Case", "Figure 8", cell)
    out = tmp_path / "out"
    _, ((report, content),) = reproduce([target], OPTIONS, out, device="cpu")
    (run,) = report["runs"]  # one seed says all
    assert run["settings"]["strategy"] == "dicgrl"
    assert len(list(out.glob("reproduce-case-best-*.svg"))) == 2
    done = load_cell(out, target.cells(OPTIONS)[0])
    assert done is not None
    found = done.results
    assert (found["newcomer"], found["part"]) == (
        (newcomer, 1) if newcomer == "e14" else (found["newcomer"], 2)
    )
    assert 1 <= len(found["new"]) <= 2
    old = {f"e{i}" for i in range(12 if found["part"] == 1 else 16)}
    for entry in found["new"]:
        head, _, tail = entry["triple"]
        assert found["newcomer"] in (head, tail) and {head, tail} & old
        used = {int(k) for k in entry["components"]}
        for shown in entry["shown"]:
            assert {shown["triple"][0], shown["triple"][2]} <= old  # nothing new is activated
            assert set(shown["shared"]) <= used and shown["shared"]
            touches = {shown["triple"][0], shown["triple"][2]} & {head, tail}
            assert bool(touches) == (shown["order"] == 1)
    for row in found["heat"]["attention"]:
        assert sum(row) == pytest.approx(1, abs=1e-5)
    assert 0 <= found["separation"] <= 1
    assert len(content.tables[0].cells) == sum(1 + len(e["shown"]) for e in found["new"])


def test_counts_beside_the_papers() -> None:
    dataset = PAPER_DATASETS["cora"]
    parts = [
        {row: values[i] for row, values in dataset.counts.items()} for i in range(dataset.num_parts)
    ]
    table, wrong = count_table(dataset, parts)
    assert wrong == 0 and {row[-2] for row in table.cells} == {"the same"}
    parts[1]["edges"] += 3
    table, wrong = count_table(dataset, parts)
    assert wrong == 1
    row = next(row for row in table.data if row["count"] == "edges")
    assert row["difference"] == [0, 3, 0, 0]


def test_the_papers_targets_have_what_the_paper_has() -> None:
    options = Options("paper", 3)
    cells = {target.name: target.cells(options) for target in targets("all")}
    assert {name: len(found) for name, found in cells.items()} == {
        "table1": 2 * (3 + 1) * len(STRATEGIES),  # three seeds, of ConvKB one
        "table2": 3 * 2 * 3 * len(STRATEGIES),
        "table3": 2 * (3 + 1) * 4,
        "table4": 3 * 2 * 3,
        "stats": 0,
        "curves": (2 * 2 * (3 + 1) + 3 * 2 * 3) * len(STRATEGIES),
        "sensitivity": 10 * 3,
        "time": 3 * len(STRATEGIES),
        "case": 1,
    }
    keys = {name: {cell.key() for cell in found} for name, found in cells.items()}
    assert keys["curves"] == keys["table1"] | keys["table2"]
    assert keys["time"] < keys["table1"]
    assert len(keys["sensitivity"]) == 9 * 3  # K = 8, n = 2 is in both series
    for name in ("table1", "table2", "table3", "table4"):
        for cell in cells[name]:
            published = cell.settings().published
            expected = {"whole", "average"} if name < "table3" else set(published)
            assert set(published) == (set() if cell.strategy == "frozen" else expected), str(cell)
            assert published or cell.strategy == "frozen"
    # not the paper's
    ours = {"films", "decoders", "growth", "growth-effort", "ckge", "ablation", "forgetting"}
    assert set(TARGETS) - {target.name for target in targets("all")} == ours
    with pytest.raises(UserError, match="did you mean 'table1'"):
        targets("tabel1")


@pytest.mark.parametrize("recipe", ["paper", "released", "best"])
def test_published_numbers(recipe: str) -> None:
    """Some of each table, as the paper prints them."""
    for dataset, model, strategy, whole, average in (
        ("FB15k-237", "transe", "lower", 24.1, 29.8),
        ("FB15k-237", "convkb", "gem", 28.0, 35.0),
        ("WN18RR", "transe", "dicgrl", 33.3, 35.9),
        ("WN18RR", "convkb", "upper", 51.0, 50.2),
        ("cora", "gat", "ewc", 63.4, 61.2),
        ("citeseer", "gat", "upper", 70.9, 73.4),
        ("pubmed", "gat", "gem", 85.5, 84.2),
    ):
        divided = strategy == "dicgrl"
        found = load_recipe(recipe, dataset, model, disentangled=divided, strategy=strategy)
        assert found.published == {"whole": whole, "average": average}
    for dataset, model, attention, mrr, hits in (
        ("WN18RR", "transe", "nodes", 17.3, 40.8),
        ("FB15k-237", "transe", None, 30.5, 48.9),  # the rows with a star: the authors' own runs
        ("FB15k-237", "convkb", None, 22.5, 41.3),
        ("FB15k-237", "convkb", "triple", 20.7, 38.2),
    ):
        found = load_recipe(
            recipe,
            dataset,
            model,
            disentangled=attention is not None,
            attention=attention or "relation",
        )
        assert found.published == {"mrr": mrr, "hits@10": hits}


def test_the_paper_recipe_learns_later_parts_as_the_released_code() -> None:
    for dataset, model in (("FB15k-237", "transe"), ("WN18RR", "convkb"), ("cora", "gat")):
        ours = load_recipe("paper", dataset, model, disentangled=True, strategy="dicgrl").settings
        assert (ours.start, ours.budget, ours.arrive_epochs) == ("random", "all", 0)
        assert (ours.refresh, ours.weight1, ours.weight2) == (10, 0.5, 0.25)
        for strategy in ("emr", "gem"):
            others = load_recipe("paper", dataset, model, strategy=strategy).settings
            assert (others.budget, others.validate_on) == ("10%", "seen")


def test_the_recipe_released_is_the_papers_but_for_what_the_code_does_otherwise() -> None:
    for dataset, model in (("FB15k-237", "transe"), ("WN18RR", "convkb"), ("pubmed", "gat")):
        both = [
            load_recipe(name, dataset, model, disentangled=True, strategy="dicgrl").settings
            for name in ("paper", "released")
        ]
        paper, released = (settings.as_dict() for settings in both)
        differs = {key for key in released if paper.get(key) != released[key]}
        expected = {
            "transe": {"loss", "margin", "lr", "halve_every", "adam", "moments"},
            "convkb": {"lr", "halve_every", "adam", "moments"},
            "gat": {"lr", "beta"},
        }[model]
        assert differs == expected
        assert released["lr"] == (5e-3 if model == "gat" else 1e-3)


def test_rows_besides_those_of_the_paper() -> None:
    table = TARGETS["table1"]
    rows = [label_of(cell) for cell in table.templates_for(Options("best"))]
    few = [label_of(cell) for cell in table.templates_for(Options("paper"))]
    assert len(few) == 28 and len(rows) == 28 + 4 * 2 + 2  # arrival on FB15k-237 alone
    assert set(rows) - set(few) == {"dicgrl, K=1", "upper, divided", "arrival"}
    found = {label_of(cell): cell for cell in fair_cells("films", "transe")}
    sizes = {}
    for label, cell in found.items():
        (cell,) = Options("best", 1).cells(cell)
        sizes[label] = conditions_of(cell.settings().settings.as_dict())["active"]
    assert set(sizes.values()) <= {"64", "66", "68"}  # whole components, a multiple of four
    nodes = {label_of(cell): cell.settings().settings for cell in fair_cells("cora", "gat")}
    several, one = nodes["dicgrl"], nodes["dicgrl, K=1"]
    assert (one.components, one.hidden) == (1, several.top * several.hidden)
    one = found["dicgrl, K=1"].settings().settings
    assert (one.components, one.top) == (1, 1)
    assert found["upper, divided"].settings().settings.components > 1


def test_a_report_keeps_what_each_run_measured(links: str, tmp_path: Path) -> None:
    cells = strategy_cells(links, "transe", strategies=("lower",))
    target = PartsTable("links", "Links", "", {"Graphs": cells}, "hits@10")
    options = Options("best", 2, (*SMALL, "dim=8"))
    _, ((report, content),) = reproduce([target], options, tmp_path / "out", device="cpu")
    (row,) = report["tables"][0]["rows"]
    assert content.tables[0].header[3:8] == ["active", "start", "budget", "A MRR", "W MRR"]
    for seed, run in enumerate(report["runs"]):
        assert set(run["matrix"]) == {"mrr", "hits@1", "hits@3", "hits@10"}
        for name, rows in run["matrix"].items():
            assert [len(tests) for tests in rows] == [1, 2, 3]
            last = sum(rows[-1]) / 3
            assert run["average"][name][-1] == pytest.approx(last, abs=2e-5)
        assert 100 * run["average"]["mrr"][-1] == pytest.approx(
            row["average_mrr"]["values"][seed], abs=1e-3
        )
        assert 100 * run["whole"]["hits@10"][-1] == pytest.approx(
            row["whole"]["values"][seed], abs=1e-3
        )
        assert len(run["seconds"]) == len(run["positives"]) == 3
    total = sum(sum(run["seconds"]) for run in report["runs"])
    assert content.notes[0] == f"Learning took {total:,.0f} s in all these runs together."
