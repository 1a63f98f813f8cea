"""`dicgrl reproduce ckge` on a tiny stream: rows, protocols, what was published, what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dicgrl import write_stream
from dicgrl.datasets import growth as known
from dicgrl.datasets.locate import cache_folder
from dicgrl.errors import UserError
from dicgrl.recipes import load_recipe, published_numbers
from dicgrl.research.cells import load_cell
from dicgrl.research.ckge import Rivals, equal_rows, rival_rows
from dicgrl.research.job import reproduce
from dicgrl.research.target import Options
from dicgrl.research.targets import targets
from tests.growing import knowledge_stream

STREAMS = ("ENTITY", "RELATION", "FACT", "HYBRID")
SMALL = ("epochs=2", "dim=8", "batch=16", "negatives=4", "validate_every=1")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rivals:
    """The target on one stream."""
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    stream = knowledge_stream()
    write_stream(stream, cache_folder() / "ENTITY")
    splits = ("train", "valid", "test")
    counts = {split: tuple(len(getattr(part, split)) for part in stream) for split in splits}
    monkeypatch.setitem(known.LKGE_DATASETS, "ENTITY", known.LKGEDataset("ENTITY", "", counts))
    return Rivals("ckge", "Rivals", "", ("ENTITY",))


def test_a_recipe_that_no_row_would_follow_is_refused(tiny: Rivals, tmp_path: Path) -> None:
    options = Options(seeds=1, recipe="paper", changes=SMALL)
    with pytest.raises(UserError, match="leave --recipe out"):
        reproduce([tiny], options, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_every_row_is_measured_by_both_protocols(tiny: Rivals, tmp_path: Path) -> None:
    options = Options(seeds=1, changes=SMALL)
    outcome, reports = reproduce([tiny], options, tmp_path / "out", device="cpu")
    assert not outcome.failed
    ((report, content),) = reports
    told = [
        ("published", "snapshot"), ("published", "seen"), ("care", "snapshot"), ("care", "seen")
    ]  # fmt: skip
    assert len(content.tables) == 4
    for (group, protocol), table in zip(told, content.tables, strict=True):
        assert group in table.title and f"protocol {protocol}" in table.title
        rows = {row["strategy"]: row for row in table.data}
        expected = rival_rows("ENTITY") if group == "published" else equal_rows("ENTITY")
        assert list(rows) == list(expected)
        for label, row in rows.items():
            strategy = label.partition(",")[0]
            published = published_numbers("ENTITY", strategy).get("mrr")
            assert row["whole"]["mrr"]["paper"] == (published if protocol == "snapshot" else None)
            suffix = "_snapshot" if protocol == "snapshot" else ""
            recipe = "published" if group == "published" else "best"
            results = results_of(tiny, options, tmp_path / "out", recipe, label)
            for pooled in ("whole", "average"):
                for metric in ("mrr", "hits@1", "hits@10"):
                    value = results["parts"][-1][pooled][metric + suffix]
                    assert row[pooled][metric]["mean"] == pytest.approx(100 * value)
            assert row["positives"]["mean"] > 0 and row["seconds"]["mean"] > 0
    assert "snapshot" in " ".join(report["notes"])
    kept = reproduce([tiny], options, tmp_path / "out", device="cpu")[0]
    assert not kept.ran and len(set(kept.kept)) == len(outcome.ran)


def results_of(target: Rivals, options: Options, out: Path, recipe: str, row: str) -> Any:
    strategy, _, change = row.partition(", ")
    (cell,) = (
        cell
        for cell in target.cells(options)
        if (cell.recipe, cell.strategy) == (recipe, strategy)
        and (recipe == "best" or cell.changes == ((change,) if change else ()) + SMALL)
    )
    done = load_cell(out, cell)
    assert done is not None
    return done.results


@pytest.mark.parametrize("dataset", STREAMS)
def test_rivals_have_the_settings_that_were_published(dataset: str) -> None:
    for name in ("lkge", "incde", "fastkge", "lower"):
        settings = load_recipe("published", dataset, "transe", strategy=name).settings
        assert (settings.dim, settings.negatives, settings.margin) == (200, 10, 8.0)
        assert settings.normalise and settings.inverses and settings.known_negatives
        assert (settings.loss, settings.moments, settings.validate_on) == (
            "meanmargin",
            "new",
            "part",
        )
        # Facts in both directions: 2,048 of LKGE and 1,024 of the others.
        assert settings.batch == (1024 if name in ("lkge", "lower") else 512)
    assert settings.patience == 3
    incde = load_recipe("published", dataset, "transe", strategy="incde").settings
    assert (incde.patience, incde.least_epochs, incde.distil, incde.distil_late) == (
        5,
        32,
        0.01,
        0.1,
    )
    lkge = load_recipe("published", dataset, "transe", strategy="lkge").settings
    assert lkge.reconstruction == (1.0 if dataset == "FACT" else 0.1)


def test_equal_care_is_as_many_numbers_the_same_start_and_our_loss() -> None:
    cells = equal_rows("ENTITY")
    every = {label: cell.settings().settings for label, cell in cells.items()}
    fresh = every["fresh"]
    for label, settings in every.items():
        for name in ("dim", "loss", "negatives", "lr", "epochs", "batch", "weighting"):
            assert getattr(settings, name) == getattr(fresh, name), (label, name)
        assert label == "upper" or settings.start == "neighbours"


def test_published_numbers_are_those_of_the_table() -> None:
    means = {
        name: sum(published_numbers(stream, name)["mrr"] for stream in STREAMS) / 4
        for name in ("lkge", "incde")
    }
    assert means == {"lkge": pytest.approx(21.1, abs=0.05), "incde": pytest.approx(22.3, abs=0.05)}
    assert published_numbers("cora") == {} and published_numbers("ENTITY", "fastkge") == {}


def test_it_is_a_target_of_its_own() -> None:
    (target,) = targets("ckge")
    assert len(target.cells(Options(seeds=1))) == 4 * (9 + 11)
    assert {cell.protocol for cell in target.cells(Options(seeds=1))} == {"snapshot"}
