from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dicgrl.cli import main
from tests.cli.helpers import DICGRL, DIVIDED_NODES, LINKS, Cli, Outcome
from tests.tiny import write_circles, write_growing_circles, write_ring

_PICTURES = (
    "dicgrl.report.curves.draw_curves",
    "dicgrl.report.reliability_picture.draw_reliability",
)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Run `dicgrl` in this process, exit code included."""

    def run(*words: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["dicgrl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return Outcome(ended.value.code or 0, captured.out, captured.err)

    return run


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of one's own."""
    for name in ("FORCE_COLOR", "DICGRL_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def real_curves() -> None:
    """For tests that look at pictures: they are drawn."""


@pytest.fixture(autouse=True)
def _quick_curves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture takes half a second, and most tests do not look at any."""
    if "real_curves" not in request.fixturenames:
        for picture in _PICTURES:
            monkeypatch.setattr(picture, _stand_in)


def _stand_in(_: object, path: Path) -> None:
    path.write_bytes(b"\x89PNG")


TRANSE = ("--model", "transe")


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams and a run of each kind, made once by the command line; do not change them."""
    place = tmp_path_factory.mktemp("trained")
    write_ring(place / "ring")
    write_circles(place / "circles")
    (place / "growing").mkdir()
    write_growing_circles(place / "growing")
    (place / "ring" / "labels.tsv").write_text("e1\tNumber One\ne3\tNumber Three\n")
    with pytest.MonkeyPatch.context() as patch:
        for picture in _PICTURES:
            patch.setattr(picture, _stand_in)
        for words in (
            ("ring", *TRANSE, *DICGRL, "--out", place / "divided"),
            ("ring", *TRANSE, *LINKS, "--strategy", "lower", "--out", place / "plain"),
            ("circles", *DIVIDED_NODES, "--out", place / "nodes"),
            ("growing/circles", *DIVIDED_NODES, "--out", place / "begun"),
            ("ring", *TRANSE, *LINKS, "--merged", "--out", place / "merged"),
        ):
            source, *options = words
            patch.setattr(sys, "argv", ["dicgrl", "run", f"{place / source}", *map(str, options)])
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
    return place


@pytest.fixture
def trained_runs_here(
    trained_runs: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work in a folder of one's own, with the streams and trained runs in it."""
    monkeypatch.setenv("COLUMNS", "200")
    for path in trained_runs.iterdir():
        (own_folder / path.name).symlink_to(path)
