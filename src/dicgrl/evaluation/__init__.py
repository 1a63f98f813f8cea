"""How good a model is: ranks, metrics, calibration and measures of continual learning."""

from dicgrl.evaluation.accuracy import accuracy_metrics
from dicgrl.evaluation.metrics import ranking_metrics
from dicgrl.evaluation.ranks import Ranker, Ranks

__all__ = ["Ranker", "Ranks", "accuracy_metrics", "ranking_metrics"]
