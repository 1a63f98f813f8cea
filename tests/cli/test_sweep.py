"""`dicgrl sweep`: a recipe that `run` takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dicgrl.cli import main


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dicgrl", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code is None or isinstance(ended.value.code, int)
    return ended.value.code or 0


def test_the_command_writes_a_recipe_that_run_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"e{i}\tplus {k}\te{(i + k) % 12}\n" for i in range(12) for k in (1, 2)]
    for name, rows in {"0/train": lines[:18], "0/valid": lines[18:], "1/train": lines[18:]}.items():
        (tmp_path / "ring" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ring" / f"{name}.txt").write_text("".join(rows))
    words = ["sweep", "ring", "--strategy", "lower", "--device", "cpu", "--set", "dim=4"]
    words += ["--set", "epochs=1", "--grid", "lr=0.01,0.1"]
    assert command(monkeypatch, *words, "--out", "best.toml", "--study", "study.db") == 0
    shown = capsys.readouterr().out
    assert "ring, rotate, lower" in shown and "best.toml" in shown
    assert command(monkeypatch, *words, "--study", "study.db", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [trial["state"] for trial in found["trials"]] == ["complete", "complete"]
    run = ["run", "ring", "--strategy", "lower", "--recipe", "best.toml", "--device", "cpu"]
    assert command(monkeypatch, *run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["settings"] == found["settings"]
    assert command(monkeypatch, *words, "--out", "best.json") == 2
    assert "ends with .toml" in capsys.readouterr().err
    assert command(monkeypatch, *words, "--merged") == 2
    assert "--strategy lower" in capsys.readouterr().err


def test_the_command_says_at_once_that_there_is_nothing_to_choose_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("".join(f"e{i}\tr\te{i + 1}\n" for i in range(9)))
    words = ("sweep", str(facts), "--grid", "dim=16,32", "--set", "epochs=2", "--device", "cpu")
    assert command(monkeypatch, *words) == 2
    assert "no validation data to choose settings by; see --valid" in capsys.readouterr().err


def test_without_optuna_there_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert command(monkeypatch, "sweep", "films", "--grid", "lr=0.1", "--device", "cpu") == 2
    assert "pip install 'dicgrl[sweep]'" in capsys.readouterr().err
