"""Scorers that turn a question into a query: what they share, on a CPU's fast paths included."""

from dicgrl.models.queries.likeness import Dot, Likeness, Modulus
from dicgrl.models.queries.scorer import QueryScorer

__all__ = ["Dot", "Likeness", "Modulus", "QueryScorer"]
