"""A large history taken in, indexed, saved, updated and loaded: seconds and memory of each.

    python benchmarks/intake.py [--triples 1000000] [--dim 8] [--part 10000] [--folder DIR]
        [--from parquet|array]

A Parquet file of random triples whose entities have a real graph's degrees is written, of ten
triples per entity and 1,000 relations, and read back as any other. Its part is taken in without
being trained, which would say nothing of the graph; then parts of 10,000 facts are learned, saved
and loaded. Memory is that of the process: what it holds after a step, and the most so far. The run
needs some 40 bytes on disk for each triple.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from dicgrl import KnowledgeStream, Learner, read_stream
from dicgrl.common.devices import peak_memory
from dicgrl.training import FitReport

RELATIONS, PER_ENTITY, BLOCK = 1000, 10, 1 << 20


class Steps:
    """What each step took."""

    def __init__(self) -> None:
        self.table = Table()
        self.table.add_column("step")
        for heading in ("seconds", "processor s", "held GiB", "peak GiB"):
            self.table.add_column(heading, justify="right")
        self._last = time.perf_counter(), time.process_time()

    def done(self, what: str) -> None:
        """End a step."""
        now = time.perf_counter(), time.process_time()
        seconds = [f"{now[i] - self._last[i]:,.1f}" for i in range(2)]
        peak = peak_memory(torch.device("cpu")) / 2**30
        self.table.add_row(what, *seconds, f"{_held():.2f}", f"{peak:.2f}")
        print(what, *seconds, f"{_held():.2f} {peak:.2f}", flush=True)
        self._last = time.perf_counter(), time.process_time()


def _held() -> float:
    """GiB that this process holds; 0 where nothing tells."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 2**20


def blocks(triples: int) -> list[np.ndarray]:
    """Triples in blocks, [n, 3]; low ids are far more frequent than others."""
    random = np.random.default_rng(0)
    spread = np.array([triples // PER_ENTITY, RELATIONS, triples // PER_ENTITY])
    sizes = [min(BLOCK, triples - first) for first in range(0, triples, BLOCK)]
    return [(spread * random.random((size, 3)) ** 3).astype(np.int64) for size in sizes]


def write(path: Path, triples: int) -> None:
    """A Parquet file of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("head", "relation", "tail")
    schema = pa.schema([(name, pa.int64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for block in blocks(triples):
            writer.write_table(pa.table(dict(zip(names, block.T, strict=True))))


def measure(asked: argparse.Namespace, folder: Path) -> Table:
    """All steps, one after the other."""
    steps, out = Steps(), folder / "run"
    if asked.source == "parquet":
        write(folder / "facts.parquet", asked.triples)
        steps.done("written")
        stream = read_stream(folder / "facts.parquet")
    else:
        stream = KnowledgeStream.from_labels("random", [np.concatenate(blocks(asked.triples))])
    steps.done("read")
    learner = Learner(
        "transe", "fresh", dim=asked.dim, negatives=16, effort="12x", device="cpu"
    )  # fmt: skip
    with patch("dicgrl.trainers.trainer.fit", lambda *_, **__: FitReport()):
        learner.learn(stream[0])
    del stream
    gc.collect()
    steps.done("taken in and indexed")
    labels = learner.trainer.graph.entities.labels(range(2000))
    kinds = learner.trainer.graph.relations.labels(range(50))

    def facts(name: str) -> list[tuple[str, str, str]]:
        return [
            (f"{name} {i % 1000}", kinds[i % 50], labels[7 * i % 2000]) for i in range(asked.part)
        ]

    for name in "ab":
        learner.learn(facts(name))
        steps.done(f"learned {asked.part:,} facts")
    learner.save(out)
    steps.done("saved")
    learner.learn(facts("c"))
    learner.save(out)
    steps.done("learned and saved as many again")
    del learner
    gc.collect()
    steps.done("forgotten")
    learner = Learner.load(out, device="cpu")
    steps.done("loaded")
    learner.predict(head="a 1", relation=kinds[1], k=3)
    steps.done("asked")
    return steps.table


def main() -> None:
    """Measure a history of the size that was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--part", type=int, default=10_000)
    parser.add_argument("--from", dest="source", choices=("parquet", "array"), default="parquet")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary one unless given")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # a model that was not trained knows nothing
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    try:
        table = measure(asked, folder)
    finally:
        shutil.rmtree(folder)
    table.title = f"{asked.triples:,} triples, one process"
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
