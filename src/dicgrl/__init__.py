"""Graph embeddings that keep learning while the graph grows.

Example:
    >>> import dicgrl
    >>> stream = dicgrl.load_stream("films")
    >>> stream.task
    <Task.LINK_PREDICTION: 'link-prediction'>
"""

from typing import TYPE_CHECKING, Any

from dicgrl.datasets import load_stream
from dicgrl.errors import DataError, DataWarning, DicgrlError, FailureError, UserError
from dicgrl.graph import (
    KnowledgeGraph,
    KnowledgePart,
    KnowledgeStream,
    NetworkGraph,
    NetworkPart,
    NetworkStream,
    Part,
    Stream,
    Task,
    Vocabulary,
    describe,
)
from dicgrl.readers import NetworkFacts, read_stream, write_stream

if TYPE_CHECKING:
    from dicgrl.evaluation.continual import Evaluation
    from dicgrl.learner import Learner, PartReport, Prediction

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "DataWarning",
    "DicgrlError",
    "Evaluation",
    "FailureError",
    "KnowledgeGraph",
    "KnowledgePart",
    "KnowledgeStream",
    "Learner",
    "NetworkFacts",
    "NetworkGraph",
    "NetworkPart",
    "NetworkStream",
    "Part",
    "PartReport",
    "Prediction",
    "Stream",
    "Task",
    "UserError",
    "Vocabulary",
    "describe",
    "load_stream",
    "read_stream",
    "write_stream",
]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import: only those who learn wait for it.
    if name in ("Evaluation", "Learner", "PartReport", "Prediction"):
        from dicgrl import learner

        return getattr(learner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
