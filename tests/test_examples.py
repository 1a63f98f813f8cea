"""The examples run; each is loaded from its file, as a reader would start it."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

from dicgrl.models import Scorer
from dicgrl.settings import Settings
from dicgrl.strategies import Strategy
from tests.tiny import ring

pytestmark = pytest.mark.usefixtures("_small_films")
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def _small_films(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples learn a stream of 25 entities in place of the films."""
    monkeypatch.setattr("dicgrl.load_stream", lambda _: ring())


def test_pairre(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scorer, "registry", dict(Scorer.registry))
    example = run_path(str(EXAMPLES / "pairre.py"))
    found = example["main"](epochs=2)
    assert set(found) == {"plain", "8 components"}
    assert all(0 <= value <= 1 for value in found.values())  # two epochs are too few to learn
    assert Settings("pairre").spread == 0.1
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"pairre, {form}: test H@10 {value:.3f}" for form, value in found.items()]


def test_newcomers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "registry", dict(Strategy.registry))
    example = run_path(str(EXAMPLES / "newcomers.py"))
    found = example["main"](epochs=50)
    assert list(found) == ["frozen", "lower", "newcomers", "remembering"]
    others = [found["frozen"], found["lower"]]
    for own in ("newcomers", "remembering"):
        assert found[own] not in others  # it is another one
    assert Settings("transe", "newcomers").settle_epochs == 0
    assert {"budget", "strength"} <= Settings("gat", "remembering").as_dict().keys()
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(found)


def test_every_example_is_tested() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
