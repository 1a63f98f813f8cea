"""`dicgrl reproduce` as a user meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dicgrl.cli import main
from dicgrl.research import targets as paper
from dicgrl.research.kinds import PartsTable
from dicgrl.research.rows import strategy_cells


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dicgrl", "reproduce", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code is None or isinstance(ended.value.code, int)
    return ended.value.code or 0


@pytest.fixture
def tiny(links: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The target `tiny` on a tiny stream; words of a command that takes no time."""
    monkeypatch.chdir(tmp_path)
    cells = strategy_cells(links, "transe", strategies=["lower", "upper"])
    target = PartsTable("tiny", "Tiny", "Table 0", {"Ring": cells}, "hits@10")
    monkeypatch.setitem(paper.TARGETS, "tiny", target)
    small = [word for text in ("epochs=1", "dim=4") for word in ("--set", text)]
    return ["tiny", "--device", "cpu", "--seeds", "1", *small]


def test_a_target(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, *tiny) == 0
    shown = capsys.readouterr()
    assert "Ring: per cent, W whole" in shown.out and "upper" in shown.out and shown.err == ""
    assert Path("reproduced/reproduce-tiny-best.md").is_file()


def test_a_failing_cell_is_named_and_the_others_are_kept(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dicgrl.strategies.bounds import Upper

    def later(*_: object) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(Upper, "later", later)
    assert command(monkeypatch, *tiny) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ring transe upper best seed 0 epochs=1 dim=4: RuntimeErr")
    assert shown.err.count("\n") == 1 and "lower" in shown.out and "upper" not in shown.out
    assert [p.name.split("-")[2] for p in Path("reproduced/cells").glob("*.json")] == ["lower"]


def test_mistakes_are_one_line(
    tiny: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (["tabel1"], "did you mean 'table1'"),
        ([*tiny, "--set", "dims=3"], "unknown setting 'dims'"),
        (["table4", "--set", "pace=3"], "pace has no effect on a network"),
        ([*tiny, "--set", "strength=3"], "strength has no effect with strategy lower, upper"),
        ([*tiny, "--only", "nobody"], "no cell's name contains it"),
        (["table3", "--protocol", "snapshot"], "learned part by part; none is here"),
        (["table2", "--protocol", "snapshot"], "learned part by part; none is here"),
        ([*tiny, "--recipe", "paper"], "no recipe 'paper' for data of your own"),
    ):
        assert command(monkeypatch, *words) == 2
        assert said in capsys.readouterr().err
    assert not Path("reproduced").exists()
