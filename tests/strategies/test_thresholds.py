"""The threshold of a question: the score of a rank among old entities that do not answer it."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dicgrl import UserError
from dicgrl.models import Components, KnowledgeModel
from dicgrl.strategies.thresholds import rank_thresholds
from tests.growing import activator, settings_of, strategy_of
from tests.slow import rows_of
from tests.strategies.test_dicgrl import begun

ENTITIES, NEWCOMERS = 12, 4
KNOWN = rows_of([(0, 0, 1), (0, 0, 2), (3, 1, 4), (5, 1, 4), (6, 0, 6), (7, 1, 0)])


def model_of(name: str, components: Components | None) -> KnowledgeModel:
    model = KnowledgeModel(name, 8, components, {"filters": 3} if name == "convkb" else {}, seed=5)
    model.grow(ENTITIES + NEWCOMERS, 2)
    return model


def slow_thresholds(model: KnowledgeModel, triple: list[int], side: int) -> list[float]:
    """The scores of old entities that do not answer, the highest first."""
    scores = []
    for entity in range(ENTITIES):
        other = list(triple)
        other[side] = entity
        if other not in KNOWN.tolist():
            scores.append(model.score(*torch.tensor(other)[:, None]).item())
    return sorted(scores, reverse=True)


def thresholds_of(
    model: KnowledgeModel, triples: Tensor, rank: int, known: Tensor = KNOWN
) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return rank_thresholds(model, triples, known, ENTITIES, rank, generator)


every_model = pytest.mark.parametrize("name", ["transe", "convkb", "complex", "rotate"])
every_form = pytest.mark.parametrize(
    "components",
    [None, Components(4, 2), Components(4, 2, "nodes"), Components(4, 2, "triple")],
    ids=["plain", "divided", "nodes", "triple"],
)


@every_model
@every_form
def test_thresholds_are_scores_of_that_rank_among_old_entities_that_do_not_answer(
    name: str, components: Components | None
) -> None:
    model = model_of(name, components).train()
    scores = [[slow_thresholds(model, row, side) for side in (0, 2)] for row in KNOWN.tolist()]
    for rank in (1, 2, 5, 12):
        found = thresholds_of(model, KNOWN, rank)
        assert model.training and not found.requires_grad
        # There may be fewer of them: then it is the last one's.
        expected = [[listed[min(rank, len(listed)) - 1] for listed in row] for row in scores]
        torch.testing.assert_close(found, torch.tensor(expected))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dicgrl.strategies.thresholds.MEMORY_BOUND", 1)  # one triple at a time
            torch.testing.assert_close(thresholds_of(model, KNOWN, rank), found)
            patch.setattr("dicgrl.strategies.thresholds._RELATIONS", 1)  # one relation at a time
            torch.testing.assert_close(thresholds_of(model, KNOWN, rank), found)


@pytest.mark.parametrize("rank", [5, 60])
@pytest.mark.parametrize("divided", [False, True])
def test_ranks_are_met_on_average_when_few_of_the_entities_are_drawn(
    rank: int, divided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    entities, draws = 600, 100
    model = KnowledgeModel("transe", 8, Components(4, 2) if divided else None, seed=5)
    model.grow(entities, 2)
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(entities, (2, 100), generator=generator)
    known = torch.stack([ends[0], torch.arange(100) % 2, ends[1]], 1)
    asked = known[:1]
    monkeypatch.setattr("dicgrl.strategies.thresholds._DRAWN", 40)
    scores = model.candidate_scores(asked, "tail", 0, entities)[0]
    same = (known[:, :2] == asked[:, :2]).all(1)
    scores[known[same, 2]] = -torch.inf
    ranks = []
    for _ in range(draws):
        threshold = rank_thresholds(model, asked, known, entities, rank, generator)[0, 1]
        ranks.append(int((scores >= threshold).sum()))
    spread = statistics.stdev(ranks) / draws**0.5
    step = entities / 40  # what one of the drawn stands for
    assert abs(statistics.mean(ranks) - rank) < step / 2 + 4 * spread


def test_first_ranks_are_told_apart_among_entities_that_a_relation_is_known_to_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are all looked at, so that ranks among them do not depend on what else is drawn."""
    entities = 5_000
    model = KnowledgeModel("transe", 8, seed=5)
    model.grow(entities, 1)
    tails = torch.arange(100, 120)
    known = torch.stack([torch.arange(20), torch.zeros(20, dtype=torch.long), tails], 1)
    asked = known[:1]
    with torch.no_grad():  # these come first in every question for a tail
        model.entities.rows[100:120] = model.entities.rows[0] + model.relations.rows[0]
        model.entities.rows[100:120] += torch.linspace(0, 0.1, 20)[:, None]
    monkeypatch.setattr("dicgrl.strategies.thresholds._DRAWN", 30)
    scores = model.candidate_scores(asked, "tail", 101, 120)[0].sort(descending=True).values
    for rank in (1, 2, 7, 19):
        found = rank_thresholds(
            model, asked, known, entities, rank, torch.Generator().manual_seed(rank)
        )
        torch.testing.assert_close(found[0, 1], scores[rank - 1])


@every_model
@every_form
def test_blocks_keep_to_the_memory_bound(
    name: str, components: Components | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of all negatives, and ConvKB's feature maps, are counted where they are made."""
    model = model_of(name, components)
    needed = 4 * model.active * (3 if name == "convkb" else 1)  # 3 filters
    if name == "transe" and model.attention_weight is None:
        needed = 4 + 8  # vectors are made block by block: scores and ids are all there is
    heights = []
    score = model.score_links

    def watched(triples: Tensor, *others: Tensor) -> Any:
        heights.append(len(triples))
        return score(triples, *others)

    monkeypatch.setattr(model, "score_links", watched)
    monkeypatch.setattr(
        "dicgrl.strategies.thresholds.MEMORY_BOUND", 1 << 23
    )  # a CPU takes a sixteenth
    questions = 2 * ENTITIES  # of each side
    many = rows_of([(i, r, (i + r) % ENTITIES) for i in range(ENTITIES) for r in range(2)])
    thresholds_of(model, many.repeat(20, 1), 3)
    assert sum(heights) == 2 * questions  # one that is asked often is ranked once
    assert 1 < max(heights) <= (1 << 19) / ((512 + ENTITIES) * needed)


def test_what_every_old_entity_answers_is_open_to_newcomers() -> None:
    model = model_of("transe", None)
    known = rows_of([(0, 0, entity) for entity in range(ENTITIES)])
    of_heads, of_tails = thresholds_of(model, known[:1], 3, known)[0].tolist()
    assert of_heads < 0 < 1e6 < of_tails


def test_without_old_triples_or_newcomers_there_is_no_shield() -> None:
    trainer = begun("transe-divided", shield_rank=3)
    assert trainer.part is not None
    old = trainer.examples("train", 0, 1)
    assert activator(trainer).shield(old) is not None
    assert activator(trainer).shield(old[:0]) is None
    nobody = range(trainer.part.new_entities.stop, trainer.part.new_entities.stop)
    trainer.part = replace(trainer.part, new_entities=nobody)
    assert activator(trainer).shield(old) is None


@pytest.mark.parametrize("form", ["transe-divided", "convkb-divided"])
def test_newcomers_are_kept_behind_the_given_rank(form: str) -> None:
    """How many newcomers are among the first answers of old questions, with and without."""
    intruders = [
        sum(_intruders(form, seed, shield_rank=rank) for seed in (0, 2)) for rank in (0, 4)
    ]
    assert intruders[1] < 0.8 * intruders[0]


def _intruders(form: str, seed: int, **changes: Any) -> int:
    trainer = begun(
        form, seed, arrive_epochs=20, later_epochs=0, shield="all", margin=0.0, lr=0.05,
        news_only=True, **changes,
    )  # fmt: skip
    assert trainer.part is not None
    strategy_of(trainer.settings).learn(trainer)
    old, first = trainer.examples("train", 0, 1), trainer.part.new_entities.start
    above = 0
    for side in ("head", "tail"):
        scores = trainer.model.candidate_scores(old, side, 0, trainer.model.num_entities)
        fourth = scores[:, :first].sort(descending=True).values[:, 3:4]
        above += int((scores[:, first:] > fourth).sum())
    return above


def test_the_rank_is_checked() -> None:
    with pytest.raises(UserError, match="shield_rank=-1"):
        settings_of("transe-divided", "dicgrl", shield_rank=-1)
