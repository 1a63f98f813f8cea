"""Embedding models: tables of vectors, and scores of triples. They know nothing about parts."""

from dicgrl.models.complex import ComplEx
from dicgrl.models.components import Components, Route
from dicgrl.models.convkb import ConvKB
from dicgrl.models.distmult import DistMult
from dicgrl.models.edges import PreparedEdges
from dicgrl.models.features import SparseRows
from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.models.network import BACKBONES, NetworkModel
from dicgrl.models.queries import QueryScorer
from dicgrl.models.rotate import RotatE
from dicgrl.models.scorer import Scorer, scorer
from dicgrl.models.table import Table
from dicgrl.models.transe import TransE

__all__ = [
    "BACKBONES",
    "ComplEx",
    "Components",
    "ConvKB",
    "DistMult",
    "KnowledgeModel",
    "NetworkModel",
    "PreparedEdges",
    "QueryScorer",
    "RotatE",
    "Route",
    "Scorer",
    "SparseRows",
    "Table",
    "TransE",
    "scorer",
]
