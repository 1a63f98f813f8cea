"""A graph that goes its own way for a while, at the cost of its labels and not of its triples."""

from __future__ import annotations

from copy import copy

from dicgrl.graph.knowledge.graph import KnowledgeGraph


def fork_graph(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The same graph, to be changed on its own; while the fork is used, the graph must rest.

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
