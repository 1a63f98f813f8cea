"""What models are asked for while a test runs."""

from __future__ import annotations

import pytest
from torch import Tensor

from dicgrl.models import KnowledgeModel


def scored_blocks(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The scores that `candidate_scores` gives from now on, one entry for each call."""
    blocks: list[Tensor] = []
    original = KnowledgeModel.candidate_scores

    def watched(self: KnowledgeModel, *arguments: object) -> Tensor:
        blocks.append(original(self, *arguments))  # type: ignore[arg-type]
        return blocks[-1]

    monkeypatch.setattr(KnowledgeModel, "candidate_scores", watched)
    return blocks
