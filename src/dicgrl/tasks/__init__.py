"""The two tasks behind one face: `learn` a part, `measure` a split."""

from dicgrl.tasks.link_prediction import LinkRun
from dicgrl.tasks.node_classification import NodeRun

__all__ = ["LinkRun", "NodeRun"]
