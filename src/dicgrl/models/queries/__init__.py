"""What scorers with queries have in common, including fast paths on a CPU."""

from dicgrl.models.queries.likeness import Dot, Likeness, Modulus, Norm
from dicgrl.models.queries.product import ProductScorer
from dicgrl.models.queries.scorer import QueryScorer

__all__ = ["Dot", "Likeness", "Modulus", "Norm", "ProductScorer", "QueryScorer"]
