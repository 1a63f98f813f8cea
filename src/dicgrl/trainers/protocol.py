"""How link prediction is measured and selected, in words, which are stored with every result."""

from __future__ import annotations

from dicgrl.training.settings import LinkTraining

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


def negatives_of(training: LinkTraining) -> dict[str, str]:
    """The wording for 1-vs-all, and for negatives that may be known triples."""
    if training.negatives and not training.known_negatives:
        return {}
    which = "entities seen so far" if training.negatives else "all entities seen so far"
    but = "known triples among them" if training.known_negatives else "no known training triple"
    return {"negatives": f"{which}, {but}"}
