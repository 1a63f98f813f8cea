"""What the tests of the command line share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

SMALL = ("--device", "cpu", "--set", "epochs=2")
LINKS = (*SMALL, "--set", "dim=8", "--set", "batch=16")
DIVIDED = (*LINKS, "--set", "components=4", "--set", "top=2")
# The default recipes have dozens of epochs for later parts of dicgrl.
BRIEF = ("--set", "later_epochs=2", "--set", "arrive_epochs=2")
DICGRL = (*DIVIDED, *BRIEF, "--strategy", "dicgrl")
NODES = (*SMALL, "--set", "hidden=4")
DIVIDED_NODES = (*NODES, "--set", "later_epochs=2", "--strategy", "dicgrl")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dicgrl", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **variables},
    )


def refused(outcome: Outcome, *mentioned: str, code: int = 2, one_line: bool = True) -> None:
    """A message on stderr that mentions what it should, and nothing on stdout."""
    assert (outcome.code, outcome.out) == (code, ""), outcome
    for words in mentioned:
        assert words in outcome.err
    assert "Traceback" not in outcome.err
    if one_line and outcome.err.startswith("error: "):
        assert outcome.err.count("\n") == 1


def write(path: str, *rows: str) -> str:
    """Write lines to a file, in folders that are made; gives its path."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def tree() -> dict[str, bytes | None]:
    """Everything in the working directory, hidden files included."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def graph_file(path: str = "graph.tsv") -> str:
    """Write a graph of 40 entities and three relations; gives its path."""
    generator = np.random.default_rng(0)
    pairs = {tuple(pair) for pair in generator.integers(0, 40, (400, 2)).tolist()}
    return write(path, *(f"e{a}\tr{(a + b) % 3}\te{b}" for a, b in sorted(pairs)))
