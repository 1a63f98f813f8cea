"""Single questions over HTTP under load, beside the plainest service around PyKEEN.

    python benchmarks/serve_load.py [--device cpu|cuda] [--dim 100] [--askers 1,8,32]
        [--seconds 8] [-k 10] [--batch 1] [--json FILE]

Both serve the same graph (FB15k-237 where its archive is in DICGRL_DATA, else a generated one of as
many entities, relations and triples) with TransE of the same length on the same machine; whether
vectors were trained does not matter for the cost. PyKEEN: one FastAPI endpoint that calls
`predict_target` and answers with the first k labels and scores. Askers are threads of another
process, which ask one question after the other; `--batch` asks so many in one request, of dicgrl
alone. Times include the way there and back. `while learning` is the same while another client
writes a fact every 50 ms and versions are committed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

TOKEN = "benchmark"
BRIEF: dict[str, Any] = {"epochs": 1, "batch": 30_000, "negatives": 1, "validate_on": "none"}
Question = tuple[str, str]
Labels = np.ndarray[Any, np.dtype[np.str_]]


def triples_of() -> Labels:
    """Labelled triples, [n, 3]."""
    from dicgrl.datasets import load_stream
    from dicgrl.errors import DicgrlError
    from dicgrl.graph import KnowledgeStream

    try:
        stream = load_stream("FB15k-237")
        assert isinstance(stream, KnowledgeStream)
        return np.concatenate(
            [
                np.stack([np.array(v.labels(part.train[:, at])) for at, v in enumerate(columns)], 1)
                for part in stream
                for columns in [(part.entities, part.relations, part.entities)]
            ]
        )
    except DicgrlError:
        random = np.random.default_rng(0)
        sizes = (14_541, 237, 14_541)
        return np.stack([random.integers(size, size=272_115).astype(str) for size in sizes], 1)


def save_run(triples: Labels, dim: int, folder: Path) -> None:
    from dicgrl import Learner

    learner = Learner("transe", "fresh", device="cpu", dim=dim, **BRIEF)
    learner.learn(list(map(tuple, triples)))
    learner.save(folder)


PYKEEN = """
import logging, sys, warnings
logging.disable(logging.WARNING); warnings.filterwarnings("ignore")
import numpy, torch, uvicorn
from fastapi import FastAPI
from pykeen.models import TransE
from pykeen.predict import predict_target
from pykeen.triples import TriplesFactory

place, device = sys.argv[1:3]
dim, port, k = map(int, sys.argv[3:])
factory = TriplesFactory.from_labeled_triples(numpy.load(place))
model = TransE(triples_factory=factory, embedding_dim=dim, scoring_fct_norm=1).to(device).eval()
app = FastAPI()

@app.get("/predict")
def predict(head: str, relation: str):
    found = predict_target(model, head=head, relation=relation, triples_factory=factory).df
    return found.head(k)[["tail_label", "score"]].to_dict("records")

uvicorn.run(app, port=port, log_level="warning", access_log=False)
"""


class Served(NamedTuple):
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int

    def busy(self) -> float:
        """Processor seconds so far, of all its threads."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return math.nan
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(words: list[str], port: int, threads: int) -> Iterator[Served]:
    """A server that answers at a port."""
    told = {**os.environ, "OMP_NUM_THREADS": str(threads), "DICGRL_TOKEN": TOKEN}
    process = subprocess.Popen(words, env=told, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 300
        while True:
            assert process.poll() is None and time.monotonic() < until, "the server does not start"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield Served(process, port)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def ask(port: int, questions: Sequence[Question], batch: int, k: int, until: float) -> list[float]:
    """Seconds of each answer; questions one after the other until a time. A batch of 0: PyKEEN."""
    from urllib.parse import urlencode

    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    client.connect()
    assert client.sock is not None
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found, at = [], 0
    while time.monotonic() < until:
        some = [questions[(at + i) % len(questions)] for i in range(max(batch, 1))]
        at += len(some)
        begun = time.perf_counter()
        if batch:
            asked = [{"head": head, "relation": relation} for head, relation in some]
            body = json.dumps({"questions": asked, "k": k})
            client.request("POST", "/predict", body)
        else:
            query = urlencode({"head": some[0][0], "relation": some[0][1]})
            client.request("GET", f"/predict?{query}")
        answer = client.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        found.append(time.perf_counter() - begun)
    return found


def asking(
    port: int,
    questions: Sequence[Question],
    batch: int,
    k: int,
    askers: int,
    seconds: float,
    out: Any,
) -> None:
    """A process of askers."""
    until = time.monotonic() + seconds
    found: list[float] = []

    def one(number: int) -> None:
        mine = questions[number::askers]
        found.extend(ask(port, mine, batch, k, until))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(askers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(found)


def measured(
    server: Served, questions: Sequence[Question], batch: int, k: int, askers: int, seconds: float
) -> dict[str, float]:
    """Questions a second, and milliseconds that half and 99 of 100 requests take at most.

    On a machine that has other work, the processor time of the server tells more: `busy_ms` of a
    question.
    """
    context = multiprocessing.get_context("spawn")
    for length in (min(2.0, seconds), seconds):  # the first is for warming up
        out = context.Queue()
        given = (server.port, questions, batch, k, askers, length, out)
        busy = server.busy()
        child = context.Process(target=asking, args=given)
        child.start()
        found = np.array(out.get())
        child.join()
        busy = server.busy() - busy
    return {
        "per_second": len(found) * max(batch, 1) / seconds,
        "median_ms": 1e3 * float(np.median(found)),
        "p99_ms": 1e3 * float(np.percentile(found, 99)),
        "busy_ms": 1e3 * busy / (len(found) * max(batch, 1)),
    }


@contextmanager
def writing(port: int) -> Iterator[list[int]]:
    """Facts arrive all the time; gives the versions before and after."""
    ended = threading.Event()

    def write() -> None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        number = 0
        while not ended.is_set():
            fact = [f"newcomer {number}", "likes", f"newcomer {number // 2}"]
            headers = {"Authorization": f"Bearer {TOKEN}"}
            client.request("POST", "/facts", json.dumps({"facts": [fact]}), headers)
            answer = client.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            number += 1
            ended.wait(0.05)

    versions = [version_at(port)]
    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield versions
    finally:
        ended.set()
        thread.join()
        versions.append(version_at(port))


def version_at(port: int) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", "/health")
    return int(json.loads(client.getresponse().read())["version"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--askers", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1, help="questions in a request to dicgrl")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch, in each server")
    parser.add_argument("--only", choices=["", "dicgrl"], default="")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    askers = [int(number) for number in asked.askers.split(",")]
    triples = triples_of()
    random = np.random.default_rng(1)
    some = triples[random.integers(len(triples), size=2000)]
    questions = [(str(head), str(relation)) for head, relation, _ in some]
    rows: list[dict[str, Any]] = []

    def row(name: str, server: Served, batch: int, count: int) -> dict[str, Any]:
        found = measured(server, questions, batch, asked.k, count, asked.seconds)
        rows.append({"server": name, "askers": count, **found})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        return rows[-1]

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        if not asked.only:
            np.save(place / "triples.npy", triples.astype(str))
            port = free_port()
            given = [place / "triples.npy", asked.device, asked.dim, port, asked.k]
            words = [sys.executable, "-c", PYKEEN, *map(str, given)]
            with served(words, port, asked.threads) as server:
                for count in askers:
                    row("PyKEEN", server, 0, count)
        save_run(triples, asked.dim, place / "run")
        port = free_port()
        words = [sys.executable, "-m", "dicgrl", "serve", str(place / "run"), "--port", str(port)]
        words += ["--device", asked.device, "--learn-facts", "20", "--evaluate", "none"]
        with served(words, port, asked.threads) as server:
            for count in askers:
                row("dicgrl", server, asked.batch, count)
            for count in askers:
                with writing(port) as versions:
                    found = row("while learning", server, asked.batch, count)
                found["versions"] = versions[1] - versions[0]
    show(rows, asked)


def show(rows: list[dict[str, Any]], asked: argparse.Namespace) -> None:
    table = Table(title=f"TransE d={asked.dim}, best {asked.k}, {asked.device}")
    numbers = {
        "questions/s": "per_second",
        "median ms": "median_ms",
        "p99 ms": "p99_ms",
        "busy ms": "busy_ms",
    }
    for heading in ("", "askers", *numbers, "times PyKEEN", "versions"):
        table.add_column(heading, justify="right" if heading else "left")
    theirs = {each["askers"]: each for each in rows if each["server"] == "PyKEEN"}
    for each in rows:
        other = theirs.get(each["askers"])
        times = ""
        if other and each is not other:
            gain = each["per_second"] / other["per_second"]
            sooner, less = (other[name] / each[name] for name in ("p99_ms", "busy_ms"))
            times = f"{gain:.1f}, p99 1/{sooner:.1f}, busy 1/{less:.1f}"
        cells = [f"{each[name]:,.1f}" for name in numbers.values()]
        versions = str(each.get("versions", ""))
        table.add_row(each["server"], str(each["askers"]), *cells, times, versions)
    Console(width=120).print(table)
    if asked.json:
        content = {"settings": {k: str(v) for k, v in vars(asked).items()}, "rows": rows}
        asked.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
