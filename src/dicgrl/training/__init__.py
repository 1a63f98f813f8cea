"""Training: negatives, losses, an optimiser that only updates touched rows, and the loop."""

from dicgrl.training.adam import RowAdam
from dicgrl.training.known import KnownAnswers
from dicgrl.training.loop import DivergedError, EpochReport, FitReport, TrainingSet, fit
from dicgrl.training.losses import LOSSES, make_loss
from dicgrl.training.objective import KeptClasses, LinkObjective, NodeObjective
from dicgrl.training.positives import Positives
from dicgrl.training.sampling import NegativeSampler
from dicgrl.training.schedule import Schedule

__all__ = [
    "LOSSES",
    "DivergedError",
    "EpochReport",
    "FitReport",
    "KeptClasses",
    "KnownAnswers",
    "LinkObjective",
    "NegativeSampler",
    "NodeObjective",
    "Positives",
    "RowAdam",
    "Schedule",
    "TrainingSet",
    "fit",
    "make_loss",
]
