"""TransE: the scorer, and its fast paths for training and ranking."""

from dicgrl.models.transe.scorer import TransE

__all__ = ["TransE"]
