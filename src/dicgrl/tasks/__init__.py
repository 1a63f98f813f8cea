"""Tasks: a registry of what ties a graph, a model, questions and measures together.

To add one, subclass `Task` under a name; nothing else names the tasks there are. Importing this
package is light: PyTorch is loaded when a task is asked for more than its names.
"""

from dicgrl.tasks.links import LinkPrediction
from dicgrl.tasks.nodes import NodeClassification
from dicgrl.tasks.task import DEFAULT_STRATEGY, Task, known_models, task_named, task_of_model

__all__ = [
    "DEFAULT_STRATEGY",
    "LinkPrediction",
    "NodeClassification",
    "Task",
    "known_models",
    "task_named",
    "task_of_model",
]
