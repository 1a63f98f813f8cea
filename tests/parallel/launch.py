"""Processes that `torchrun` starts, as a user does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def command(module: str, *words: str, ranks: int = 2, restarts: int = 0) -> list[str]:
    """The command line of `torchrun`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of_torchrun = ["--nproc-per-node", str(ranks), "--master-port", str(port)]
    of_torchrun += ["--max-restarts", str(restarts), "--monitor-interval", "0.05"]
    return [sys.executable, "-m", "torch.distributed.run", *of_torchrun, "-m", module, *words]


def environment() -> dict[str, str]:
    """That of this process, where the package and the tests are found."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def torchrun(
    module: str, *words: str, ranks: int = 2, restarts: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module in several processes and wait for their end."""
    return subprocess.run(
        command(module, *words, ranks=ranks, restarts=restarts),
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment(),
        text=True,
        timeout=300,
    )
