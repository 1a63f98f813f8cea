"""The peak of memory of `dicgrl run` beside what `dicgrl plan` says.

    python benchmarks/peak.py [--triples 1000000 3000000] [--model transe rotate]
        [--source parquet text] [--dim 16] [--folder DIR]

Random facts, as those of `benchmarks/intake.py`, are written as Parquet or as text (TAB between
labels such as Q1000123), and learned for one epoch; a thousand of them are ranked. Needs a system
that reports the peak of a process (not Windows).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from intake import blocks, write
from rich.console import Console
from rich.table import Table

PER_ENTITY, TESTED = 10, 1000
DICGRL = (sys.executable, "-m", "dicgrl")


def written(folder: Path, source: str, triples: int) -> Path:
    """A file of that many facts."""
    path = folder / f"{triples}.{'parquet' if source == 'parquet' else 'tsv'}"
    if source == "parquet":
        write(path, blocks(triples, PER_ENTITY))
    else:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines(blocks(triples, PER_ENTITY)))
    return path


def lines(given: Iterator[np.ndarray]) -> Iterator[str]:
    """Triples as lines of text."""
    for block in given:
        for head, relation, tail in block.tolist():
            yield f"Q{head + 1_000_000}\tP{relation}\tQ{tail + 1_000_000}\n"


def peak_of(command: list[str]) -> int:
    """The most bytes that a command had in memory.

    Raises:
        RuntimeError: It failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"failed: {' '.join(command)}")
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Measure each combination in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--triples", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--model", nargs="+", default=["transe", "rotate"])
    parser.add_argument("--source", nargs="+", default=["parquet", "text"])
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary one unless given")
    asked = parser.parse_args()
    table = Table("triples", "model", "source")
    for heading in ("peak, GB", "planned, GB", "planned / peak"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for triples in asked.triples:
            for source in asked.source:
                path = written(Path(folder), source, triples)
                for model in asked.model:
                    common = ["--model", model, "--set", "negatives=16", "--device", "cpu"]
                    size = ["--entities", str(triples // PER_ENTITY), "--triples", str(triples)]
                    how = ["--dim", str(asked.dim), "--source", source, "--no-measure", "--json"]
                    said = subprocess.check_output([*DICGRL, "plan", *common, *size, *how])
                    planned = json.loads(said)["needed_bytes"]
                    few = ["--set", "epochs=1", "--set", f"dim={asked.dim}"]
                    test = ["--test", str(1.02 * TESTED / triples)]
                    out = ["--out", str(Path(folder) / f"{model}-{source}-{triples}")]
                    peak = peak_of([*DICGRL, "run", str(path), *common, *few, *test, *out])
                    row = (f"{peak / 1e9:.2f}", f"{planned / 1e9:.2f}", f"{planned / peak:.2f}")
                    table.add_row(f"{triples:,}", model, source, *row)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
