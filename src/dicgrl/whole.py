"""The setting that is not continual: all parts merged, one model (the paper's appendix A)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch

from dicgrl.checkpoint import save_model
from dicgrl.errors import UserError
from dicgrl.files import replacing_file
from dicgrl.graph import KnowledgeStream, Stream
from dicgrl.recipes import Recipe
from dicgrl.tasks import LinkRun, NodeRun, link_prediction, node_classification
from dicgrl.training import DivergedError, EpochReport
from dicgrl.training.loop import Monitor


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise UserError(f"device {name!r}: expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda': PyTorch sees no CUDA device here; use --device cpu")
    return torch.device(name)


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
    """
    place = pick_device(device)
    run: LinkRun | NodeRun
    if isinstance(stream, KnowledgeStream):
        run = LinkRun(stream.merged()[0], recipe, seed, place)
        protocol = link_prediction.PROTOCOL
    else:
        run = NodeRun(stream.merged()[0], recipe, seed, place)
        protocol = node_classification.PROTOCOL | {"graph": run.settings.graph}
    config = {
        "dataset": stream.name,
        "task": str(stream.task),
        "model": recipe.settings.model,
        "recipe": recipe.name,
        "setting": "whole",
        "seed": seed,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else "cpu",
        "settings": recipe.settings.as_dict(),
        "protocol": protocol,
    }
    if out is not None:
        _write(out / "config.json", config)
    trace: list[EpochReport] = []

    def watch(report: EpochReport) -> None:
        trace.append(report)
        if monitor:
            monitor(report)

    try:
        fitted = run.learn(watch)
    except DivergedError:
        if out is not None:
            _save(run, out, config, trace)
        raise
    started = time.perf_counter()
    validation = run.measure(run.valid) if len(run.valid) else None
    tested = run.measure(run.test) if len(run.test) else None
    memory = torch.cuda.max_memory_allocated() if place.type == "cuda" else None
    results = config | {
        "published": recipe.published,
        "learn_seconds": fitted.seconds,
        "evaluate_seconds": time.perf_counter() - started,
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        "validation": validation,
        "test": tested,
        "count": {"train": len(run.train), "valid": len(run.valid), "test": len(run.test)},
        "peak_memory_bytes": memory,
    }
    if out is not None:
        _save(run, out, config, trace)
        _write(out / "results.json", results)
    return results


def _save(
    run: LinkRun | NodeRun, out: Path, config: dict[str, Any], trace: list[EpochReport]
) -> None:
    save_model(run.model, out, {"dataset": config["dataset"], "seed": config["seed"]})
    with replacing_file(out / "trace.jsonl") as temporary:
        lines = (
            json.dumps(
                {
                    "epoch": entry.epoch,
                    "loss": entry.loss,
                    "rate": entry.rate,
                    "validation": entry.validation,
                }
            )
            for entry in trace
        )
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write(path: Path, content: dict[str, Any]) -> None:
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
