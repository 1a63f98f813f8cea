"""The metrics are PyKEEN's: same embeddings, same triples, same realistic filtered numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dicgrl.datasets import load_stream
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.graph import KnowledgePart
from dicgrl.models import KnowledgeModel
from dicgrl.training import LinkObjective, NegativeSampler, Schedule, TrainingSet, fit, make_loss

pytest.importorskip("pykeen")
DIM = 8


@pytest.fixture(scope="module")
def part() -> KnowledgePart:
    part = load_stream("films")[0]
    assert isinstance(part, KnowledgePart)
    return part


@pytest.fixture(scope="module")
def model(part: KnowledgePart) -> KnowledgeModel:
    """TransE after an epoch, rounded so that no score depends on the order of summation."""
    generator = torch.Generator().manual_seed(0)
    train = torch.from_numpy(part.train.copy())
    model = KnowledgeModel("transe", DIM, options={"p": 1})
    model.grow(part.num_entities, part.num_relations)
    sampler = NegativeSampler(train, part.num_entities, part.num_relations, generator)
    objective = LinkObjective(sampler, make_loss("selfadversarial", 3.0, 1.0), 8)
    schedule = Schedule(epochs=1, batch=2048, lr=0.02)
    lesson = TrainingSet(lambda t, w: objective(model, t, w), train)
    fit(model, lesson, schedule, generator)
    for table in model.tables().values():
        table.rows.mul_(16).round_().div_(16)
    return model


def test_filtered_realistic_metrics_are_those_of_pykeen(
    part: KnowledgePart, model: KnowledgeModel
) -> None:
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import TransE
    from pykeen.triples import CoreTriplesFactory

    asked = torch.from_numpy(part.test[:: max(1, len(part.test) // 100)].copy())
    known = torch.from_numpy(np.concatenate([part.train, part.valid, part.test]))
    ranks = Ranker(known, part.num_relations).rank(model, asked, range(part.num_entities))
    assert (ranks.equal > 0).double().mean() > 0.05  # ties do occur
    mine = ranking_metrics(ranks)

    factory = CoreTriplesFactory.create(
        torch.from_numpy(part.train.copy()),
        num_entities=part.num_entities,
        num_relations=part.num_relations,
    )
    theirs = TransE(triples_factory=factory, embedding_dim=DIM, scoring_fct_norm=1, random_seed=0)
    with torch.no_grad():
        theirs.entity_representations[0]._embeddings.weight.copy_(model.entities.rows)
        theirs.relation_representations[0]._embeddings.weight.copy_(model.relations.rows)
    result = RankBasedEvaluator(filtered=True).evaluate(
        theirs,
        asked,
        additional_filter_triples=[known],
        batch_size=64,
        use_tqdm=False,
    )
    for name, key in (
        ("mrr", "inverse_harmonic_mean_rank"),
        ("hits@1", "hits_at_1"),
        ("hits@3", "hits_at_3"),
        ("hits@10", "hits_at_10"),
        ("mean_rank", "arithmetic_mean_rank"),
    ):
        expected = result.get_metric(f"both.realistic.{key}")
        assert mine[name] == pytest.approx(expected, abs=1e-6, rel=1e-6)
    for number, side in enumerate(("head", "tail")):
        realistic = ranks.realistic[number].double()
        expected = result.get_metric(f"{side}.realistic.inverse_harmonic_mean_rank")
        assert realistic.reciprocal().mean().item() == pytest.approx(expected, abs=1e-6)
        for kind, values in (("optimistic", ranks.optimistic), ("pessimistic", ranks.pessimistic)):
            expected = result.get_metric(f"{side}.{kind}.arithmetic_mean_rank")
            assert values[number].double().mean().item() == pytest.approx(expected, rel=1e-6)
