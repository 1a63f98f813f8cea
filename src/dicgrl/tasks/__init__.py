"""The two tasks behind one face: a `Run` takes parts, gives examples and losses, and measures."""

from dicgrl.tasks.base import Replay, Run
from dicgrl.tasks.link_prediction import LinkRun
from dicgrl.tasks.node_classification import NodeRun

__all__ = ["LinkRun", "NodeRun", "Replay", "Run"]
