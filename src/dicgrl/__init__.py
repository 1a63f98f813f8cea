"""Graph embeddings that keep learning while the graph grows.

Where to begin:

- `Learner` learns facts part by part, answers questions about them, saves itself and loads.
- `Run` is a stored run, a folder with versions; it has a method for every command.
- `run` learns a whole stream of parts with one or several strategies, as `dicgrl run` does.
- `nightly` does a night's work on a run: test, learn, check, commit, report.
- `load_stream` loads a known dataset, `read_stream` reads files of one's own.
- `Settings` holds all settings of a model and a strategy, and checks them.

Errors that a user can correct are `UserError`; all errors derive from `DicgrlError`.

Example:
    >>> import dicgrl
    >>> stream = dicgrl.load_stream("films")
    >>> stream.task
    'link-prediction'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dicgrl.datasets import load_stream
from dicgrl.errors import (
    BusyError,
    DataError,
    DataWarning,
    DicgrlError,
    FailureError,
    ModelWarning,
    UnknownLabelError,
    UserError,
)
from dicgrl.graph import (
    KnowledgeGraph,
    KnowledgePart,
    KnowledgeStream,
    NetworkGraph,
    NetworkPart,
    NetworkStream,
    Part,
    Stream,
    Vocabulary,
    describe,
)
from dicgrl.readers import NetworkFacts, Reading, read_stream, write_stream

if TYPE_CHECKING:
    from dicgrl.ask.explain import Explanation
    from dicgrl.evaluation.continual import Evaluation
    from dicgrl.folder import Run
    from dicgrl.jobs.plan import run
    from dicgrl.learner import Learner, PartReport, Prediction
    from dicgrl.nights.job import NightOptions, NightOutcome, nightly
    from dicgrl.settings import Settings
    from dicgrl.tasks import Task
    from dicgrl.training import DivergedError

__version__ = "0.1.0"

__all__ = [
    "BusyError",
    "DataError",
    "DataWarning",
    "DicgrlError",
    "DivergedError",
    "Evaluation",
    "Explanation",
    "FailureError",
    "KnowledgeGraph",
    "KnowledgePart",
    "KnowledgeStream",
    "Learner",
    "ModelWarning",
    "NetworkFacts",
    "NetworkGraph",
    "NetworkPart",
    "NetworkStream",
    "NightOptions",
    "NightOutcome",
    "Part",
    "PartReport",
    "Prediction",
    "Reading",
    "Run",
    "Settings",
    "Stream",
    "Task",
    "UnknownLabelError",
    "UserError",
    "Vocabulary",
    "describe",
    "load_stream",
    "nightly",
    "read_stream",
    "run",
    "write_stream",
]


# Imported on first use, as PyTorch takes seconds to import.
_LATER = {
    "DivergedError": "dicgrl.training",
    "Evaluation": "dicgrl.evaluation.continual",
    "Explanation": "dicgrl.ask.explain",
    "Learner": "dicgrl.learner",
    "NightOptions": "dicgrl.nights.job",
    "NightOutcome": "dicgrl.nights.job",
    "PartReport": "dicgrl.learner",
    "Prediction": "dicgrl.learner",
    "Run": "dicgrl.folder",
    "Settings": "dicgrl.settings",
    "Task": "dicgrl.tasks",
    "nightly": "dicgrl.nights.job",
    "run": "dicgrl.jobs.plan",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
