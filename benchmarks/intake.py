"""A large history taken in, indexed, saved, updated and loaded: seconds and memory of each.

    python benchmarks/intake.py [--triples 1000000] [--dim 8] [--part 10000] [--folder DIR]
        [--per-entity 10] [--from parquet|array] [--at-most GIB] [--json FILE]

A Parquet file of random triples whose entities have a real graph's degrees is written, of ten
triples per entity and 1,000 relations, and read back as any other. Its part is taken in without
being trained, which would say nothing of the graph; then updates of 10,000 facts are learned, the
learner is saved and loaded. Memory is that of the process: what it holds after a step, and the most
in it. With `--at-most` the run ends where it holds more. It needs some 80 bytes on disk for each
triple. Where DICGRL_SPILL names a folder, large arrays of the graph are files there. The file of
results has a row for each size that was measured.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from dicgrl import KnowledgeStream, Learner, read_stream
from dicgrl.strategies.base import Learned, Strategy

RELATIONS, BLOCK = 1000, 1 << 20
GIB = 2**30


class Steps:
    """What each step took."""

    def __init__(self) -> None:
        self.taken: dict[str, dict[str, float]] = {}
        self._begin()

    def _begin(self) -> None:
        with contextlib.suppress(OSError):  # Linux: the peak of this step alone
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._last = time.perf_counter(), time.process_time()

    def done(self, what: str) -> None:
        """End a step."""
        now = time.perf_counter(), time.process_time()
        said = _status()
        step = {
            "seconds": round(now[0] - self._last[0], 2),
            "processor_seconds": round(now[1] - self._last[1], 2),
            "held_gib": round(said.get("VmRSS", 0) / GIB, 2),
            "peak_gib": round(said.get("VmHWM", 0) / GIB, 2),
            "files_gib": round(said.get("RssFile", 0) / GIB, 2),
        }
        self.taken[what] = step
        print(what, *step.values(), flush=True)
        self._begin()

    def table(self) -> Table:
        """All steps."""
        table = Table("step")
        for heading in ("seconds", "processor s", "held GiB", "peak GiB", "of it files"):
            table.add_column(heading, justify="right")
        for what, step in self.taken.items():
            table.add_row(what, *(f"{number:,.2f}" for number in step.values()))
        return table


def _status() -> dict[str, int]:
    """Memory of this process in bytes, by the system's names; nothing where it does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    sizes = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) << 10 for name, size, _ in sizes}


def guard(at_most: float, folder: Path) -> None:
    """End this process, and remove its folder, where it holds more GiB than that."""

    def watch() -> None:
        while True:
            if (held := _status().get("VmRSS", 0)) > at_most * GIB:
                print(f"stopped: {held / GIB:.2f} GiB are held", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
                os._exit(3)
            time.sleep(0.1)

    threading.Thread(target=watch, daemon=True).start()


def blocks(triples: int, per_entity: float) -> Iterator[np.ndarray]:
    """Triples in blocks, [n, 3]; low ids are far more frequent than others."""
    random = np.random.default_rng(0)
    entities = int(triples / per_entity)
    spread = np.array([entities, RELATIONS, entities])
    for first in range(0, triples, BLOCK):
        size = min(BLOCK, triples - first)
        yield (spread * random.random((size, 3)) ** 3).astype(np.int64)


def write(path: Path, triples: Iterator[np.ndarray]) -> None:
    """A Parquet file of triples in blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("head", "relation", "tail")
    schema = pa.schema([(name, pa.int64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for block in triples:
            writer.write_table(pa.table(dict(zip(names, block.T, strict=True))))


def measure(asked: argparse.Namespace, folder: Path, steps: Steps) -> dict[str, int]:
    """All steps, one after the other; gives the size of the graph."""
    out, given = folder / "run", blocks(asked.triples, asked.per_entity)
    if asked.source == "parquet":
        write(folder / "facts.parquet", given)
        steps.done("written")
        stream = read_stream(folder / "facts.parquet")
    else:
        every = np.concatenate(list(given))
        stream = KnowledgeStream.from_labels("random", [every])
        del every
    steps.done("read")
    learner = Learner(
        "transe", "fresh", dim=asked.dim, negatives=16, effort="12x", device="cpu"
    )  # fmt: skip
    with patch.object(Strategy, "first", lambda *_: Learned()):
        learner.learn(stream[0])
    del stream
    gc.collect()
    steps.done("taken in")
    graph = learner.trainer.graph
    labels, kinds = graph.entities.labels(range(2000)), graph.relations.labels(range(50))
    size = {"triples": len(graph.train), "entities": len(graph.entities)}
    del graph

    def facts(name: str) -> list[tuple[str, str, str]]:
        return [
            (f"{name} {i % 1000}", kinds[i % 50], labels[7 * i % 2000]) for i in range(asked.part)
        ]

    for name, which in zip("abc", ("first", "second", "third"), strict=True):
        learner.learn(facts(name))
        steps.done(f"{which} update")
    learner.save(out)
    steps.done("saved")
    learner.learn(facts("d"))
    learner.save(out)
    steps.done("update and save")
    del learner
    gc.collect()
    steps.done("forgotten")
    learner = Learner.load(out, device="cpu")
    steps.done("loaded")
    learner.learn(facts("e"))
    steps.done("update once loaded")
    learner.predict(head="a 1", relation=kinds[1], k=3)
    steps.done("asked")
    return size


def main() -> None:
    """Measure a history of the size that was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--per-entity", type=float, default=10, help="triples of each, about")
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--part", type=int, default=10_000)
    parser.add_argument("--from", dest="source", choices=("parquet", "array"), default="parquet")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary one unless given")
    parser.add_argument("--at-most", type=float, help="GiB of memory; the run ends beyond")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # a model that was not trained knows nothing
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
    folder, steps = Path(tempfile.mkdtemp(dir=asked.folder)), Steps()
    if asked.at_most:
        guard(asked.at_most, folder)
    try:
        size = measure(asked, folder, steps)
    finally:
        shutil.rmtree(folder)
    table = steps.table()
    table.title = f"{asked.triples:,} triples, one process"
    Console(width=120).print(table)
    if asked.json:
        found = json.loads(asked.json.read_text("utf-8")) if asked.json.exists() else []
        found = [other for other in found if other["given"] != asked.triples]
        found.append({"given": asked.triples, **size, "dim": asked.dim} | steps.taken)
        found.sort(key=lambda row: row["given"])
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
