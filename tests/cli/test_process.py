"""`dicgrl` as a process: version, help, pipes, terminals, full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dicgrl
import dicgrl.jobs.sweep
from dicgrl.cli import app, main
from tests.cli.helpers import Cli, Outcome, command, write

pytestmark = pytest.mark.usefixtures("own_folder")


def shown(outcome: Outcome) -> dict[str, Any]:
    """The one JSON object that a command printed."""
    assert outcome.code == 0 and outcome.err == ""
    description: dict[str, Any] = json.loads(outcome.out)
    return description


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"dicgrl {dicgrl.__version__}\n"


def test_the_package_runs_as_a_module() -> None:
    result = command("--help")
    assert result.returncode == 0 and result.stderr == ""
    assert "Usage:" in result.stdout and "datasets" in result.stdout


def test_the_command_is_installed() -> None:
    [script] = entry_points(group="console_scripts", name="dicgrl")
    assert script.load() is main


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_the_verbs(flag: str) -> None:
    result = CliRunner().invoke(app, ["datasets", flag])
    assert result.exit_code == 0
    assert all(verb in result.stdout for verb in ("show", "fetch", "split"))


def test_a_mistake_of_a_real_process() -> None:
    write("bad.tsv", "a\tr\tb", "c\tr")
    result = command("datasets", "show", "bad.tsv")
    assert result.returncode == 2 and result.stdout == ""
    message = "bad.tsv:2: expected 3 fields separated by TAB, found 2: 'c\\tr'"
    assert result.stderr == f"error: {message}\n"


@pytest.mark.parametrize("arguments", [["show", "films"], ["show", "films", "--json"], []])
def test_a_pipe_that_nobody_reads(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert result.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_a_closed_output() -> None:
    script = f'exec "{sys.executable}" -m dicgrl datasets show films >&-'
    result = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 0 and result.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", "show", "films"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert result.returncode == 1
    assert result.stderr.startswith("error: ") and "space" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
    ids=["ascii", "C"],
)
def test_a_terminal_without_unicode(variables: dict[str, str]) -> None:
    write("bär/0.tsv", "a\tr\tb")
    for arguments in (["show", "./bär"], ["split", "film-genres", "--out", "ö.npz"], []):
        result = subprocess.run(
            [sys.executable, "-m", "dicgrl", "datasets", *arguments],
            capture_output=True,
            timeout=60,
            env={**os.environ, **variables},
        )
        assert result.returncode == 0 and result.stderr == b""
        assert not any(box.encode() in result.stdout for box in "│┃━")
        Path("ö.npz").unlink(missing_ok=True)
    missing = command("datasets", "show", "./bär/no", **variables)
    assert missing.returncode == 2 and "no such file or folder" in missing.stderr


def test_a_warning_is_one_line(cli: Cli) -> None:
    file = write("facts.tsv", "Alien\ttype\tfilm", "Alien\tgenre\thorror")
    for outcome in (cli("datasets", "show", file, "--json"), cli("datasets", "show", file)):
        assert outcome.code == 0 and outcome.out
        assert outcome.err == (
            "warning: facts.tsv:1: 'Alien type film' is taken for a fact; if it is a "
            "header, name the columns head, relation, tail\n"
        )
    process = command("datasets", "show", file)
    assert process.returncode == 0 and process.stderr == outcome.err
