"""Runs a test module in a process of its own, such as by Triton's interpreter.

Triton decides at import whether it interprets.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def interpreted(module: str) -> list[str]:
    """Lines that a module prints when it is run on the CPU by the interpreter."""
    return printed(module, TRITON_INTERPRET="1")


def printed(module: str, **environment: str) -> list[str]:
    """Lines that a module prints when it is run without a GPU; it must succeed."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
