"""Gradients of a whole model by name: read, replaced, compared."""

from __future__ import annotations

import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.training.loop import Trainable

Gradients = dict[str, Tensor]


def take_gradients(model: Trainable) -> Gradients:
    """Copy the gradients of tables and dense parameters, then set them to zero."""
    taken: Gradients = {}
    for name, table in model.tables().items():
        if table.sparse:
            raise UserError(
                "gem compares the gradients of whole tables: it needs precision=float32 and fewer "
                "entities; fresh, dicgrl and emr learn large tables"
            )
        taken[f"table/{name}"] = table.gradient.clone()
        table.clear()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            gradient = parameter.grad
            taken[name] = torch.zeros_like(parameter) if gradient is None else gradient
            parameter.grad = None
    return taken


def put_gradients(model: Trainable, gradients: Gradients) -> None:
    """Set gradients; rows of tables count as touched if their gradient is not zero."""
    for name, table in model.tables().items():
        gradient = gradients[f"table/{name}"]
        rows = gradient.any(1).nonzero()[:, 0]
        table.clear()
        table.accumulate(rows, gradient[rows])
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.grad = gradients[name]


def inner(first: Gradients, second: Gradients) -> Tensor:
    """Inner product of two gradients of one model."""
    return torch.stack([(first[name] * second[name]).sum() for name in first]).sum()
