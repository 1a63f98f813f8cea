"""The growing graph: labels and ids, parts, streams, and the index that each part extends.

What every kind of data shares is in this folder (`Part`, `Graph`, `Stream`); a kind of data is a
folder of its own, which nothing else here names.
"""

from dicgrl.graph.growing import Graph
from dicgrl.graph.knowledge import (
    KnowledgeGraph,
    KnowledgePart,
    KnowledgeStream,
    KnowledgeStreamBuilder,
)
from dicgrl.graph.network import NetworkGraph, NetworkPart, NetworkStream, NetworkStreamBuilder
from dicgrl.graph.part import SPLITS, Part
from dicgrl.graph.statistics import describe
from dicgrl.graph.stream import Stream
from dicgrl.graph.vocabulary import Vocabulary

__all__ = [
    "SPLITS",
    "Graph",
    "KnowledgeGraph",
    "KnowledgePart",
    "KnowledgeStream",
    "KnowledgeStreamBuilder",
    "NetworkGraph",
    "NetworkPart",
    "NetworkStream",
    "NetworkStreamBuilder",
    "Part",
    "Stream",
    "Vocabulary",
    "describe",
]
