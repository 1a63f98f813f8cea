"""The bar of a question: the score of a rank among old entities that do not answer it."""

from __future__ import annotations

import math

import pytest
import torch

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


@pytest.mark.parametrize("name", ["transe", "convkb"])
@pytest.mark.parametrize("components", [None, Components(4, 2)], ids=["plain", "divided"])
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
    monkeypatch.setattr("dicgrl.tasks.shield._MEMORY_BOUND", 1)  # one triple at a time
    torch.testing.assert_close(bars(model, KNOWN, sampler, rank), found)


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


def test_without_old_triples_there_are_no_bars() -> None:
    sampler = NegativeSampler(KNOWN, ENTITIES, 2, torch.Generator())
    assert bars(model_of("transe", None), KNOWN[:0], sampler, 3).shape == (0, 2)


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
    with pytest.raises(Exception, match="shield_rank=-1"):
        settings_of("transe-divided", "dicgrl", shield_rank=-1)
