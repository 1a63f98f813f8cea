"""Slow, obvious references of link prediction: plain Python loops over plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from dicgrl.models import ConvKB, KnowledgeModel, TransE

Row = list[float]
Triple = tuple[int, int, int]


def slow_softmax(logits: Row) -> Row:
    exponents = [math.exp(value - max(logits)) for value in logits]
    return [value / sum(exponents) for value in exponents]


def slow_top(weights: Row, n: int) -> list[int]:
    """Numbers of the n largest, in component order."""
    return sorted(sorted(range(len(weights)), key=lambda k: -weights[k])[:n])


def slow_transe(head: Row, relation: Row, tail: Row, p: int) -> float:
    total = sum(abs(h + r - t) ** p for h, r, t in zip(head, relation, tail, strict=True))
    return -total if p == 1 else -math.sqrt(total)


def slow_convkb(scorer: ConvKB, head: Row, relation: Row, tail: Row) -> float:
    kernel, bias = scorer.kernel.tolist(), scorer.bias.tolist()
    weight = scorer.weight.tolist()
    total = 0.0
    for i in range(len(head)):
        for m in range(len(bias)):
            seen = head[i] * kernel[0][m] + relation[i] * kernel[1][m] + tail[i] * kernel[2][m]
            total += max(0.0, seen + bias[m]) * weight[i][m]
    return total


def slow_attention(model: KnowledgeModel, triple: Triple) -> Row:
    """Attention logits of a triple: equation 1, alpha-1 or alpha-2."""
    h, r, t = triple
    assert model.components is not None
    if model.components.attention == "relation":
        assert model.attention is not None
        row: Row = model.attention.rows[r].tolist()
        return row
    assert model.attention_weight is not None
    weight = model.attention_weight.tolist()
    logits = []
    for k in range(model.count):
        seen = entity_parts(model, h)[k] + entity_parts(model, t)[k]
        if model.components.attention == "triple":
            parts = relation_parts(model, r)
            seen = seen + (parts[k] if len(parts) > 1 else parts[0])
        logits.append(max(0.0, sum(a * b for a, b in zip(weight, seen, strict=True))))
    return logits


def entity_parts(model: KnowledgeModel, entity: int) -> list[Row]:
    rows = model.entities.rows[entity * model.count : (entity + 1) * model.count]
    parts: list[Row] = rows.tolist()
    return parts


def relation_parts(model: KnowledgeModel, relation: int) -> list[Row]:
    """K parts with learned routing, else one vector."""
    size = model.relation_count
    parts: list[Row] = model.relations.rows[relation * size : (relation + 1) * size].tolist()
    return parts


def slow_chosen(model: KnowledgeModel, triple: Triple) -> list[int]:
    """The components that a triple uses, in component order."""
    if model.components is None:
        return [0]
    return slow_top(slow_attention(model, triple), model.components.top)


def slow_score(model: KnowledgeModel, triple: Triple) -> float:
    """Score of one triple; for order="component"."""
    h, r, t = triple
    chosen = slow_chosen(model, triple)
    head = [x for k in chosen for x in entity_parts(model, h)[k]]
    tail = [x for k in chosen for x in entity_parts(model, t)[k]]
    parts = relation_parts(model, r)
    relation = parts[0] if len(parts) == 1 else [x for k in chosen for x in parts[k]]
    if isinstance(model.scorer, TransE):
        return slow_transe(head, relation, tail, model.scorer.p)
    assert isinstance(model.scorer, ConvKB)
    return slow_convkb(model.scorer, head, relation, tail)


def slow_answers(triples: Iterable[Sequence[int]], side: str) -> dict[tuple[int, int], set[int]]:
    """Answers of every question: (head, relation) for tails, (relation, tail) for heads."""
    found: dict[tuple[int, int], set[int]] = {}
    for h, r, t in triples:
        if side == "tail":
            found.setdefault((h, r), set()).add(t)
        else:
            found.setdefault((r, t), set()).add(h)
    return found


def rows_of(triples: Iterable[Sequence[int]]) -> Tensor:
    return torch.tensor(list(triples), dtype=torch.long).reshape(-1, 3)
