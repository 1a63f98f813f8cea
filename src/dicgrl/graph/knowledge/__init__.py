"""Knowledge graphs: facts (head, relation, tail) that arrive in parts."""

from dicgrl.graph.knowledge.graph import KnowledgeGraph
from dicgrl.graph.knowledge.keys import MAX_ENTITIES, MAX_RELATIONS, triple_keys
from dicgrl.graph.knowledge.part import KnowledgePart
from dicgrl.graph.knowledge.stream import KnowledgeStream, KnowledgeStreamBuilder

__all__ = [
    "MAX_ENTITIES",
    "MAX_RELATIONS",
    "KnowledgeGraph",
    "KnowledgePart",
    "KnowledgeStream",
    "KnowledgeStreamBuilder",
    "triple_keys",
]
