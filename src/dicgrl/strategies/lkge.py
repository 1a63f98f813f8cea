"""LKGE: embeddings are tied to their neighbourhood, and old ones to their previous values.

(Cui et al., AAAI 2023, "Lifelong embedding learning and transfer for growing knowledge graphs".)
The loss of a batch is L_new + beta L_mae + alpha L_old. With the newest part's facts in both
directions and one loop per entity as edges,

    e'_x = ReLU(mean over edges (h, r, x) of h + r),    r' = mean over its facts of t - h,
    L_mae = sum |e' - e|^2 / entities + sum |r' - r|^2 / relations,
    L_old = sum over old rows of |w (x - x_before)|^2,  w = c_old / (c_old + c_new),

where c counts the facts that mention a row, plus one for each part. Decoders other than TransE use
`Scorer.place_entity` instead of h + r. Embedding transfer, by which new rows begin at e' and r', is
`start=neighbours`; it is off by default in the published code. That code also reconstructs all rows
with every part (`reconstruct=all`), which pulls rows that the newest facts do not mention to
ReLU(e), or to 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.models import KnowledgeModel
from dicgrl.models.table import Table
from dicgrl.strategies.base import Learned
from dicgrl.strategies.distance import degrees
from dicgrl.strategies.ingredients import AdjustedSet, Composed, Ingredient
from dicgrl.trainers import ExampleGroup, LinkTrainer, Trainer
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective


class _Edges(NamedTuple):
    """The newest part's facts as edges, which say where rows should be.

    Attributes:
        heads: [m].
        relations: [m].
        tails: [m].
        degree: Number of edges that lead to each entity, including its loop, [n, 1].
        facts: Number of facts of each relation, at least 1, [r, 1].
        entities: Weight of each entity, [n].
        known: Weight of each relation, [r].
        mentioned: Whether any fact has the relation, [r, 1].
    """

    heads: Tensor
    relations: Tensor
    tails: Tensor
    degree: Tensor
    facts: Tensor
    entities: Tensor
    known: Tensor
    mentioned: Tensor


class Reconstruction(Ingredient):
    """L_mae: pulls rows towards what the newest facts say about them, and vice versa."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the reconstruction."""

        reconstruction: float = option(
            0.1, "Weight of lkge's reconstruction from neighbours.", least=0
        )
        reconstruct: str = option(
            "mentioned",
            "Rows that lkge reconstructs: mentioned (by the newest facts) or all, as in the "
            "published code.",
            choices=("mentioned", "all"),
        )

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._edges: _Edges | None = None

    @override
    def begin(self, trainer: Trainer) -> None:
        self.look_at(trainer.examples("train", trainer.newest), trainer.model)

    def look_at(self, triples: Tensor, model: KnowledgeModel) -> None:
        """Set the facts that say something about rows, [n, 3]."""
        heads, relations, tails = (column.contiguous() for column in triples.unbind(1))
        ends = torch.bincount(torch.cat([heads, tails]), minlength=model.num_entities)
        facts = torch.bincount(relations, minlength=model.num_relations)
        every = self.settings.reconstruct == "all"
        shares = [
            (torch.ones_like(count) if every else (count > 0)).float() for count in (ends, facts)
        ]
        self._edges = _Edges(
            heads,
            relations,
            tails,
            (ends + 1)[:, None].float(),
            facts.clamp(min=1)[:, None].float(),
            shares[0] / shares[0].sum().clamp(min=1),
            shares[1] / shares[1].sum().clamp(min=1),
            (facts > 0)[:, None],
        )

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        del objective
        if not self.settings.reconstruction or self._edges is None or not len(self._edges.heads):
            return
        tables = trainer.model.entities, trainer.model.relations
        rows = [table.rows.detach().float().requires_grad_() for table in tables]
        loss = _reconstruction(trainer.model, rows[0], rows[1], self._edges)
        gradients = torch.autograd.grad(self.settings.reconstruction * loss, rows)
        for table, gradient in zip(tables, gradients, strict=True):
            table.pull(gradient)

    @override
    def end(self, trainer: Trainer) -> None:
        self._edges = None


def _reconstruction(
    model: KnowledgeModel, entities: Tensor, relations: Tensor, edges: _Edges
) -> Tensor:
    """L_mae of the rows of all entities [n, d] and relations [r, w]."""
    h, t = entities.index_select(0, edges.heads), entities.index_select(0, edges.tails)
    r = relations.index_select(0, edges.relations)
    said = model.scorer.place_entity(h, r, "tail"), model.scorer.place_entity(t, r, "head")
    fits = model.scorer.place_relation(h, t)
    assert said[0] is not None and said[1] is not None and fits is not None  # see check_model
    total = entities.index_add(0, edges.tails, said[0]).index_add(0, edges.heads, said[1])
    distance = ((total / edges.degree).relu() - entities).square().sum(1)
    mean = fits.new_zeros(len(relations), fits.shape[1]).index_add(0, edges.relations, fits)
    # A relation without facts has no angle, and so no gradient of it.
    settled = model.scorer.settle_relation(torch.where(edges.mentioned, mean / edges.facts, 1.0))
    apart = (torch.where(edges.mentioned, settled, 0.0) - relations).square().sum(1)
    # An inverse is a relation of its own there, and the mean is over them all.
    return (distance * edges.entities).sum() + (apart * edges.known).sum() / (1 + model.inverses)


class Evidence(Ingredient):
    """L_old: anchors old rows, the more firmly the more facts they had before."""

    @dataclass(frozen=True)
    class Settings(Section):
        """Settings of the anchor."""

        evidence: float = option(
            0.01, "Weight of lkge's anchor of old rows, stronger with more old facts.", least=0
        )

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._anchors: list[tuple[Table, Tensor, Tensor]] = []

    @override
    def begin(self, trainer: Trainer) -> None:
        assert isinstance(trainer, LinkTrainer)
        self._anchors = []
        if not trainer.newest or not self.settings.evidence:
            return
        shares, tables = evidence(trainer), trainer.model.tables()
        for name, first in trainer.old_rows().items():
            pull = 2 * self.settings.evidence * shares[name][:first].square()
            self._anchors.append((tables[name], tables[name].rows[:first].clone(), pull[:, None]))

    @override
    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        del trainer, objective
        for table, before, pull in self._anchors:
            table.pull(pull * (table.rows[: len(before)].float() - before))

    @override
    def end(self, trainer: Trainer) -> None:
        self._anchors = []


def evidence(trainer: LinkTrainer) -> dict[str, Tensor]:
    """c_old / (c_old + c_new) of each entity and relation; 0 for new ones."""
    found = {}
    for name, size, columns in (
        ("entities", trainer.model.num_entities, [0, 2]),
        ("relations", trainer.model.num_relations, [1, 1]),
    ):
        counts = np.zeros((2, size))
        for number, part in enumerate(trainer.taken):
            known = getattr(part, f"new_{name}").stop
            rows = trainer.graph.rows("train", number, number + 1)[:, [columns[0], 0, columns[1]]]
            met = degrees(rows, size) / (2 if columns[0] == columns[1] else 1)
            met[:known] += 1
            counts[int(number == trainer.newest)] += met
        share = counts[0] / np.maximum(counts.sum(0), 1)
        found[name] = trainer.on_device(share.astype(np.float32))
    return found


class LKGE(Composed, name="lkge"):
    """Learns new facts tied to their neighbourhoods, with old rows anchored by their evidence."""

    ingredients = (Reconstruction, Evidence)
    needs_links = True
    first_alike = False
    starts_from_neighbours = True

    @override
    def first(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """Learn the first part, which has a reconstruction, too."""
        return self.learn_new(
            trainer, monitor, trainer.weights(trainer.examples("train", trainer.newest))
        )

    @override
    def learn_anew(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        """Learn everything as a first part, so with a reconstruction, too."""
        everything = self.everything(trainer)
        said = Reconstruction(self.settings)
        said.look_at(everything.examples, trainer.model)
        new = ExampleGroup(everything.objective, everything.examples, everything.weight)
        examples = AdjustedSet([said], trainer, new, 0)
        return Learned([self.fit(trainer, examples, monitor, trainer.schedule, from_scratch=True)])
