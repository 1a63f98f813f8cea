"""The growing graph: labels and ids, parts, streams, and the index that each part extends."""

from dicgrl.graph.builder import KnowledgeStreamBuilder, NetworkStreamBuilder
from dicgrl.graph.knowledge import KnowledgeGraph
from dicgrl.graph.network import NetworkGraph
from dicgrl.graph.part import SPLITS, KnowledgePart, NetworkPart, Part, Task
from dicgrl.graph.statistics import describe
from dicgrl.graph.stream import KnowledgeStream, NetworkStream, Stream
from dicgrl.graph.vocabulary import Vocabulary

__all__ = [
    "SPLITS",
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
    "Task",
    "Vocabulary",
    "describe",
]
