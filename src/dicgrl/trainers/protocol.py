"""How link prediction is measured and selected, in words: every result carries them."""

from __future__ import annotations

LINK_PROTOCOL = {
    "ranking": "filtered, head and tail side, realistic ties",
    "candidates": "all entities seen so far",
    "others": "mrr_others, hits@k_others: without the question's own entity, unless its "
    "relation is reflexive",
    "snapshot": "mrr_snapshot, hits@k_snapshot, where asked for: candidates and filter are those "
    "after the test set's own part",
    "negatives": "entities seen so far, no known training triple",
    "selection": "best validation MRR",
}


def negatives_of(known: bool) -> dict[str, str]:
    """What differs where negatives may be known triples."""
    return {"negatives": "entities seen so far, known triples among them"} if known else {}
