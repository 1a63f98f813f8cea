"""The setting that is not continual: all parts merged, one model (the paper's appendix A)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch

from dicgrl.checkpoint import save_model
from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.files import replacing_file
from dicgrl.graph import KnowledgePart, KnowledgeStream
from dicgrl.models import KnowledgeModel
from dicgrl.recipes import Recipe
from dicgrl.training import (
    DivergedError,
    EpochReport,
    FitReport,
    LinkObjective,
    NegativeSampler,
    fit,
    make_loss,
)
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


class LinkRun:
    """Trains and measures one model on one part.

    Args:
        part: The data.
        recipe: The settings.
        seed: Seed of every random choice.
        device: Where to compute.
    """

    def __init__(
        self, part: KnowledgePart, recipe: Recipe, seed: int, device: torch.device
    ) -> None:
        self.part = part
        self.settings = settings = recipe.settings
        self.candidates = range(part.num_entities)
        self.train, self.valid, self.test = (
            torch.from_numpy(rows.copy()).to(device) for rows in (part.train, part.valid, part.test)
        )
        self.generator = torch.Generator(device).manual_seed(seed)
        self.model = KnowledgeModel(
            settings.model,
            settings.dim,
            settings.division(),
            dict(settings.options),
            seed,
            device,
        )
        self.model.grow(part.num_entities, part.num_relations)
        known = torch.cat([self.train, self.valid, self.test])
        self.ranker = Ranker(known, part.num_relations)

    def learn(self, monitor: Monitor | None = None) -> FitReport:
        """Train, with early stopping on the validation triples."""
        settings, model = self.settings, self.model
        sampler = NegativeSampler(
            self.train, model.num_entities, model.num_relations, self.generator
        )
        loss = make_loss(settings.loss, settings.margin, settings.temperature)
        objective = LinkObjective(sampler, loss, settings.negatives, settings.beta)
        watched = self.valid
        if settings.validate_at_most and len(watched) > settings.validate_at_most:
            chosen = torch.randperm(len(watched), generator=torch.Generator().manual_seed(0))
            watched = watched[chosen[: settings.validate_at_most].to(watched.device)]
        return fit(
            model,
            lambda triples, weight: objective(model, triples, weight),
            self.train,
            settings.schedule(),
            self.generator,
            validate=(lambda: self.measure(watched)["mrr"]) if len(watched) else None,
            monitor=monitor,
        )

    def measure(self, triples: torch.Tensor) -> dict[str, float]:
        """Metrics of triples among all entities, filtered."""
        return ranking_metrics(self.ranker.rank(self.model, triples, self.candidates))


def run_whole(
    stream: KnowledgeStream,
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
    part = stream.merged()[0]
    run = LinkRun(part, recipe, seed, place)
    config = {
        "dataset": stream.name,
        "task": str(stream.task),
        "model": recipe.settings.model,
        "recipe": recipe.name,
        "setting": "whole",
        "seed": seed,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else "cpu",
        "settings": recipe.settings.as_dict(),
        "protocol": {
            "ranking": "filtered, head and tail side, realistic ties",
            "candidates": "all entities",
            "negatives": "entities seen so far, no known training triple",
            "selection": "best validation MRR",
        },
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
        "count": {"train": len(part.train), "valid": len(part.valid), "test": len(part.test)},
        "peak_memory_bytes": memory,
    }
    if out is not None:
        _save(run, out, config, trace)
        _write(out / "results.json", results)
    return results


def _save(run: LinkRun, out: Path, config: dict[str, Any], trace: list[EpochReport]) -> None:
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
