"""TransE: the scorer, and its fast ways to train and to rank."""

from dicgrl.models.transe.scorer import TransE

__all__ = ["TransE"]
