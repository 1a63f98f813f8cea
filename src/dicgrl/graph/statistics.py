"""Counts of a stream, part by part: the paper's appendix C, and irregularities in the data."""

from __future__ import annotations

from dicgrl.graph.stream import Counts, Stream


def describe(stream: Stream) -> Counts:
    """Statistics of a stream as plain numbers, ready for JSON.

    `relations` counts the relations that a part may use, as the paper's table does: all that are
    known once it has arrived. Under `irregular`, for knowledge graphs:

    - `duplicates`: training triples that occur twice in their part (kept once by the graph);
    - `repeated`: training triples of an earlier part (dropped by the graph);
    - `self_loops`: triples whose head is their tail (kept);
    - `leaked`: valid and test triples that some training set so far contains (kept, reported);
    - `untrained`: entities of this part with no training triple so far.

    For networks: `duplicates` and `repeated` edges, in either direction (dropped), `self_loops`
    (dropped; every node gets one of its own), `isolated` new nodes without an edge, `featureless`
    new nodes whose features are all zero, `unlabelled` new nodes without a class.

    Example:
        >>> from dicgrl.graph import KnowledgeStream
        >>> stream = KnowledgeStream.from_labels("tiny", [[("a", "r", "b"), ("a", "r", "b")]])
        >>> describe(stream)["parts"][0]["irregular"]["duplicates"]
        1
    """
    return stream.describe()
