"""The growing graph: labels and ids, parts, streams, and the index that each part extends.

This folder has what all kinds of data share (`Part`, `Graph`, `Stream`). Each kind of data has its
own folder, which nothing else here mentions.
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
