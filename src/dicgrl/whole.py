"""The setting that is not continual: all parts merged, one model (the paper's appendix A)."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from dicgrl.checkpoint import save_model
from dicgrl.devices import device_name, peak_memory, pick_device
from dicgrl.files import locked, replacing_file
from dicgrl.graph import SPLITS, KnowledgeStream, Stream
from dicgrl.recipes import Recipe
from dicgrl.storage import write_json
from dicgrl.strategies.bounds import Lower
from dicgrl.tasks import LinkRun, NodeRun
from dicgrl.training import DivergedError, EpochReport
from dicgrl.training.loop import Monitor


def run_whole(
    stream: Stream,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | None = None,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Train one model on the whole stream and measure it on the whole test set.

    With `out`, the folder gets `config.json`, `trace.jsonl`, the model and `results.json`; when
    training diverges, the last good weights are there all the same.

    Returns:
        The results, as written to `results.json`.

    Raises:
        BusyError: Another process is writing to the folder.
    """
    with contextlib.nullcontext() if out is None else locked(out):
        return _run_whole(stream, recipe, seed, pick_device(device), out, monitor)


def _run_whole(
    stream: Stream,
    recipe: Recipe,
    seed: int,
    place: torch.device,
    out: Path | None,
    monitor: Monitor | None,
) -> dict[str, Any]:
    kind = LinkRun if isinstance(stream, KnowledgeStream) else NodeRun
    run: LinkRun | NodeRun = kind(recipe.settings, seed, place)
    run.take(stream.merged()[0])
    config = {
        "dataset": stream.name,
        "task": str(stream.task),
        "model": recipe.settings.model,
        "recipe": recipe.name,
        "setting": "whole",
        "seed": seed,
        "device": device_name(place),
        "settings": recipe.settings.as_dict(),
        "protocol": run.describe_protocol(),
    }
    if out is not None:
        write_json(out / "config.json", config)
    trace: list[EpochReport] = []

    def watch(report: EpochReport) -> None:
        trace.append(report)
        if monitor:
            monitor(report)

    try:
        (fitted,) = Lower(recipe.settings).learn(run, watch).fits
    except DivergedError:
        if out is not None:
            _save(run, out, config, trace)
        raise
    started = time.perf_counter()
    measured = {
        split: run.measure(run.examples(split)) if run.count(split) else None
        for split in ("valid", "test")
    }
    results = config | {
        "published": recipe.published,
        "learn_seconds": fitted.seconds,
        "evaluate_seconds": time.perf_counter() - started,
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        "validation": measured["valid"],
        "test": measured["test"],
        "count": {split: run.count(split) for split in SPLITS},
        "peak_memory_bytes": peak_memory(place),
    }
    if out is not None:
        _save(run, out, config, trace)
        write_json(out / "results.json", results)
    return results


def _save(
    run: LinkRun | NodeRun, out: Path, config: dict[str, Any], trace: list[EpochReport]
) -> None:
    save_model(run.model, out, {"dataset": config["dataset"], "seed": config["seed"]})
    with replacing_file(out / "trace.jsonl") as temporary:
        lines = "".join(f"{json.dumps(asdict(entry))}\n" for entry in trace)
        temporary.write_text(lines, encoding="utf-8")
