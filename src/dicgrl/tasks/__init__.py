"""The two tasks behind one face: a `Run` takes parts, gives examples and losses, and measures."""

from dicgrl.tasks.base import Replay, Run
from dicgrl.tasks.link_prediction import LinkTrainer
from dicgrl.tasks.node_classification import NodeTrainer

__all__ = ["LinkTrainer", "NodeTrainer", "Replay", "Run"]
