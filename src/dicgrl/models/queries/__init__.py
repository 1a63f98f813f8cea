"""Scorers that turn a question into a query: what they share, on a CPU's fast paths included."""

from dicgrl.models.queries.likeness import Dot, Likeness, Modulus, Norm
from dicgrl.models.queries.product import ProductScorer
from dicgrl.models.queries.scorer import QueryScorer

__all__ = ["Dot", "Likeness", "Modulus", "Norm", "ProductScorer", "QueryScorer"]
