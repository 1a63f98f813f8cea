"""Runs a test module in a process of its own, such as by Triton's interpreter.

Triton decides at import whether it interprets.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN = "only 0-dimensional arrays can be converted"  # Triton 3.6 beside NumPy 2.5, in any kernel


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
    if done.returncode and BROKEN in done.stderr:
        pytest.skip("this Triton's interpreter does not work with this NumPy")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
