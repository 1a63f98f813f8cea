"""Targets about kinds of growth, on tiny streams that bear the real names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dicgrl import load_stream, write_stream
from dicgrl.datasets import growth as known
from dicgrl.datasets.locate import cache_folder
from dicgrl.research.cells import Cell, load_cell
from dicgrl.research.growth import Ablation, EffortCurves, GrowthTable, Reached
from dicgrl.research.job import reproduce
from dicgrl.research.target import Options, Target
from dicgrl.research.targets import EFFORTS, GROWTH, TARGETS, ablation_rows, growth_rows
from tests.growing import knowledge_stream
from tests.research.test_command import command

PLAIN = ("epochs=4", "batch=16", "lr=0.01", "dim=8", "negatives=4")
SMALL = (*PLAIN, "later_epochs=1", "arrive_epochs=1")
NIGHTLY = "FB15k-237-nightly"


@pytest.fixture
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All five streams, tiny, where a user would keep them."""
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(known.LKGE_DATASETS):
        stream = knowledge_stream(seed)
        write_stream(stream, cache_folder() / name)
        counts = {
            split: tuple(len(getattr(part, split)) for part in load_stream(cache_folder() / name))
            for split in ("train", "valid", "test")
        }
        monkeypatch.setitem(known.LKGE_DATASETS, name, known.LKGEDataset(name, "", counts))
    write_stream(knowledge_stream(9, (40, 20, 20)), cache_folder() / "FB15k-237")
    tiny = known.DerivedDataset(NIGHTLY, "", "FB15k-237", "nightly", parts=4, first=0.7)
    monkeypatch.setitem(known.DERIVED_DATASETS, NIGHTLY, tiny)


def results_of(out: Path, target: Target, options: Options, name: str) -> dict[str, Any]:
    """The results of the first finished cell with these words in its name."""
    (cell, *_) = (cell for cell in target.cells(options) if name in str(cell))
    done = load_cell(out, cell)
    assert done is not None
    return done.results


def later(results: dict[str, Any], key: str) -> float:
    parts = results["parts"][1:]
    if key == "positives":
        return float(sum(part["positives"]["new"] + part["positives"]["old"] for part in parts))
    return float(sum(part[key] for part in parts))


@pytest.mark.usefixtures("streams")
def test_the_table_says_what_later_parts_reach_and_cost_beside_retraining(tmp_path: Path) -> None:
    names = (NIGHTLY,)
    target = GrowthTable("growth", "Growth", "", {name: growth_rows(name) for name in names})
    options, out = Options("best", 2, SMALL), tmp_path / "out"
    outcome, ((report, content),) = reproduce([target], options, out, device="cpu")
    assert not outcome.failed and len(outcome.ran) == 4 * 2
    rows = report["tables"][0]["rows"]
    assert [(row["dataset"], row["strategy"]) for row in rows] == [
        (name, strategy) for name in names for strategy in ("upper", "warm", "fresh", "dicgrl")
    ]
    for row in rows:
        runs = [
            {
                name: results_of(
                    out, target, options, f"{row['dataset']} transe {name} best seed {s}"
                )
                for name in (row["strategy"], "upper")
            }
            for s in (0, 1)
        ]
        ours = [run[row["strategy"]] for run in runs]
        for judged in ("whole", "average"):
            for metric in ("mrr", "hits@1", "hits@10"):
                found = [100 * run["parts"][-1][judged][metric] for run in ours]
                assert row[judged][metric]["values"] == found
            share = [
                100 * own["parts"][-1][judged]["mrr"] / run["upper"]["parts"][-1][judged]["mrr"]
                for own, run in zip(ours, runs, strict=True)
            ]
            assert row[f"{judged}_share"]["values"] == pytest.approx(share)
        spent = [later(run, "positives") for run in ours]
        assert row["positives"]["values"] == pytest.approx([n / 1e6 for n in spent])
        most = [later(run["upper"], "positives") for run in runs]
        shares = [100 * n / upper for n, upper in zip(spent, most, strict=True)]
        assert row["positives_share"]["values"] == pytest.approx(shares)
        assert row["seconds"]["values"] == [later(run, "learn_seconds") for run in ours]
        assert row["retention"]["values"] == [100 * run["retention"] for run in ours]
    assert rows[0]["whole_share"]["mean"] == pytest.approx(100)
    # What a stranger's graph gets: no recipe of FB15k-237 for what is made of it.
    nightly = results_of(out, target, options, f"{NIGHTLY} transe upper")
    assert nightly["recipe"] == "default" and nightly["dataset"] == NIGHTLY
    assert len(nightly["parts"]) == 4
    (note,) = content.notes
    assert "upper, warm, fresh: plain vectors of 8 numbers; dicgrl: divided vectors" in note
    assert "3 of 4 components" in note

    again, _ = reproduce([target], options, out, device="cpu")
    assert not again.ran and len(again.kept) == 8


@pytest.mark.usefixtures("streams")
def test_the_picture_shows_quality_over_what_was_processed(tmp_path: Path) -> None:
    target = TARGETS["growth-effort"]
    assert isinstance(target, EffortCurves)
    options, out = Options("best", 3, PLAIN), tmp_path / "out"
    outcome, ((report, content),) = reproduce(
        [target], options, out, only="FACT transe", device="cpu"
    )
    assert len(outcome.ran) == 1 + 2 * len(EFFORTS) + 1  # one seed
    rows = report["tables"][0]["rows"]
    assert [(row["strategy"], row["effort"]) for row in rows] == [
        ("upper", ""),
        *(("fresh", f"{share}%") for share in EFFORTS),
        ("fresh", "default"),
        *(("warm", f"{share}%") for share in EFFORTS),
    ]
    assert all(row["dataset"] == "FACT" for row in rows)
    taken = {row["effort"]: row["positives_share"]["mean"] for row in rows if "%" in row["effort"]}
    assert taken["100%"] == pytest.approx(100, rel=0.05) and taken["20%"] < taken["100%"]
    (axes,) = (a for a in content.pictures[0].draw().axes if a.axison)
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert list(drawn) == ["upper", "fresh", "warm"] and axes.get_xscale() == "log"
    for name in ("fresh", "warm"):
        points = sorted(
            (row["positives_share"]["mean"], row["whole_share"]["mean"])
            for row in rows
            if row["strategy"] == name and row["effort"] != "default"
        )
        shown = list(zip(*(drawn[name].get_data()), strict=True))
        assert shown == [pytest.approx(point) for point in points]
    star = next(row for row in rows if row["effort"] == "default")
    (marked,) = axes.collections[0].get_offsets().tolist()
    assert marked == pytest.approx([star["positives_share"]["mean"], star["whole_share"]["mean"]])
    assert (out / "reproduce-growth-effort-best.svg").is_file()


@pytest.mark.usefixtures("streams")
def test_an_ablation_runs_every_variant(tmp_path: Path) -> None:
    target = Ablation("ablation", "Ablation", "", {"HYBRID": ablation_rows("HYBRID")})
    options, out = Options("best", 3, (*PLAIN, "later_epochs=1")), tmp_path / "out"
    outcome, ((report, _),) = reproduce([target], options, out, device="cpu")
    assert not outcome.failed and len(outcome.ran) == len(ablation_rows("HYBRID"))
    rows = {row["variant"]: row for row in report["tables"][0]["rows"]}
    assert list(rows) == list(ablation_rows("HYBRID"))
    kept = {cell.key(): cell for cell in target.cells(options)}
    assert len(kept) == len(rows)  # no variant is another one by accident
    for run, row in zip(report["runs"], rows, strict=True):
        for change in row.partition(", ")[2].replace("divided", "components=4").split():
            key, _, value = change.partition("=")
            assert str(run["settings"][key]).removesuffix(".0") == value, row


def test_what_is_missing_is_left_out() -> None:
    options = Options("best", 2)
    for name in ("growth", "growth-effort", "ablation"):
        target = TARGETS[name]
        assert target.content(target.options(options), {}).tables == []


def test_without_upper_nothing_is_compared(tmp_path: Path, links: str) -> None:
    rows = {"upper": Cell(links, "transe", "upper"), "warm": Cell(links, "transe", "warm")}
    rings = {"ring": rows["upper"]}
    targets = [
        GrowthTable("growth", "Growth", "", {"ring": rows}),
        EffortCurves("effort", "", "", rings, {"ring": {"warm": rows["warm"]}}, [10], "warm"),
    ]
    options = Options("best", 1, ("epochs=1", "dim=4"))
    _, reports = reproduce(targets, options, tmp_path / "out", only="warm", device="cpu")
    for report, content in reports:
        for row in report["tables"][0]["rows"]:
            assert row["whole_share"]["values"] == row["positives_share"]["values"] == []
            assert row["positives"]["values"]
        assert content.pictures == []


def test_a_run_without_counts_has_no_cost() -> None:
    metrics = dict.fromkeys(("mrr", "hits@1", "hits@10"), 0.5)
    part = {"whole": metrics, "average": metrics, "learn_seconds": 2.0}
    counted = part | {"positives": {"new": 1_000_000, "old": 500_000}}
    before = Reached.of({"parts": [part, part, counted], "retention": None})
    assert before.positives is None and before.seconds == 4.0 and before.retention is None
    assert Reached.of({"parts": [part, counted], "retention": 0.5}).positives == 1.5


def test_all_kinds_of_growth_with_the_strategies_that_the_table_compares() -> None:
    options = Options("best", 3)
    keys = {
        name: {cell.key() for cell in TARGETS[name].cells(options)}
        for name in ("growth", "growth-effort", "ablation")
    }
    assert len(keys["growth"]) == len(GROWTH) * 4 * 3
    assert len(keys["growth-effort"]) == len(GROWTH) * (2 + 2 * len(EFFORTS))
    shared = keys["growth"] & keys["growth-effort"] & keys["ablation"]
    assert len(shared) == len(GROWTH) * 2  # upper and fresh with the first seed


@pytest.mark.usefixtures("streams")
def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["growth", "--device", "cpu", "--seeds", "1", "--only", "RELATION transe"]
    words += [word for text in SMALL for word in ("--set", text)]
    assert command(monkeypatch, *words) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "Kinds of growth" in shown.out and "warm" in shown.out
    assert command(monkeypatch, *words, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    written = json.loads(Path("reproduced/reproduce-growth-best.json").read_text())
    assert printed == {"reports": [written]}
    for wrong, said in (
        (["growht"], "did you mean 'growth'"),
        ([*words, "--recipe", "paper"], "no recipe 'paper' for ENTITY"),
        (["growth", "--only", "nobody"], "no cell's name contains it"),
    ):
        assert command(monkeypatch, *wrong) == 2
        assert said in capsys.readouterr().err


def test_a_stream_that_is_missing_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, "growth", "--device", "cpu") == 2
    assert "ENTITY is not on this machine" in capsys.readouterr().err
