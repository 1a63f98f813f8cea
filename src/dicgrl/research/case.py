"""The case study (the paper's figure 8): what a newcomer activates, what relations attend to.

The parts before the newcomer's are learned; its part is taken in but not learned yet, which is the
moment at which DiCGRL activates old triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist
from scipy.stats import mannwhitneyu

from dicgrl.common.devices import device_name
from dicgrl.errors import UserError
from dicgrl.evaluation.disentanglement import overlap
from dicgrl.graph import KnowledgeStream, Stream
from dicgrl.graph.arrays import IntArray
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.strategies.activation import Activation
from dicgrl.strategies.activator_links import would_activate
from dicgrl.trainers import LinkTrainer

NEW_TRIPLES = 2  # shown of the newcomer
NEIGHBOURS = 4  # shown of each new triple, of order 1
FURTHER = 1  # shown of order 2 for each of those
RELATIONS = 24  # in the heat map


def study_case(
    stream: Stream, recipe: Recipe, case: Sequence[str], *, seed: int = 0, device: str = "auto"
) -> dict[str, Any]:
    """Learn until a newcomer arrives and look at what it activates.

    Args:
        stream: A knowledge graph.
        recipe: Settings of dicgrl.
        case: The newcomer, the entity whose relations are looked at, and any entities that the
            newcomer's triples should be about; names or labels. A stream that does not know them
            gets its own: the newcomer with the most triples, the entity with the most relations.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
    """
    if not isinstance(stream, KnowledgeStream):
        raise UserError("the case study is about triples; this stream is a network")
    newcomer, entity, *others = case
    label, number = _newcomer(stream, newcomer)
    learner = Learner(settings=recipe.settings, seed=seed, device=device, names=stream.names)
    seconds = sum(learner.learn(stream[i]).learn_seconds for i in range(number))
    trainer = learner.trainer
    assert isinstance(trainer, LinkTrainer)
    trainer.take(stream[number])
    learner.strategy.prepare(trainer)
    return {
        "dataset": stream.name,
        "task": stream.task,
        "model": recipe.settings.model,
        "strategy": recipe.settings.strategy,
        "recipe": recipe.name,
        "seed": seed,
        "device": device_name(trainer.device),
        "settings": recipe.settings.as_dict(),
        "learn_seconds": seconds,
        "part": number,
        "newcomer": stream.names.get(label, label),
        "new": [
            _activation(learner, trainer, row)
            for row in _new_triples(learner, trainer, label, others)[:NEW_TRIPLES]
        ],
        "heat": _heat(learner, trainer, entity),
        "separation": _separation(trainer),
    }


def _newcomer(stream: KnowledgeStream, name: str) -> tuple[str, int]:
    """Label of the newcomer and the part that it arrives with."""
    if len(stream) < 2:
        raise UserError(f"{stream.name}: nobody is new in a stream of one part")
    called = [label for label in stream.entities if name in (label, stream.names.get(label))]
    for part in list(stream)[1:]:
        found = [label for label in called if stream.entities.ids([label])[0] in part.new_entities]
        if found:
            return found[0], part.index
    part = stream[min(2, len(stream) - 1)]
    met = np.bincount(part.train[:, [0, 2]].ravel(), minlength=part.num_entities)
    first = part.new_entities.start
    most = first + int(np.argmax(met[first:])) if len(part.new_entities) else int(np.argmax(met))
    return stream.entities.labels([most])[0], part.index


def _new_triples(
    learner: Learner, trainer: LinkTrainer, label: str, others: Sequence[str]
) -> list[IntArray]:
    """The newcomer's triples with old entities; those about `others` first."""
    assert trainer.part is not None
    graph = trainer.graph
    newcomer = int(graph.entities.ids([label])[0])
    train = trainer.part.train
    other = np.where(train[:, 0] == newcomer, train[:, 2], train[:, 0])
    about = (train[:, [0, 2]] == newcomer).any(1) & (other < trainer.part.new_entities.start)
    rows, ends = train[about], other[about]
    wanted = {name: place for place, name in enumerate(others)}
    readable = [learner.names.of(text) for text in graph.entities.labels(ends)]
    best = sorted(range(len(rows)), key=lambda i: (wanted.get(readable[i], len(wanted)), i))
    distinct: dict[int, IntArray] = {}
    for i in best:  # one triple for each other end
        distinct.setdefault(int(ends[i]), rows[i])
    return list(distinct.values())


def _activation(learner: Learner, trainer: LinkTrainer, row: IntArray) -> dict[str, Any]:
    """What a new triple activates: how many, and the most important of them, connected."""
    old = trainer.count("train", 0, trainer.newest)
    found, chosen, alpha = would_activate(trainer, row, learner.settings.orders, old)
    triples = trainer.graph.train
    met = {int(row[0]), int(row[2])}
    near = _best(triples, found.at(found.order == 1), NEIGHBOURS, met)
    shown = [_shown(learner, trainer, near, i) for i in range(len(near))]
    ends = triples[found.rows][:, [0, 2]]
    for at in near.rows:
        far = np.setdiff1d(triples[at, [0, 2]], row[[0, 2]])
        beyond = found.at((found.order == 2) & np.isin(ends, far).any(1))
        beyond = _best(triples, beyond, FURTHER, met)
        shown += [_shown(learner, trainer, beyond, i) for i in range(len(beyond))]
    _, around = trainer.graph.triples_of(np.unique(row[[0, 2]]))
    around = np.unique(around[around < old])
    closed = np.setdiff1d(around, found.rows[found.order == 1])
    return {
        "triple": learner.names.triple(trainer.graph, row),
        "components": {str(k): weight for k, weight in zip(chosen.tolist(), alpha, strict=True)},
        "neighbours": len(around),
        "activated": {str(order): int((found.order == order).sum()) for order in (1, 2)},
        "old": old,
        "shown": shown,
        "closed": sorted({learner.names.triple(trainer.graph, triples[i])[1] for i in closed}),
    }


def _best(triples: IntArray, found: Activation, count: int, met: set[int]) -> Activation:
    """The links of highest merit that bring another relation or, then, an entity not met yet."""
    chosen: list[int] = []
    relations: set[int] = set()
    ranked = np.argsort(-found.merit, kind="stable").tolist()
    for any_relation in (False, True):
        for i in ranked:
            head, relation, tail = map(int, triples[found.rows[i]])
            brings = not {head, tail} <= met and (any_relation or relation not in relations)
            if len(chosen) < count and brings:
                chosen.append(i)
                relations.add(relation)
                met |= {head, tail}
    return found.at(np.array(chosen, dtype=np.int64))


def _shown(learner: Learner, trainer: LinkTrainer, found: Activation, i: int) -> dict[str, Any]:
    bits = int(found.common[i])
    return {
        "triple": learner.names.triple(trainer.graph, trainer.graph.train[found.rows[i]]),
        "order": int(found.order[i]),
        "shared": [k for k in range(trainer.model.count) if bits >> k & 1],
        "merit": float(found.merit[i]),
    }


def _heat(learner: Learner, trainer: LinkTrainer, name: str) -> dict[str, Any]:
    """Attention of the relations of one entity, similar ones side by side."""
    graph, train = trainer.graph, trainer.graph.train
    try:
        entity = learner.names.find(name, graph.entities)
    except UserError:  # this stream does not know it
        pairs = np.unique(np.concatenate([train[:, :2], train[:, [2, 1]]]), axis=0)
        entity = int(np.bincount(pairs[:, 0]).argmax())
    _, rows = graph.triples_of(np.array([entity]))
    relations, count = np.unique(train[rows, 1], return_counts=True)
    relations = relations[np.argsort(-count, kind="stable")[:RELATIONS]]
    alpha = attention(trainer)[relations]
    if len(relations) > 2:
        tree = linkage(pdist(alpha), method="average", optimal_ordering=True)
        together = leaves_list(tree)
        relations, alpha = relations[together], alpha[together]
    label = graph.entities.labels([entity])[0]
    return {
        "entity": learner.names.of(label),
        "relations": [learner.names.of(r) for r in graph.relations.labels(relations)],
        "attention": alpha.tolist(),
    }


@torch.no_grad()
def attention(trainer: LinkTrainer) -> Any:
    """Attention weights of every relation, [relations, K]."""
    if trainer.model.attention is None:
        raise UserError("the case study looks at relations; it needs attention=relation")
    return trainer.model.attention.rows.softmax(1).cpu().numpy()


def _separation(trainer: LinkTrainer) -> float | None:
    """Do relations of one domain share components? 0.5 is chance; None where names tell none.

    The domain of a Freebase relation is the first word of its path, such as film or location.
    """
    labels = list(trainer.graph.relations)[: trainer.model.num_relations]
    domains = [label.split("/")[1] if label.startswith("/") else label for label in labels]
    domain = np.unique(domains, return_inverse=True)[1]
    first, second = np.triu_indices(len(labels), 1)
    same = domain[first] == domain[second]
    if same.all() or not same.any():
        return None
    assert trainer.model.components is not None
    top = trainer.model.components.top
    chosen = np.argsort(-attention(trainer), axis=1, kind="stable")[:, :top]
    shared = overlap(chosen, trainer.model.count)[first, second]
    greater = mannwhitneyu(shared[same], shared[~same]).statistic  # pairs, ties counting half
    return float(greater / (same.sum() * (~same).sum()))
