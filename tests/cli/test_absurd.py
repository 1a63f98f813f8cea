"""Whatever a command is given, it ends with a code, one message, and nothing half-written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import DICGRL, LINKS, SMALL, Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")

ODD = {
    "nothing": "",
    "below zero": "-1",
    "no number": "nan",
    "without bound": "inf",
    "too large for a float": "1e999",
    "thirty digits": "9" * 30,
    "five thousand digits": "9" * 5_000,
    "what a terminal obeys": "\x1b[2J",
    "no text": os.fsdecode(b"\xff"),
    "from right to left": "\u202e",
    "two lines": "a\nb",
    "markup": "[bold]x[/bold]",
    "a device": "/dev/zero",
    "a pipe": "pipe.tsv",
    "a folder": "ring",
    "no UTF-8": "bytes.tsv",
    "digits of another script": "１２",
}
HERE = "@"
QUESTION = ("--head", "e1", "--relation", "plus 1")
FACTS = "ring/0/train.txt"
COMMANDS = [
    ("predict", "plain", "--head", HERE, "--relation", "plus 1"),
    ("predict", "plain", *QUESTION, "-k", HERE),
    ("predict", "plain", *QUESTION, "--device", HERE),
    ("predict", "plain", "--about", f"{HERE}={HERE}"),
    ("predict", "plain", "--file", HERE),
    ("predict", "nodes", "--node", HERE),
    ("predict", HERE, *QUESTION),
    ("similar", "divided", "e1", "--component", HERE),
    ("similar", "nodes", HERE),
    ("score", "plain", HERE),
    ("evaluate", "plain", HERE),
    ("explain", "divided", "--triple", HERE, "plus 1", "e2"),
    ("export", HERE, "--to", "never"),
    ("compare", "plain", HERE, "--out", "never.png"),
    ("datasets", "show", HERE),
    ("datasets", "show", "ring", "--valid", HERE),
    ("datasets", "fetch", HERE),
    ("datasets", "split", HERE, "--out", "never"),
    ("datasets", "split", HERE, "--by", "time", "--out", "never"),
    ("datasets", "split", "ring", "--by", HERE, "--out", "never"),
    ("datasets", "split", "ring", "--ratios", HERE, "--out", "never"),
    ("datasets", "split", "ring", "--parts", HERE, "--out", "never"),
    ("datasets", "split", "ring", "--first", HERE, "--out", "never"),
    ("run", HERE, *LINKS, "--out", "never"),
    ("run", "ring", *LINKS, "--recipe", HERE, "--out", "never"),
    ("run", "ring", *SMALL, "--set", f"dim={HERE}", "--out", "never"),
    ("run", "ring", *LINKS, "--set", HERE, "--out", "never"),
    ("run", "ring", *LINKS, "--strategy", HERE, "--out", "never"),
    ("run", "ring", *LINKS, "--keep", HERE, "--out", "never"),
    ("learn", HERE, FACTS),
    ("learn", "plain", HERE),
    ("learn", "plain", FACTS, "--evaluate", HERE),
    ("forget", HERE, FACTS),
    ("forget", "plain", HERE),
    ("replace", "plain", FACTS, HERE),
    ("rename", "plain", "--file", HERE),
    ("merge", "plain", HERE, HERE),
    ("revise", "nodes", HERE),
    ("log", HERE),
    ("verify", HERE),
    ("diff", "plain", "1", HERE),
    ("restore", "plain", HERE),
    ("tag", "plain", "release", "--at", HERE),
    ("compact", "plain", "--keep", HERE),
    ("backup", HERE, "never"),
    ("export", "plain", "--to", "never", "--since", HERE),
    ("predict", "plain", *QUESTION, "--at", HERE),
    ("sweep", "ring", *LINKS, "--grid", HERE),
    ("sweep", "ring", *LINKS, "--grid", f"lr={HERE}"),
    ("sweep", "ring", *LINKS, "--grid", "lr=0.1", "--seeds", HERE),
    ("sweep", "ring", *LINKS, "--grid", "lr=0.1", "--out", f"{HERE}.json"),
    ("reproduce", HERE),
    ("--plugin", HERE, "info", "plain"),
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("odd", ODD)
def test_every_command_survives(cli: Cli, odd: str) -> None:
    os.mkfifo("pipe.tsv")
    Path("bytes.tsv").write_bytes(bytes(range(256)) * 4)
    before = sorted(Path().iterdir())
    for number, command in enumerate(COMMANDS):
        if (number + list(ODD).index(odd)) % 3:  # each meets a third of them: that is quick
            continue
        outcome = cli(*(word.replace(HERE, ODD[odd]) for word in command))
        # Some of it is a good answer to some commands: `ring` is a folder that can be read.
        good = outcome.code == 0 and (odd, command[0]) != ("a device", "score")
        assert good or (outcome.code in (1, 2) and outcome.err), (command, outcome)
        assert not re.search("[\x00-\x09\x0b-\x1f]", outcome.err), command
        if outcome.code:
            assert sorted(Path().iterdir()) == before, command


@pytest.mark.parametrize("verb", ["score", "evaluate", "predict"])
def test_a_device_and_a_pipe_that_nobody_writes_to(cli: Cli, verb: str) -> None:
    os.mkfifo("pipe")
    words = (verb, "plain", "--file") if verb == "predict" else (verb, "plain")
    refused(cli(*words, "/dev/zero"), "/dev/zero: is a device")
    refused(cli(*words, "pipe"), "pipe: the file is empty")


@pytest.mark.parametrize("way", ["-", "/dev/stdin"])
def test_a_pipe_without_end_is_refused(way: str) -> None:
    """As of `yes | dicgrl score RUN -`."""
    endless = subprocess.Popen(
        [sys.executable, "-c", "while True: print('e1\\tplus 1\\te2\\n' * 10_000)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dicgrl", "score", "plain", way, "--device", "cpu"],
            stdin=endless.stdout,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "DICGRL_MAX_UNPACKED": "0.01"},
        )
    finally:
        endless.kill()
        endless.wait()
        assert endless.stdout is not None
        endless.stdout.close()
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: (standard input|/dev/stdin): holds more than .*\n", done.stderr)


def test_a_run_that_is_asked_in_vain_is_as_it_was(cli: Cli) -> None:
    """What is refused in the middle of many questions leaves no answers in files."""
    before = sorted(Path().iterdir())
    refused(cli("run", "ring", *DICGRL, "--set", "weight_decay=1e308"), "at most 1e+38")
    refused(cli("run", "circles", "--set", "layers=1000000"), "layers=1000000: expected 1 to 1000")
    refused(cli("run", "ring", *SMALL, "--set", "dim=" + "9" * 400), "at most 1e+12")
    assert sorted(Path().iterdir()) == before


def test_a_name_that_is_too_long_is_a_mistake(cli: Cli) -> None:
    refused(cli("run", "x" * 300, *LINKS), "xxx", "File name too long")
