"""What is taken unless another is asked for; the command line shows it before PyTorch is there."""

from __future__ import annotations

from dicgrl.graph import Task

DEFAULT_STRATEGY = "dicgrl"
_MODELS = {Task.LINK_PREDICTION: "transe", Task.NODE_CLASSIFICATION: "gat"}


def default_model(task: Task) -> str:
    """The model of a task.

    Example:
        >>> default_model(Task.NODE_CLASSIFICATION)
        'gat'
    """
    return _MODELS[task]
