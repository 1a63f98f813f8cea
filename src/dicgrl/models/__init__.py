"""Embedding models: what a vector is, how triples are scored. A model knows nothing of parts."""

from dicgrl.models.components import Components, Route
from dicgrl.models.convkb import ConvKB
from dicgrl.models.edges import PreparedEdges
from dicgrl.models.features import SparseRows
from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.models.network import BACKBONES, NetworkModel
from dicgrl.models.scorer import Scorer, scorer
from dicgrl.models.table import Table
from dicgrl.models.transe import TransE

__all__ = [
    "BACKBONES",
    "Components",
    "ConvKB",
    "KnowledgeModel",
    "NetworkModel",
    "PreparedEdges",
    "Route",
    "Scorer",
    "SparseRows",
    "Table",
    "TransE",
    "scorer",
]
