"""The commands and the code of docs/tutorial.md, as they are printed there."""

from __future__ import annotations

import random
import re
import shlex
import sys
from pathlib import Path

import pytest

from dicgrl.cli import main

TEXT = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ dicgrl (.*)$", TEXT, re.MULTILINE)
QUICK = ("--set", "dim=8", "--set", "epochs=2", "--set", "batch=32")


@pytest.fixture
def village(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the page speaks of: people of some towns and where they work."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(3)
    people, towns, firms = (
        [f"{kind}{i}" for i in range(12)] for kind in ("person", "town", "firm")
    )
    facts = [(person, "lives in", chance.choice(towns)) for person in people]
    facts += [(firm, "seat", chance.choice(towns)) for firm in firms]
    facts += [(person, "works for", chance.choice(firms)) for person in people]
    facts += [(person, "knows", chance.choice(people)) for person in people for _ in range(3)]
    new = [("newcomer", "lives in", "town3"), ("newcomer", "knows", "person5")]
    for name, rows in {
        "facts.tsv": facts,
        "tuesday.tsv": new,
        "wednesday.tsv": [(person, "knows", "newcomer") for person in people],
        "wrong.tsv": facts[4:6],
        "old.tsv": facts[6:7],
        "new.tsv": [(facts[6][0], "lives in", "village")],
        "candidates.tsv": facts[:3],
        "stream/0.tsv": facts,
        "stream/1.tsv": new,
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.usefixtures("village")
def test_every_command_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(COMMANDS) == 20
    for command in COMMANDS:
        words = shlex.split(command)
        quick = (*QUICK, "--device", "cpu") if words[0] == "run" else ()
        monkeypatch.setattr(sys, "argv", ["dicgrl", *words, *quick])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code or 0) == 0, (command, said.err)
        assert said.out


@pytest.mark.usefixtures("village")
def test_the_code_works(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(code, {})
    assert len(capsys.readouterr().out.splitlines()) == 3
