"""Episodic memory replay: new examples mixed with a few remembered ones (Parisi et al. 2019)."""

from __future__ import annotations

from dicgrl.strategies.ingredients import Composed, Replay


class EMR(Composed, name="emr"):
    """Replays a sample of old examples, drawn uniformly within the budget."""

    ingredients = (Replay,)
