"""Training speed beside PyKEEN: positives per second on the same data and device.

    python benchmarks/train_speed.py [--model transe|distmult|complex|rotate] [--device cuda|cpu]
        [--dataset FB15k-237] [--length 200] [--components 8 --top 4] [--batch 4096]
        [--negatives 64] [--seconds 10] [--profile] [--json FILE]

`--length` counts real numbers: ComplEx and RotatE have half as many complex ones. Every row trains
with the self-adversarial loss and Adam, the best epoch after a warm-up counts. `PyTorch path` is
this library with its kernels switched off. PyKEEN: SLCWATrainingLoop, NSSALoss, basic sampler,
which may draw known triples; ours never does. The floor is what moves through memory at least
(every row gathered twice, its gradient read and written) at the speed of a copy; a table that fits
into a cache can be faster. `--profile` adds what one step spends its time on, and what it takes
when its launches are handed over one by one.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import torch
from machine import MODELS, bandwidth, best, halved, name_of, pykeen_model, wait, whole
from rich.console import Console
from rich.table import Table

from dicgrl.graph import KnowledgePart
from dicgrl.models import Components, KnowledgeModel
from dicgrl.training import (
    LinkObjective,
    NegativeSampler,
    RowAdam,
    Schedule,
    TrainingSet,
    fit,
    make_loss,
)
from dicgrl.training.loop import EpochReport

MARGIN = 9.0


class Enough(Exception):  # noqa: N818 - it is no error
    """The time is up."""


def made(
    part: KnowledgePart, arguments: argparse.Namespace, components: Components | None
) -> KnowledgeModel:
    options, *_ = MODELS[arguments.model]
    device = torch.device(arguments.device)
    model = KnowledgeModel(arguments.model, arguments.length, components, options, device=device)
    model.grow(part.num_entities, part.num_relations)
    return model


def ours(
    part: KnowledgePart, arguments: argparse.Namespace, components: Components | None
) -> tuple[float, float]:
    """Positives per second of the best epoch, and the mean loss of the fifth epoch."""
    device = torch.device(arguments.device)
    generator = torch.Generator(device).manual_seed(0)
    train = torch.from_numpy(part.train[: arguments.triples or None].copy()).to(device)
    model = made(part, arguments, components)
    sampler = NegativeSampler(train, part.num_entities, part.num_relations, generator)
    objective = LinkObjective(
        sampler, make_loss("selfadversarial", MARGIN, 1.0), arguments.negatives
    )
    rates: list[float] = []
    losses: list[float] = []
    started = time.perf_counter()

    def watch(report: EpochReport) -> None:
        rates.append(report.rate)
        losses.append(report.loss)
        if time.perf_counter() - started > arguments.seconds and len(rates) >= 5:
            raise Enough

    lesson = TrainingSet(lambda triples, weight: objective(model, triples, weight), train)
    schedule = Schedule(epochs=1_000_000, batch=arguments.batch, validate_every=1_000_000)
    with contextlib.suppress(Enough):
        fit(model, lesson, schedule, generator, monitor=watch)
    return max(rates[1:]), losses[4]


def profile(part: KnowledgePart, arguments: argparse.Namespace) -> Table:
    """Operations of one step that take longest, mean of five steps."""
    device = torch.device(arguments.device)
    train = torch.from_numpy(part.train.copy()).to(device)
    model = made(part, arguments, None)
    generator = torch.Generator(device).manual_seed(0)
    sampler = NegativeSampler(train, part.num_entities, part.num_relations, generator)
    loss = make_loss("selfadversarial", MARGIN, 1.0)
    objective = LinkObjective(sampler, loss, arguments.negatives)
    optimiser = RowAdam(model.tables().values())
    triples = train[: arguments.batch]
    weight = torch.ones(len(triples), device=device)

    def step() -> None:
        objective(model, triples, weight).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    alone = best(step, device, 20, warm_up=3)
    with torch.profiler.profile() as found:
        for _ in range(5):
            step()
        wait(device)
    table = Table(title=f"One step, its launches one by one: {1e6 * alone:,.0f} microseconds")
    table.add_column("operation")
    table.add_column("microseconds", justify="right")
    on_gpu = device.type == "cuda"
    spent = {
        event.key: (event.self_device_time_total if on_gpu else event.self_cpu_time_total) / 5
        for event in found.key_averages()
    }
    for key in sorted(spent, key=lambda key: -spent[key])[:12]:
        table.add_row(key[:60], f"{spent[key]:,.1f}")
    return table


def pykeen(part: KnowledgePart, arguments: argparse.Namespace) -> float | None:
    """Positives per second of the best epoch; None where PyKEEN is not installed."""
    if find_spec("pykeen") is None:
        return None
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    from pykeen.losses import NSSALoss
    from pykeen.training import SLCWATrainingLoop, TrainingCallback
    from pykeen.triples import CoreTriplesFactory

    device = torch.device(arguments.device)
    train = part.train[: arguments.triples or None].copy()
    factory = CoreTriplesFactory.create(
        torch.from_numpy(train),
        num_entities=part.num_entities,
        num_relations=part.num_relations,
    )
    loss = NSSALoss(margin=MARGIN, adversarial_temperature=1.0)
    model = pykeen_model(arguments.model, arguments.length, triples_factory=factory, loss=loss)
    model = model.to(device)
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer="adam",
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": arguments.negatives},
    )
    ends: list[float] = []

    class Clock(TrainingCallback):  # type: ignore[misc]
        def post_epoch(self, epoch: int, epoch_loss: float, **_: object) -> None:
            del epoch, epoch_loss
            wait(device)
            ends.append(time.perf_counter())

    loop.train(
        factory,
        num_epochs=4,
        batch_size=arguments.batch,
        callbacks=Clock(),
        use_tqdm=False,
        use_tqdm_batch=False,
    )
    return float(len(train) / min(after - before for before, after in itertools.pairwise(ends)))


def floor(arguments: argparse.Namespace, device: torch.device) -> float:
    """Positives per second if rows moved through memory at the speed of a copy."""
    rows = arguments.negatives + 3
    bytes_moved: int = rows * 4 * arguments.length * 4
    return bandwidth(device) / bytes_moved


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="transe")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dataset", default="FB15k-237")
    parser.add_argument("--length", type=int, default=200, help="of a whole vector, d")
    parser.add_argument("--components", type=int, help="of the disentangled row; 8 or 10")
    parser.add_argument("--top", type=int, help="of them, those a triple uses; half of them")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--negatives", type=int, default=64)
    parser.add_argument("--triples", type=int, default=0, help="train on the first ones only")
    parser.add_argument("--seconds", type=float, default=10.0, help="per row")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    part = whole(arguments.dataset)

    rows: list[tuple[str, float | None, float | None]] = [("PyKEEN", pykeen(part, arguments), None)]
    os.environ["DICGRL_KERNELS"] = "0"
    rows.append(("dicgrl, PyTorch path", *ours(part, arguments, None)))
    if device.type == "cuda":
        del os.environ["DICGRL_KERNELS"]
        rows.append(("dicgrl, kernels", *ours(part, arguments, None)))
        half = halved(arguments.model)
        count = arguments.components or half.count
        components = Components(count, arguments.top or count // 2)
        label = f"dicgrl, kernels, top {components.top} of {components.count}"
        rows.append((label, *ours(part, arguments, components)))
    rows.append(("floor", floor(arguments, device), None))

    table = Table(
        title=f"Training {arguments.model} d={arguments.length}, batch {arguments.batch}, "
        f"{arguments.negatives} negatives, {arguments.dataset} on {name_of(device)}"
    )
    for heading in ("", "positives/s", "times PyKEEN", "loss of epoch 5"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate, loss in rows:
        table.add_row(
            name,
            "not installed" if rate is None else f"{rate:,.0f}",
            "" if rate is None or rows[0][1] is None else f"{rate / rows[0][1]:.1f}",
            "" if loss is None else f"{loss:.4f}",
        )
    Console().print(table)
    if arguments.profile:
        Console().print(profile(part, arguments))
    if arguments.json:
        settings = {key: value for key, value in vars(arguments).items() if key != "json"}
        entries = [{"row": n, "positives_per_second": r, "loss": v} for n, r, v in rows]
        result = {"device": name_of(device), "settings": settings, "rows": entries}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
