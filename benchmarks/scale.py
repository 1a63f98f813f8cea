"""From a laptop to a graph that outgrows one machine: training, ranking and updates by size.

    python benchmarks/scale.py [--pieces train,rank,update] [--entities 100000,1000000] [--dim 200]
        [--triples 8] [--precision float32|bfloat16] [--optimizer rowwise|adam] [--negatives 64]
        [--batch 4096] [--seconds 5] [--histories 100000,1000000] [--part 10000]
        [--device cuda|cpu] [--json FILE]

Graphs are generated where they are used, nothing is read from disk: an entity's degree falls with
its rank to the power of -2/3, as in Freebase and many others (so few entities have very many
triples and most a few), relations likewise. `--triples` counts them per entity; `--entities
86054151 --triples 3.93 --relations 14824` is Freebase's size.

- train: positives per second of TransE's training step, by the loop that `learn` runs, beside the
  floor that memory sets, and the seconds that an epoch would take, or has taken (`--whole`). Floor:
  each row of a positive and its negatives is read twice (for the score, and when it moves) and
  written once, at the speed of a copy on this device. What lies in a cache can be faster.
- rank: 1,000 test triples against all entities, filtered, both sides, with the same model.
- update: `learn` of 10,000 facts by `fresh`, after histories of several sizes (`update_scale.py`).

The last column is the most memory that the device, or this process, has had in use.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import update_scale
from machine import bandwidth, name_of, wait
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dicgrl.common.devices import peak_memory
from dicgrl.evaluation import Ranker
from dicgrl.models import KnowledgeModel
from dicgrl.training import (
    LinkObjective,
    NegativeSampler,
    Schedule,
    TrainingSet,
    fit,
    make_loss,
)

_POWER = 3.0  # an entity's degree falls with its rank to the power of 1 / 3 - 1
_BLOCK = 1 << 24
TESTED = 1000


class Enough(Exception):  # noqa: N818 - it is no error
    """The time is up."""


def skewed(count: int, most: int, generator: torch.Generator) -> Tensor:
    """So many ids below a number, low ones far more often."""
    drawn = torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
    return (drawn.pow_(_POWER) * most).long()


def graph(asked: argparse.Namespace, entities: int) -> Tensor:
    """Triples, [n, 3]; an entity's id is its rank as a head, and far from it as a tail."""
    generator = torch.Generator(asked.device).manual_seed(0)
    count = round(entities * asked.triples)
    triples = torch.empty(count, 3, dtype=torch.long, device=asked.device)
    step = next(prime for prime in (1_000_003, 15_485_863) if entities % prime)
    for first in range(0, count, _BLOCK):
        block = triples[first : first + _BLOCK]
        block[:, 0] = skewed(len(block), entities, generator)
        block[:, 1] = skewed(len(block), asked.relations, generator)
        block[:, 2] = skewed(len(block), entities, generator) * step % entities
    return triples


def model_of(asked: argparse.Namespace, entities: int) -> KnowledgeModel:
    """A model whose rows were drawn on the device: only the time of that differs."""
    model = KnowledgeModel(
        "transe", asked.dim, options={"p": 1}, device=asked.device, precision=asked.precision
    )
    model.grow(0, asked.relations)
    rows = torch.empty(entities, asked.dim, device=asked.device, dtype=model.entities.rows.dtype)
    for block in torch.split(rows, 1 << 20):
        block.uniform_(-10 / asked.dim, 10 / asked.dim)
    model.entities.adopt({"rows": rows})
    return model


def floor(asked: argparse.Namespace, device: torch.device) -> float:
    """Positives per second if all that a step does were to move its rows through memory."""
    number = 2 if asked.precision == "bfloat16" else 4
    beside = 8 * asked.dim * 2 if asked.optimizer == "adam" else 8 * 2  # state, read and written
    moved: int = (asked.negatives + 2) * (3 * asked.dim * number + beside)
    return bandwidth(device) / moved


def train(asked: argparse.Namespace, model: KnowledgeModel, triples: Tensor) -> dict[str, Any]:
    """Positives per second: of a whole epoch, or of the best of short ones."""
    device = torch.device(asked.device)
    generator = torch.Generator(device).manual_seed(1)
    started = time.perf_counter()
    sampler = NegativeSampler(triples, model.num_entities, asked.relations, generator)
    wait(device)
    prepared = time.perf_counter() - started
    loss = make_loss("selfadversarial", 9.0, 1.0)
    objective = LinkObjective(sampler, loss, asked.negatives)
    # Batches of an epoch are drawn from all triples; a short epoch takes some of them.
    some = triples
    if not asked.whole:
        chosen = torch.randint(
            len(triples), (64 * asked.batch,), generator=generator, device=device
        )
        some = triples[chosen]
    lesson = TrainingSet(lambda rows, weight: objective(model, rows, weight), some)
    rates: list[float] = []
    losses: list[float] = []
    began = time.perf_counter()

    def watch(report: Any) -> None:
        rates.append(report.rate)
        losses.append(report.loss)
        if time.perf_counter() - began > asked.seconds and len(rates) >= (1 if asked.whole else 3):
            raise Enough

    never = 1_000_000
    schedule = Schedule(
        epochs=never, batch=asked.batch, validate_every=never, optimizer=asked.optimizer
    )
    with contextlib.suppress(Enough):
        fit(model, lesson, schedule, generator, monitor=watch)
    rate = max(rates[1:] or rates)
    least = floor(asked, device)
    return {
        "positives_per_second": rate,
        "floor": least,
        "share_of_floor": rate / least,
        "epoch_seconds": len(triples) / rate,
        "measured_epoch": asked.whole,
        "prepare_seconds": prepared,
        "loss": losses[-1],
    }


def rank(asked: argparse.Namespace, model: KnowledgeModel, triples: Tensor) -> dict[str, Any]:
    """Seconds that it takes to rank test triples on both sides."""
    device = torch.device(asked.device)
    ranker = Ranker(triples, asked.relations)
    apart = max(len(triples) // asked.tested, 1)
    test = triples[::apart][: asked.tested]
    ranker.rank(model, test[:1], range(model.num_entities))  # compiles kernels
    wait(device)
    started = time.perf_counter()
    ranks = ranker.rank(model, test, range(model.num_entities)).realistic
    wait(device)
    seconds = time.perf_counter() - started
    return {"tested": len(test), "rank_seconds": seconds, "mean_rank": ranks.double().mean().item()}


def sizes(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What was measured for each number of entities."""
    device = torch.device(asked.device)
    for entities in map(int, asked.entities.split(",")):
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        triples, model = graph(asked, entities), model_of(asked, entities)
        found: dict[str, Any] = {"entities": entities, "triples": len(triples)}
        if "train" in asked.pieces:
            found |= train(asked, model, triples)
            gc.collect()
        if "rank" in asked.pieces:
            found |= rank(asked, model, triples)
        yield found | {"memory_bytes": peak_memory(device)}
        del triples, model
        gc.collect()


def show(asked: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """A table of the sizes."""
    table = Table(
        title=f"TransE d={asked.dim}, {asked.precision}, {asked.optimizer}, {asked.negatives} "
        f"negatives, batch {asked.batch}, {name_of(torch.device(asked.device))}"
    )
    of_train = (
        ("positives/s", "positives_per_second", ",.0f"),
        ("floor", "floor", ",.0f"),
        ("of it", "share_of_floor", ".0%"),
        ("epoch s", "epoch_seconds", ",.1f"),
        ("known s", "prepare_seconds", ".1f"),
        ("loss", "loss", ".3f"),
    )
    columns = [("entities", "entities", ","), ("triples", "triples", ",")]
    columns += of_train if "train" in asked.pieces else ()
    columns += [(f"rank {asked.tested:,}, s", "rank_seconds", ".2f")] * ("rank" in asked.pieces)
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    table.add_column("peak GiB", justify="right")
    for row in rows:
        cells = [format(row[name], how) for _, name, how in columns]
        table.add_row(*cells, f"{row['memory_bytes'] / 2**30:.1f}")
    Console(width=140).print(table)


def updates(asked: argparse.Namespace) -> list[dict[str, float]]:
    """Seconds of `learn` after histories of several sizes; see `update_scale.py`."""
    own = argparse.Namespace(
        strategy="fresh", dim=asked.update_dim, negatives=16, effort="12x", orders=1,
        device=asked.device,
    )  # fmt: skip
    update_scale.measure(10_000, 1000, own)  # warm-up
    found = []
    for size in map(int, asked.histories.split(",")):
        found.append(update_scale.measure(size, asked.part, own))
        gc.collect()
        last = found[-1]
        print(
            f"update of {asked.part:,} facts after {size:,} triples: {last['seconds']:.2f} s, "
            f"{last['cpu_seconds']:.2f} processor s, {last['memory_bytes'] / 2**30:.1f} GiB",
            flush=True,
        )
    return found


def main() -> None:
    """Measure the pieces that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pieces", default="train,rank,update")
    parser.add_argument("--entities", default="100000,1000000")
    parser.add_argument("--triples", type=float, default=8.0, help="per entity")
    parser.add_argument("--relations", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--optimizer", choices=("adam", "rowwise"), default="rowwise")
    parser.add_argument("--negatives", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=5.0, help="of training, for each size")
    parser.add_argument("--whole", action="store_true", help="train one epoch, however long")
    parser.add_argument("--tested", type=int, default=TESTED, help="triples that are ranked")
    parser.add_argument("--histories", default="100000,1000000")
    parser.add_argument("--part", type=int, default=10_000, help="facts of an update")
    parser.add_argument("--update-dim", type=int, default=32)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.pieces = asked.pieces.split(",")
    found: dict[str, Any] = {}
    if {"train", "rank"} & set(asked.pieces):
        rows = []
        for row in sizes(asked):
            rows.append(row)
            print(json.dumps(row), flush=True)
        show(asked, rows)
        found["sizes"] = rows
    if "update" in asked.pieces:
        found["updates"] = updates(asked)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
