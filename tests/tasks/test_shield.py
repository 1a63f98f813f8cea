"""The bar of a question: the score of a rank among old entities that do not answer it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl import UserError
from dicgrl.learner import Learner
from dicgrl.models import Components, KnowledgeModel
from dicgrl.strategies.dicgrl import DiCGRL
from dicgrl.tasks.shield import bars
from dicgrl.training import NegativeSampler
from tests.growing import settings_of
from tests.slow import rows_of
from tests.strategies.test_dicgrl import begun

ENTITIES, NEWCOMERS = 12, 4
KNOWN = rows_of([(0, 0, 1), (0, 0, 2), (3, 1, 4), (5, 1, 4), (6, 0, 6), (7, 1, 0)])


def model_of(name: str, components: Components | None) -> KnowledgeModel:
    model = KnowledgeModel(name, 8, components, {"filters": 3} if name == "convkb" else {}, seed=5)
    model.grow(ENTITIES + NEWCOMERS, 2)
    return model


def slow_bar(model: KnowledgeModel, triple: list[int], side: int, rank: int) -> float:
    """Of all old entities that do not answer, the one that begins beyond that share of them."""
    scores = []
    for entity in range(ENTITIES):
        other = list(triple)
        other[side] = entity
        if other not in KNOWN.tolist():
            scores.append(model.score(*torch.tensor(other)[:, None]).item())
    return sorted(scores, reverse=True)[math.floor((rank - 0.5) / ENTITIES * len(scores))]


every_model = pytest.mark.parametrize("name", ["transe", "convkb"])
every_form = pytest.mark.parametrize(
    "components",
    [None, Components(4, 2), Components(4, 2, "nodes"), Components(4, 2, "triple")],
    ids=["plain", "divided", "nodes", "triple"],
)


@every_model
@every_form
@pytest.mark.parametrize("rank", [1, 2, 5, 12])
def test_bars_are_scores_of_that_rank_among_old_entities_that_do_not_answer(
    name: str, components: Components | None, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(name, components).train()
    sampler = NegativeSampler(KNOWN, ENTITIES, 2, torch.Generator().manual_seed(1))
    monkeypatch.setattr("dicgrl.tasks.shield._DRAWN", 1 << 14)
    found = bars(model, KNOWN, sampler, rank)
    assert model.training and not found.requires_grad
    expected = [[slow_bar(model, row, side, rank) for side in (0, 2)] for row in KNOWN.tolist()]
    torch.testing.assert_close(found, torch.tensor(expected))
    monkeypatch.setattr("dicgrl.tasks.shield.MEMORY_BOUND", 1)  # one triple at a time
    torch.testing.assert_close(bars(model, KNOWN, sampler, rank), found)


@every_model
@every_form
def test_blocks_keep_to_the_memory_bound(
    name: str, components: Components | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of all negatives, and ConvKB's feature maps, are counted where nothing is fused."""
    model = model_of(name, components)
    needed = 4 * model.active * (3 if name == "convkb" else 1)  # 3 filters
    heights = []
    score = model.score_links

    def watched(triples: Tensor, *others: Tensor) -> Any:
        heights.append(len(triples))
        return score(triples, *others)

    monkeypatch.setattr(model, "score_links", watched)
    monkeypatch.setattr("dicgrl.tasks.shield.MEMORY_BOUND", 1 << 22)
    sampler = NegativeSampler(KNOWN, ENTITIES, 2, torch.Generator().manual_seed(1))
    many = KNOWN.repeat(20, 1)
    bars(model, many, sampler, 3)
    assert sum(heights) == len(many)
    assert 1 < max(heights) <= (1 << 22) / (2 * 1024 * needed)


def test_a_rank_beyond_what_is_drawn_is_that_of_the_best_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of("transe", None)
    monkeypatch.setattr("dicgrl.tasks.shield._DRAWN", 2)
    sampler = NegativeSampler(KNOWN, ENTITIES, 2, torch.Generator().manual_seed(1))
    found = bars(model, KNOWN, sampler, 1)
    sampler.generator.manual_seed(1)
    heads, tails = sampler.corrupt(KNOWN, 4)
    _, scores, _ = model.score_links(KNOWN, heads, tails)
    assert torch.equal(found, scores.view(-1, 2, 2).amax(2))


def test_what_every_old_entity_answers_is_open_to_newcomers() -> None:
    model = model_of("transe", None)
    known = rows_of([(0, 0, entity) for entity in range(ENTITIES)])
    sampler = NegativeSampler(known, ENTITIES, 2, torch.Generator().manual_seed(1))
    of_heads, of_tails = bars(model, known[:1], sampler, 3)[0].tolist()
    assert of_heads < 0 < 1e6 < of_tails


def test_without_old_triples_or_newcomers_there_is_no_shield() -> None:
    run = begun("transe-divided", shield_rank=3)
    assert run.part is not None
    old = run.examples("train", 0, 1)
    assert run.shield(old) is not None
    assert run.shield(old[:0]) is None
    nobody = range(run.part.new_entities.stop, run.part.new_entities.stop)
    run.part = replace(run.part, new_entities=nobody)
    assert run.shield(old) is None


def test_a_first_part_that_is_empty_leaves_nothing_to_shield() -> None:
    settings = settings_of("transe-divided", "dicgrl", arrive_epochs=2, shield="all", shield_rank=3)
    learner = Learner(settings=settings, device="cpu")
    learner.learn([])
    learner.learn([("a", "likes", "b"), ("b", "likes", "c")])
    assert learner.run.model.num_entities == 3


@pytest.mark.parametrize("form", ["transe-divided", "convkb-divided"])
def test_newcomers_are_kept_behind_the_given_rank(form: str) -> None:
    """How many newcomers are among the first answers of old questions, with and without."""
    intruders = []
    for rank in (0, 4):
        run = begun(
            form, arrive_epochs=40, later_epochs=0, shield="all", shield_rank=rank, margin=0.0,
            lr=0.05, news_only=True,
        )  # fmt: skip
        assert run.part is not None
        DiCGRL(run.settings).learn(run)
        old, first = run.examples("train", 0, 1), run.part.new_entities.start
        above = 0
        for side in ("head", "tail"):
            for triple in old:
                scores = run.model.candidate_scores(triple[None], side, 0, run.model.num_entities)
                rest = scores[0, :first].sort(descending=True).values
                above += int((scores[0, first:] > rest[3]).sum())
        intruders.append(above)
    assert intruders[1] < 0.7 * intruders[0]


def test_the_rank_is_checked() -> None:
    with pytest.raises(UserError, match="shield_rank=-1"):
        settings_of("transe-divided", "dicgrl", shield_rank=-1)
