"""Scoring functions and strategies that a file brings to the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dicgrl.cli import main
from dicgrl.models import Scorer
from dicgrl.strategies import Strategy
from tests.tiny import (
    write_ring,
)

PLUGIN = """
from dicgrl.models import Scorer
from dicgrl.strategies import Learned, Strategy

class Agreement(Scorer, name="agreement-of-the-plugin"):
    def score(self, head, relation, tail):
        return (head * relation * tail).sum(-1)

class Nothing(Strategy, name="nothing-of-the-plugin"):
    def later(self, run, monitor):
        return Learned()
"""


TAKEN = """
from dicgrl.models import Scorer

class Other(Scorer, name="transe"):
    pass
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a plugin brings is known to no other test."""
    before = [(registry, dict(registry)) for registry in (Scorer.registry, Strategy.registry)]
    yield
    for registry, known in before:
        for name in registry.keys() - known.keys():
            del registry[name]


def called(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["dicgrl", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_file_brings_a_model_and_a_strategy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ring, plugin, run = write_ring(tmp_path / "ring"), tmp_path / "mine.py", str(tmp_path / "run")
    plugin.write_text(PLUGIN, encoding="utf-8")
    names = ("--model", "agreement-of-the-plugin", "--strategy", "nothing-of-the-plugin")
    words = ("run", str(ring), *names, "--set", "dim=8", "--set", "epochs=2", "--out", run)
    assert called(*words, monkeypatch=monkeypatch) == 2
    assert "unknown strategy 'nothing-of-the-plugin'" in capsys.readouterr().err
    before = ("--plugin", str(plugin))
    assert called(*before, *words, "--json", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["strategy"] == "nothing-of-the-plugin"
    asked = ("predict", run, "--head", "e1", "--relation", "plus 1", "--json")
    assert called(*asked, monkeypatch=monkeypatch) == 0
    assert len(json.loads(capsys.readouterr().out)) == 10


@pytest.mark.parametrize(
    ("name", "content", "mentioned"),
    [
        ("there.txt", "", "no such Python file"),
        ("broken.py", "1 / 0", "ZeroDivisionError: division by zero"),
        ("wrong.py", "def", "SyntaxError"),
        ("taken.py", TAKEN, "model 'transe' is"),
    ],
)
def test_a_file_that_fails_is_one_message(
    name: str,
    content: str,
    mentioned: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    place = str(tmp_path / name)
    assert called("--plugin", place, "datasets", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert place in said.replace("\n", "") and mentioned in said and "Traceback" not in said
