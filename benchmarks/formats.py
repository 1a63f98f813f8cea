"""Reading and writing facts in each format, beside other libraries doing the same.

The same means: from a file to arrays of ids and a list of labels, and from labels to a file. Each
measurement is a process of its own; its peak of memory is what it took beyond the libraries.
Seconds of the processor count all threads, and say more where something else is at work.

    python benchmarks/formats.py [--facts 1000000] [--only parquet,tsv] [--alone] [--json FILE]

`--alone` leaves the other libraries out, as for `--facts 10000000 --only parquet --alone`. `--json`
adds to what a file holds, so that several commands fill one.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl import read_stream
from dicgrl.readers.formats import Triple, format_named

NAMES = ("tsv", "csv", "jsonl", "parquet", "feather", "nt", "ttl", "rdf")
ROLES = ["head", "relation", "tail"]
BLOCK = 1 << 16


def blocks(count: int) -> Iterator[list[Triple]]:
    """Facts by chance: a few entities have many, as in real graphs; 20 facts an entity."""
    chance = np.random.default_rng(0)
    entities = max(count // 20, 10)
    labels = np.array([f"http://example.org/entity/{i}" for i in range(entities)], dtype=object)
    relations = np.array([f"http://example.org/relation/r{i}" for i in range(200)], dtype=object)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        ends = (entities * chance.random((2, size)) ** 2).astype(int)
        kinds = relations[chance.integers(0, 200, size)]
        yield list(zip(labels[ends[0]], kinds, labels[ends[1]], strict=True))


def ours_read(path: Path) -> int:
    return read_stream(path)[0].facts


def pandas_read(path: Path) -> int:
    import pandas

    if path.suffix == ".parquet":
        frame = pandas.read_parquet(path)
    elif path.suffix == ".feather":
        frame = pandas.read_feather(path)
    elif path.suffix == ".jsonl":
        frame = pandas.read_json(path, lines=True)
    else:
        sep = "," if path.suffix == ".csv" else "\t"
        frame = pandas.read_csv(
            path, sep=sep, names=ROLES, header=None, quoting=csv.QUOTE_MINIMAL, dtype=str
        )
    ends = np.concatenate([frame["head"].to_numpy(), frame["tail"].to_numpy()])
    pandas.factorize(ends)
    pandas.factorize(frame["relation"])
    return len(frame)


def arrow_read(path: Path) -> int:
    import pyarrow as arrow
    from pyarrow import csv as arrow_csv
    from pyarrow import feather, parquet
    from pyarrow import json as arrow_json

    if path.suffix == ".parquet":
        table = parquet.read_table(path)
    elif path.suffix == ".feather":
        table = feather.read_table(path)
    elif path.suffix == ".jsonl":
        table = arrow_json.read_json(path)
    else:
        sep = "," if path.suffix == ".csv" else "\t"
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=ROLES),
            parse_options=arrow_csv.ParseOptions(delimiter=sep),
        )
    ends = arrow.chunked_array([*table["head"].chunks, *table["tail"].chunks])
    ends.dictionary_encode().unify_dictionaries()
    table["relation"].dictionary_encode().unify_dictionaries()
    return int(table.num_rows)


def rdflib_read(path: Path) -> int:
    import rdflib

    graph = rdflib.Graph()
    graph.parse(path)
    ids: dict[Any, int] = {}
    np.array([[ids.setdefault(term, len(ids)) for term in triple] for triple in graph])
    return len(graph)


def ours_write(path: Path, given: list[list[Triple]]) -> None:
    format_named(path.suffix).write(path, given)


def pandas_write(path: Path, given: list[list[Triple]]) -> None:
    import pandas

    frame = pandas.DataFrame([fact for block in given for fact in block], columns=ROLES)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="," if path.suffix == ".csv" else "\t", header=False, index=False)


def rdflib_write(path: Path, given: list[list[Triple]]) -> None:
    import rdflib

    graph = rdflib.Graph()
    for block in given:
        for fact in block:
            graph.add(tuple(map(rdflib.URIRef, fact)))
    kinds = {".nt": "nt", ".ttl": "turtle", ".rdf": "xml"}
    graph.serialize(path, format=kinds[path.suffix], encoding="utf-8")


READERS: dict[str, Callable[[Path], int]] = {
    "dicgrl": ours_read,
    "pandas": pandas_read,
    "pyarrow": arrow_read,
    "rdflib": rdflib_read,
}
WRITERS: dict[str, Callable[[Path, list[list[Triple]]], None]] = {
    "dicgrl": ours_write,
    "pandas": pandas_write,
    "rdflib": rdflib_write,
}


def peak() -> float:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(who: str, what: str, path: Path, count: int) -> dict[str, Any]:
    """Read or write once, after a small file that loads what is needed."""
    small = path.with_name(f"small{path.suffix}")
    if what == "read":
        if not small.exists():
            format_named(path.suffix).write(small, blocks(100))
        READERS[who](small)
        before, started, worked = peak(), time.perf_counter(), time.process_time()
        READERS[who](path)
    else:
        given = list(blocks(count))
        WRITERS[who](small, list(blocks(100)))
        before, started, worked = peak(), time.perf_counter(), time.process_time()
        WRITERS[who](path.with_name(f"{who}{path.suffix}"), given)
    took = time.perf_counter() - started
    worked = time.process_time() - worked
    return {
        "facts": f"{count:,} facts",
        "format": path.suffix[1:],
        "who": who,
        "what": what,
        "facts_per_s": count / took,
        "facts_per_cpu_s": count / worked,
        "peak_mb": peak() - before,
    }


def in_a_process(*arguments: Any) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)


def main() -> None:
    """Print a line for each format, library and direction."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--facts", type=int, default=1_000_000)
    options.add_argument("--only", default=",".join(NAMES))
    options.add_argument("--alone", action="store_true")
    options.add_argument("--json", type=Path, help="add to the rows of this file")
    given = options.parse_args()
    titles = f"{'facts/s':>12} {'per CPU s':>12} {'peak MB':>9}"
    print(f"{given.facts:,} facts\n{'format':8} {'':8} {'':6} {titles}")
    with tempfile.TemporaryDirectory() as place:
        for name in given.only.split(","):
            path = Path(place) / f"facts.{name}"
            format_named(name).write(path, blocks(given.facts))
            others = ["rdflib"] if name in ("nt", "ttl", "rdf") else ["pandas", "pyarrow"]
            for what, known in (("read", READERS), ("write", WRITERS)):
                for who in ["dicgrl", *([] if given.alone else others)]:
                    if who not in known or (given.alone and what == "write"):
                        continue
                    told = in_a_process(who, what, path, given.facts)
                    print(
                        f"{name:8} {who:8} {what:6} {told['facts_per_s']:12,.0f} "
                        f"{told['facts_per_cpu_s']:12,.0f} {told['peak_mb']:9,.0f}",
                        flush=True,
                    )
                    if given.json:
                        keep(given.json, told)
            path.unlink()


def keep(path: Path, row: dict[str, Any]) -> None:
    """Put a row into a file, in place of an earlier one of the same."""

    def key(each: dict[str, Any]) -> list[str]:
        return [each[name] for name in ("facts", "format", "who", "what")]

    rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    rows = [*(each for each in rows if key(each) != key(row)), row]
    path.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
