"""Several processes that learn one knowledge graph: equal ranks, quality, what is sent, projection.

    python benchmarks/distributed.py [--ranks 1,2,4] [--seeds 0,1,2] [--epochs 15] [--dim 32]
        [--negatives 16] [--batch 1024] [--json docs/results/distributed.json]

Each number of processes is started by `torchrun` on the CPUs of this machine (gloo).

- ranks: a model that one process has learned is loaded by each number of processes, which rank all
  validation triples of the films: the counts of better and of equal candidates are compared.
- quality: part 0 of the films, then part 1 by fresh, for each seed: MRR on validation triples, mean
  and standard deviation of the seeds.
- killed: `dicgrl run films` by the most processes, the last of which is killed while it learns part
  1: which parts were begun before and after the restart, and whether it ends with the numbers of a
  run that nobody disturbed.
- sent: bytes that a process sends in a step of part 0, beside the theory: of the distinct heads and
  tails that triples drawn from this graph have, each that another process owns is asked for (8
  bytes), comes (4 d) and goes back as a gradient (4 d); a ring sends each relation of the batch
  twice. Beside it, what the same negatives would be if they were drawn from all entities.
- work: processor seconds of one process for 1,000 triples (waiting costs none). Where other jobs
  run, the clock says little, so that no speed-up is given.
- projection: what 8 and 64 processes would do in a step of which each has as many triples as here:
  processor seconds as measured with the most processes, bytes by theory, and the seconds that these
  would take at the rate of an exchange between processes of this machine. Marked as a projection:
  no network and no GPU was measured.

The file of results has a row for each number of processes of each kind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dicgrl import Learner, load_stream
from dicgrl.parallel.group import Group, together
from dicgrl.parallel.trainer import ShardedTrainer

FAR = (8, 64)
_EXCHANGED = 1 << 24  # bytes of the exchange whose rate is measured

# Notes which parts are begun, and ends the last process in its tenth step of the second one.
_DEADLY = """
import os, signal
from collections import Counter
from dicgrl.parallel.trainer import ShardedTrainer

steps, settle = Counter(), ShardedTrainer.settle
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def watched(self):
    steps[self.newest] += 1
    if not rank and steps[self.newest] == 1:
        with open(os.environ["BEGUN"], "a") as file:
            file.write(f"{attempt} {self.newest}\\n")
    if not attempt and rank == size - 1 and self.newest == 1 and steps[1] == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    settle(self)

ShardedTrainer.settle = watched
"""


def learner_of(asked: argparse.Namespace, seed: int, epochs: int) -> Learner:
    """A learner of the films."""
    return Learner(
        "transe", "fresh", dataset="films", device="cpu", seed=seed, dim=asked.dim, epochs=epochs,
        negatives=asked.negatives, batch=asked.batch,
    )  # fmt: skip


def counts_of(learner: Learner) -> Tensor:
    """Better and equal candidates of all validation triples, [2, 2, n]."""
    trainer: Any = learner.trainer
    found = trainer.ranks(trainer.examples("valid"))
    return torch.stack([found.higher, found.equal])


def measure(asked: argparse.Namespace, group: Group | None) -> dict[str, Any]:
    """What one number of processes does; the same is returned on each."""
    first, second = load_stream("films")[:2]
    counts = counts_of(Learner.load(asked.model, device="cpu"))
    stored = torch.tensor(json.loads(Path(asked.model, "counts.json").read_text()))
    found: dict[str, Any] = {
        "kind": "measured",
        "processes": group.size if group else 1,
        "questions": counts[0].numel(),
        "equal_ranks": bool(torch.equal(counts, stored)),
    }
    runs = []
    for seed in map(int, asked.seeds.split(",")):
        learner = learner_of(asked, seed, asked.epochs)
        if group:
            group.sent.clear()
        started = time.process_time()
        reports = [learner.learn(first)]
        spent = time.process_time() - started
        run = {"mrr": learner.trainer.judge(learner.trainer.examples("valid"))}
        positives = sum(reports[0].positives.values())
        run["processor_seconds_per_1000"] = 1000 * spent / positives
        learner.learn(second)
        run["mrr_after_update"] = learner.trainer.judge(learner.trainer.examples("valid"))
        runs.append(run)
    for name in runs[0]:
        values = [run[name] for run in runs]
        spread = stdev(values) if len(values) > 1 else 0.0
        found[name] = {"mean": mean(values), "std": spread, "values": values}
    if group:
        found["exchange"] = exchange_rate(group)
        found["sent"] = sent_in_a_step(asked, group, first.train)
    return found


def exchange_rate(group: Group) -> dict[str, float]:
    """Bytes per second that a process sends in an all-to-all, and seconds of an empty one."""
    rate = empty = 0.0
    for each in (1, _EXCHANGED // 4 // group.size):
        rows, parts = torch.zeros(each * group.size), [each] * group.size
        times = []
        for _ in range(8):
            group.wait()
            started = time.perf_counter()
            group.exchange(rows, parts, parts, "measured")
            times.append(time.perf_counter() - started)
        best = torch.tensor(min(times))
        seconds = float(group.largest(best))
        if each == 1:
            empty = seconds
        else:
            rate = 4 * each * (group.size - 1) / (seconds - empty)
    return {"bytes_per_second": rate, "seconds_of_an_empty_one": empty}


def sent_in_a_step(asked: argparse.Namespace, group: Group, train: Any) -> dict[str, Any]:
    """Bytes that a process sends in a step of an epoch, by what they are, and by theory."""
    learner = learner_of(asked, 0, 1)
    trainer = learner.trainer
    assert isinstance(trainer, ShardedTrainer)
    trainer.take(learner.intake(load_stream("films")[0]).part)
    examples = trainer.examples("train")
    whole = len(examples) // asked.batch  # steps of a full batch
    group.sent.clear()
    objective = trainer.objective(examples)
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(0))
    for some in torch.split(order[: whole * asked.batch], asked.batch):
        batch = examples[some]
        objective(batch, torch.ones(len(batch))).backward()  # type: ignore[no-untyped-call]
        trainer.settle()
        for table in trainer.model.own_tables().values():
            table.clear()
    names = ("counts", "ids", "rows", "gradients", "relations")
    sums = torch.tensor([group.sent[name] for name in names], dtype=torch.float64)
    mean = (group.add(sums) / group.size / whole).tolist()
    return {
        "bytes": dict(zip(names, mean, strict=True)),
        "bytes_in_all": sum(mean),
        "theory": theory(torch.from_numpy(train.copy()), asked, group.size, asked.batch),
    }


def theory(train: Tensor, asked: argparse.Namespace, size: int, batch: int) -> dict[str, float]:
    """Bytes that a process sends in a step, by the graph's degrees alone."""
    triples, other = batch / size, (size - 1) / size
    ends = train[:, [0, 2]].flatten().bincount().double() / (2 * len(train))
    kinds = train[:, 1].bincount().double() / len(train)
    distinct = float((1 - (1 - ends) ** (2 * triples)).sum())
    relations = float((1 - (1 - kinds) ** batch).sum())
    rows = 4 * asked.dim * distinct * other
    negatives = 4 * asked.dim * triples * asked.negatives * other
    return {
        "ids": 8 * distinct * other,
        "rows": rows,
        "gradients": rows,
        "relations": 2 * other * (4 * relations * (asked.dim + 1) + 4),
        "bytes_in_all": 2 * rows + 8 * distinct * other + 8 * relations * other * (asked.dim + 1),
        "if_negatives_were_sent": 2 * (rows + negatives),
    }


def projected(asked: argparse.Namespace, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps of more processes, each with as many triples as one has of a batch here."""
    most = max(rows, key=lambda row: row["processes"])
    if "exchange" not in most:
        return []
    train = torch.from_numpy(load_stream("films")[0].train.copy())
    triples = asked.batch / most["processes"]
    spent = most["processor_seconds_per_1000"]["mean"]
    work = spent * most["processes"] / 1000 * triples
    rate, empty = (most["exchange"][k] for k in ("bytes_per_second", "seconds_of_an_empty_one"))
    found = []
    for size in FAR:
        sent = theory(train, asked, size, round(triples * size))["bytes_in_all"]
        # Each process has a message for every other in each of five exchanges.
        waits = 5 * empty * (size - 1) / (most["processes"] - 1)
        seconds = work + sent / rate + waits
        found.append({
            "kind": "projected",
            "processes": size,
            "triples_of_a_process": triples,
            "bytes": sent,
            "work_seconds": work,
            "exchange_seconds": sent / rate + waits,
            "share_of_work": work / seconds,
        })  # fmt: skip
    return found


def torchrun(size: int, *words: str, **environment: str) -> None:
    """Start so many processes and wait for their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = ["-m", "torch.distributed.run", "--nproc-per-node", str(size), "--master-port", str(port)]
    subprocess.run(
        [sys.executable, *run, *words],
        check=True,
        env=os.environ | environment | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )


def started(size: int, place: Path, arguments: list[str]) -> dict[str, Any]:
    """Start so many processes of this file, and read what the first has written."""
    out = place / f"{size}.json"
    torchrun(
        size, __file__, *arguments, "--model", str(place / "run"), "--work", str(out)
    )  # fmt: skip
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def killed(asked: argparse.Namespace, size: int, place: Path) -> dict[str, Any]:
    """A run whose last process is killed, beside one that nobody disturbs."""
    plugin, begun = place / "deadly.py", place / "begun"
    plugin.write_text(_DEADLY)
    names = ("dim", "epochs", "negatives", "batch")
    settings = [word for name in names for word in ("--set", f"{name}={vars(asked)[name]}")]
    run = ["run", "films", "--model", "transe", "--device", "cpu", *settings, "--out"]
    calm, shot = place / "calm", place / "shot"
    torchrun(size, "-m", "dicgrl", *run, str(calm))
    words = ["--plugin", str(plugin), *run, str(shot)]
    torchrun(size, "--max-restarts", "1", "-m", "dicgrl", *words, BEGUN=str(begun))
    ends = [
        [part["whole"] for part in json.loads((folder / "results.json").read_text())["parts"]]
        for folder in (calm, shot)
    ]
    attempts = [[int(word) for word in line.split()] for line in begun.read_text().splitlines()]
    return {
        "kind": "killed",
        "processes": size,
        "parts_begun_before": [part for attempt, part in attempts if not attempt],
        "parts_begun_after": [part for attempt, part in attempts if attempt],
        "same_numbers": ends[0] == ends[1],
    }


def show(rows: list[dict[str, Any]]) -> None:
    """The tables."""
    table = Table(title="films, part 0 and then part 1; validation")
    for heading in (
        "processes",
        "equal ranks",
        "MRR",
        "after update",
        "CPU s/1000",
        "kB",
        "theory",
    ):
        table.add_column(heading, justify="right")
    console = Console(width=140)
    for row in rows:
        if row["kind"] != "measured":
            continue
        sent = row.get("sent")
        table.add_row(
            str(row["processes"]),
            f"{row['equal_ranks']} of {row['questions']:,}",
            *(
                f"{100 * row[name]['mean']:.1f} ± {100 * row[name]['std']:.1f}"
                for name in ("mrr", "mrr_after_update")
            ),
            f"{row['processor_seconds_per_1000']['mean']:.3f}",
            f"{sent['bytes_in_all'] / 1e3:.1f}" if sent else "",
            f"{sent['theory']['bytes_in_all'] / 1e3:.1f}" if sent else "",
        )
    console.print(table)
    for row in rows:
        if row["kind"] == "killed":
            console.print(
                f"killed: one of {row['processes']} processes in part 1; parts begun before "
                f"{row['parts_begun_before']}, after the restart {row['parts_begun_after']}; the "
                f"same numbers as undisturbed: {row['same_numbers']}"
            )
        if row["kind"] == "projected":
            console.print(
                f"projected: {row['processes']} processes, {row['triples_of_a_process']:.0f} "
                f"triples each: {row['bytes'] / 1e3:.1f} kB sent by each; work "
                f"{row['work_seconds']:.3f} s, exchange {row['exchange_seconds']:.3f} s, "
                f"{row['share_of_work']:.0%} of it is work"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--negatives", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        with together() as group:
            found = measure(asked, group)
            if group is None or not group.rank:
                asked.work.write_text(json.dumps(found))
            if group:
                group.wait()
        return
    arguments = [word for word in sys.argv[1:] if not word.startswith("--json")]
    with contextlib.suppress(ValueError):
        arguments.remove(str(asked.json))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        learner = learner_of(asked, 0, asked.epochs)
        learner.learn(load_stream("films")[0])
        learner.save(place / "run")
        (place / "run" / "counts.json").write_text(json.dumps(counts_of(learner).tolist()))
        sizes = [int(size) for size in asked.ranks.split(",")]
        rows = [started(size, place, arguments) for size in sizes]
        rows += projected(asked, rows)
        if max(sizes) > 1:
            rows.append(killed(asked, max(sizes), place))
    show(rows)
    if asked.json:
        settings = {name: vars(asked)[name] for name in ("epochs", "dim", "negatives", "batch")}
        text = json.dumps({"settings": settings, "rows": rows}, indent=2)
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
