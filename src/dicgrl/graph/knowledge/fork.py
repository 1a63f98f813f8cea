"""A temporary copy of a graph; its cost depends on the labels, not on the triples."""

from __future__ import annotations

from copy import copy

from dicgrl.graph.knowledge.graph import KnowledgeGraph


def fork_graph(graph: KnowledgeGraph) -> KnowledgeGraph:
    """A copy that can be changed independently; meanwhile the graph must not change.

    Example:
        >>> from dicgrl.graph import KnowledgeStream
        >>> graph = KnowledgeGraph()
        >>> part = KnowledgeStream.from_labels("x", [[("a", "r", "b")]])[0]
        >>> added = fork_graph(graph).add(part)
        >>> graph.knows_all_of(part)
        False
    """
    made = copy(graph)
    made.entities, made.relations = graph.entities.copy(), graph.relations.copy()
    made._facts = graph._facts.fork()
    return made
