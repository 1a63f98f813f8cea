"""Probabilities of classes: one temperature for all, fitted on validation nodes.

Only the surroundings of a sample of nodes go through the model, so that the cost does not grow with
the network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.ask.doubts import found_of
from dicgrl.evaluation.calibration import fit_temperature
from dicgrl.evaluation.reliability import reliability
from dicgrl.evaluation.sample import bounded_sizes, sample_of
from dicgrl.graph.arrays import IntArray
from dicgrl.trainers import NodeTrainer

_NODES = 2000  # looked at, at most


def examine_nodes(trainer: NodeTrainer) -> dict[str, Any]:
    """Fit the temperature, and count what is right; see `Asking.examine`.

    Without validation nodes those of training show whether anything was learned; nothing is fitted.
    """
    held_out = trainer.count("valid") > 0
    nodes, parts = _nodes_within(trainer, "valid" if held_out else "train")
    if not len(nodes):
        return {}
    scores, labels = _scores(trainer, nodes), trainer.labels[nodes].cpu()
    found = {"basis": "validation" if held_out else "training", "facts": len(nodes)}
    if scores.shape[1] < 2 or not scores.isfinite().all():
        return found
    scale = fit_temperature(scores, labels)
    taught = trainer.labels[trainer.examples("train")].cpu()
    frequency = torch.bincount(taught, minlength=scores.shape[1]).double() / max(len(taught), 1)
    told = (scale * scores).log_softmax(1).gather(1, labels[:, None])[:, 0]
    right = scores.argmax(1) == labels
    commonest = torch.bincount(labels).max().item() / len(labels)
    look = found_of(
        log_share=told.numpy(),
        frequency=frequency[labels].numpy(),
        candidates=np.full(len(labels), float(scores.shape[1])),
        answered=right.numpy(),
        chance=commonest,
        parts=parts if held_out else None,
    )
    return found | {"found": look} | ({"fit": {"scale": scale}} if held_out else {})


def measure_nodes(trainer: NodeTrainer, scale: float) -> dict[str, Any]:
    """How reliable the probabilities of the likeliest classes are on test nodes."""
    nodes, _ = _nodes_within(trainer, "test")
    if not len(nodes):
        return {}
    best = (scale * _scores(trainer, nodes)).softmax(1).max(1)
    right = best.indices == trainer.labels[nodes].cpu()
    return {"facts": len(nodes), **reliability(best.values, right)}


def _nodes_within(trainer: NodeTrainer, split: str) -> tuple[Tensor, IntArray]:
    """A sample of the nodes of a split, and the parts that they came with."""
    sizes = [trainer.count(split, part, part + 1) for part in range(trainer.num_parts)]
    taken = bounded_sizes(sizes, _NODES)
    nodes = [
        trainer.nodes(split, part, part + 1)[sample_of(part, size, count)]
        for part, (size, count) in enumerate(zip(sizes, taken, strict=True))
    ]
    parts = np.repeat(np.arange(len(taken)), taken)
    return torch.from_numpy(np.concatenate(nodes)).to(trainer.device), parts


@torch.no_grad()
def _scores(trainer: NodeTrainer, nodes: Tensor) -> Tensor:
    """Class scores of nodes, [n, C], on the CPU."""
    model = trainer.model
    return F.linear(trainer.vectors_of(nodes), model.class_weight, model.class_bias).double().cpu()
