"""Known facts that speak for a triple, and how much each of them does in the eyes of the model.

Five kinds: facts of the same two entities, in the same direction (`pair`) or the other (`inverse`);
two facts that lead from one to the other (`path`); the same fact of a similar entity (`alike`); and
other facts of one of the two (`about`).

The contribution of a fact says whether it asks the same of an entity as the triple does. Suppose
that nothing were known of the entity, so that its vector is the mean of all. A first step of
learning would move that vector along the gradient of a fact's score. The contribution is the cosine
of the angle between that step for the fact and that for the triple: 1 where both ask for the same,
0 where they have nothing to do with each other, below 0 where one speaks against the other. It
needs no more than a score, so that every decoder has it, and for a bilinear decoder it does not
depend on where the step begins. Of facts that share both entities, and of the two facts of a path,
it is the mean.

Beside it stands how often the rule behind the kind holds in the graph: of other pairs of entities
that are linked in the same way, the share that has the relation; for a fact about one entity, of
other entities with that fact the share that has the triple's relation to the same other end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from dicgrl.ask.names import Names
from dicgrl.graph import KnowledgeGraph
from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray
from dicgrl.models.mode import evaluating
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL

FAN = 256  # facts of an entity that are looked at
_LINKS = 500  # of other pairs, to see how often a rule holds
_FAN_OF_LINK = 64  # facts of each that are looked at for a second step


@dataclass(frozen=True, slots=True)
class Support:
    """Known facts that speak for a triple.

    Attributes:
        kind: pair, inverse, path, alike or about.
        facts: One fact, or the two of a path; labels, readable where there are names.
        contribution: How much they ask the same as the triple, from -1 to 1.
        holds: Of other pairs that are linked alike, the share that has the relation; None for
            similar entities, and where there are no others.
        seen: How many other pairs that is.
    """

    kind: str
    facts: list[tuple[str, str, str]]
    contribution: float
    holds: float | None = None
    seen: int = 0


def support_for(trainer: LinkTrainer, names: Names, triple: IntArray, k: int) -> list[Support]:
    """Known facts that speak for a triple [3], the strongest first; at most k of each kind."""
    graph = trainer.graph
    ends = {end: _Around(trainer, triple, end) for end in (HEAD, TAIL)}
    found: list[tuple[float, str, list[IntArray]]] = []
    for kind, direct in (("pair", (HEAD, TAIL)), ("inverse", (TAIL, HEAD))):
        rows, strength = _between(graph, triple, ends, direct)
        found += [(s, kind, [graph.train[r]]) for r, s in _strongest(rows, strength, k)]
    paths, strength = _paths(triple, ends)
    found += [
        (s, "path", [graph.train[r] for r in paths[int(at)]])
        for at, s in _strongest(np.arange(len(paths)), strength, k)
    ]
    for end, around in ends.items():
        rows, strength = _about(graph, triple, end, around)
        found += [(s, "about", [graph.train[r]]) for r, s in _strongest(rows, strength, k)]
    rows, strength = _alike(trainer, triple, k)
    found += [(s, "alike", [graph.train[r]]) for r, s in _strongest(rows, strength, k)]
    found.sort(key=lambda entry: -entry[0])
    rules = _Rules(graph, triple)
    return [
        Support(kind, [names.triple(graph, fact) for fact in facts], s, *rules.holds(kind, facts))
        for s, kind, facts in found
    ]


class _Around:
    """Facts around one end of a triple.

    Attributes:
        rows: Positions of the facts, [n]; those of a hub are a sample.
        others: What each links the entity to, [n].
        strength: The contribution of each, as far as this entity goes, [n].
    """

    def __init__(self, trainer: LinkTrainer, triple: IntArray, end: int) -> None:
        graph, entity = trainer.graph, int(triple[end])
        # A hub's facts are drawn alike each time.
        _, rows = graph.sample_of(np.array([entity]), FAN, np.random.default_rng(0))
        facts = graph.train[rows]
        kept = ~(facts == triple).all(1) & (facts[:, HEAD] != facts[:, TAIL])
        self.rows, facts = rows[kept], facts[kept]
        self.is_head = facts[:, HEAD] == entity
        self.others = np.where(self.is_head, facts[:, TAIL], facts[:, HEAD])
        self.strength = agreement(trainer, triple, end, facts, np.where(self.is_head, HEAD, TAIL))


def agreement(
    trainer: LinkTrainer, triple: IntArray, end: int, facts: IntArray, ends: IntArray
) -> FloatArray:
    """Cosines of what a triple and facts ask of an entity that nothing is known of, [n].

    Args:
        trainer: Holds the model.
        triple: The triple, [3].
        end: Where the entity stands in it: the column of the head or the tail.
        facts: Facts that mention the entity, [n, 3].
        ends: Where it stands in each, [n].
    """
    found = np.zeros(len(facts), dtype=np.float32)
    asked = pulls(trainer, triple[None], end)
    for column in (HEAD, TAIL):
        at = ends == column
        if at.any():
            found[at] = F.cosine_similarity(pulls(trainer, facts[at], column), asked).cpu().numpy()
    return found


def pulls(trainer: LinkTrainer, facts: IntArray, end: int) -> Tensor:
    """Gradients of facts' scores by the vector of one end, where it is the mean of all, [n, d]."""
    model = trainer.model
    triples = trainer.on_device(facts)
    vectors = model.entities.rows.view(model.num_entities, model.count, model.size)
    mean = vectors.mean(0, dtype=model.entities.learned)
    unknown = mean.expand(len(facts), -1, -1).clone().requires_grad_()
    with torch.no_grad():
        route = model.route(*triples.unbind(1))
        given = model.entity_vectors(triples[:, TAIL if end == HEAD else HEAD], route)
        relation = model.relation_vectors(triples[:, RELATION], route)
    with evaluating(model), torch.enable_grad():
        used = unknown
        if route is not None:  # what a triple does not use of it gets no gradient
            used = unknown.gather(1, route.chosen[..., None].expand(-1, -1, model.size))
        vector = used.flatten(1)
        ends = (vector, given) if end == HEAD else (given, vector)
        score = model.scorer.score(ends[0], relation, ends[1])
        (gradient,) = torch.autograd.grad(score.sum(), unknown)
    return gradient.flatten(1)


def _between(
    graph: KnowledgeGraph, triple: IntArray, ends: dict[int, _Around], direct: tuple[int, int]
) -> tuple[IntArray, FloatArray]:
    """Facts that link the same two entities, the head of which stands in the first column."""
    at_head, at_tail = ends[HEAD], ends[TAIL]
    rows = np.union1d(
        at_head.rows[at_head.others == triple[TAIL]], at_tail.rows[at_tail.others == triple[HEAD]]
    )
    rows = rows[graph.train[rows][:, direct[0]] == triple[HEAD]]
    strengths = [_strength_of(around, rows) for around in (at_head, at_tail)]
    if not len(rows):
        return rows, np.empty(0, np.float32)
    return rows, np.nanmean(strengths, axis=0).astype(np.float32)


def _strength_of(around: _Around, rows: IntArray) -> FloatArray:
    """The contribution of each fact at one end; not a number where the sample has left it out."""
    order = np.argsort(around.rows)
    at = np.searchsorted(around.rows[order], rows).clip(max=max(len(order) - 1, 0))
    if not len(order):
        return np.full(len(rows), np.nan, np.float32)
    place = order[at]
    return np.where(around.rows[place] == rows, around.strength[place], np.nan)


def _paths(triple: IntArray, ends: dict[int, _Around]) -> tuple[IntArray, FloatArray]:
    """Pairs of facts that lead from the head over a third entity to the tail, [n, 2]."""
    first, second = ends[HEAD], ends[TAIL]
    meets = (first.others[:, None] == second.others[None]) & (first.others != triple[TAIL])[:, None]
    one, two = np.nonzero(meets & (second.others != triple[HEAD])[None])
    strength: FloatArray = (first.strength[one] + second.strength[two]) / np.float32(2)
    return np.stack([first.rows[one], second.rows[two]], 1), strength


def _about(
    graph: KnowledgeGraph, triple: IntArray, end: int, around: _Around
) -> tuple[IntArray, FloatArray]:
    """Other facts of one entity, if others have them, too.

    They neither link it to the other end of the triple nor answer its question.
    """
    facts = graph.train[around.rows]
    answers = (facts[:, [end, RELATION]] == triple[[end, RELATION]]).all(1)
    kept = (around.others != triple[TAIL if end == HEAD else HEAD]) & ~answers
    shared = [graph.times_answered(facts, side) > 1 for side in ("head", "tail")]
    kept &= np.where(around.is_head, shared[1], shared[0])
    return around.rows[kept], around.strength[kept]


def _alike(trainer: LinkTrainer, triple: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """The same fact of the entities most similar to the head, and to the tail."""
    graph, model = trainer.graph, trainer.model
    rows = graph.same_questions(triple[None])
    facts = graph.train[rows]
    kept = ~(facts == triple).all(1) & (facts[:, HEAD] != facts[:, TAIL])
    rows, facts = rows[kept], facts[kept]
    vectors = model.entities.rows.view(model.num_entities, -1)
    found, strength = [], []
    for end, shared in ((HEAD, TAIL), (TAIL, HEAD)):
        mine = facts[:, shared] == triple[shared]
        if not mine.any():
            continue
        others = trainer.on_device(facts[mine][:, end])
        asked = vectors[int(triple[end])][None].to(model.entities.learned)
        cosine = F.cosine_similarity(vectors[others].to(asked.dtype), asked)
        best = cosine.topk(min(k, len(others))).indices.cpu().numpy()
        found.append(rows[mine][best])
        at = np.full(len(best), shared)
        strength.append(agreement(trainer, triple, shared, facts[mine][best], at))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.concatenate(found), np.concatenate(strength)


def _strongest(ids: IntArray, strength: FloatArray, k: int) -> list[tuple[int, float]]:
    """The k with the highest contribution above zero."""
    best = np.argsort(-strength, kind="stable")[:k]
    best = best[strength[best] > 0]
    return list(zip(ids[best].tolist(), strength[best].tolist(), strict=True))


class _Rules:
    """How often other pairs that are linked alike have the triple's relation."""

    def __init__(self, graph: KnowledgeGraph, triple: IntArray) -> None:
        self._graph, self._triple = graph, triple
        self._draw = np.random.default_rng(0)
        self._seen: dict[tuple[tuple[int, bool], ...], tuple[float | None, int]] = {}

    def holds(self, kind: str, facts: list[IntArray]) -> tuple[float | None, int]:
        """The share of other pairs that has the relation, and how many pairs there are."""
        if kind == "alike":
            return None, 0
        if kind == "about":
            return self._share_about(facts[0])
        at, steps = int(self._triple[HEAD]), []
        for fact in facts:
            forward = bool(fact[HEAD] == at)
            steps.append((int(fact[RELATION]), forward))
            at = int(fact[TAIL] if forward else fact[HEAD])
        key = tuple(steps)
        if key not in self._seen:
            self._seen[key] = self._share(steps)
        return self._seen[key]

    def _share_about(self, fact: IntArray) -> tuple[float | None, int]:
        """Of other entities with the same fact, the share that has the triple's other half."""
        graph, triple = self._graph, self._triple
        end = HEAD if triple[HEAD] in fact[[HEAD, TAIL]] else TAIL
        place = HEAD if fact[HEAD] == triple[end] else TAIL  # where the entity stands in the fact
        others = graph.train[graph.same_questions(fact[None])]
        given = [RELATION, TAIL if place == HEAD else HEAD]
        others = others[(others[:, given] == fact[given]).all(1)]
        asked = np.tile(triple, (len(others), 1))
        asked[:, end] = others[:, place]
        return self._share_of(asked)

    def _share(self, steps: list[tuple[int, bool]]) -> tuple[float | None, int]:
        graph, triple = self._graph, self._triple
        relation, forward = steps[0]
        rows = np.flatnonzero(graph.train[:, RELATION] == relation)
        if len(rows) > _LINKS:
            rows = self._draw.choice(rows, _LINKS, replace=False)
        start, reached = _ends(graph.train[rows], np.full(len(rows), forward))
        for relation, forward in steps[1:]:
            at, rows = graph.sample_of(reached, _FAN_OF_LINK, self._draw)
            facts, came = graph.train[rows], reached[at]
            fits = facts[:, RELATION] == relation
            fits &= (facts[:, HEAD] if forward else facts[:, TAIL]) == came
            start, (_, reached) = start[at[fits]], _ends(facts[fits], np.full(fits.sum(), forward))
        relations = np.full_like(start, triple[RELATION])
        return self._share_of(np.stack([start, relations, reached], 1))

    def _share_of(self, asked: IntArray) -> tuple[float | None, int]:
        """How many of the triples are known, the explained one and loops left out."""
        asked = np.unique(asked, axis=0)
        own = (asked == self._triple).all(1) | (asked[:, HEAD] == asked[:, TAIL])
        asked = asked[~own]
        return (float(self._graph.contains(asked).mean()), len(asked)) if len(asked) else (None, 0)


def _ends(facts: IntArray, forward: BoolArray) -> tuple[IntArray, IntArray]:
    """Where each fact begins and ends, walked forwards or backwards."""
    heads, tails = facts[:, HEAD], facts[:, TAIL]
    return np.where(forward, heads, tails), np.where(forward, tails, heads)
