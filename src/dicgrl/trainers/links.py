"""Link prediction on a growing knowledge graph: examples are triples, ranks are filtered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.memory import Need
from dicgrl.common.options import Sections
from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.evaluation.ranks import Ranks
from dicgrl.graph import KnowledgeGraph, KnowledgePart, Part
from dicgrl.graph.arrays import IntArray, distinct, ids_in
from dicgrl.graph.change import MERGE, Change
from dicgrl.graph.knowledge.facts import AGAIN, DATED
from dicgrl.graph.part import SPLITS
from dicgrl.models import KnowledgeModel
from dicgrl.trainers.blending import blend_rows
from dicgrl.trainers.from_settings import model_of, objective_of
from dicgrl.trainers.protocol import LINK_PROTOCOL, negatives_of
from dicgrl.trainers.sizes import needs
from dicgrl.trainers.trainer import Trainer
from dicgrl.trainers.weighting import weighs_arrivals, weights_of
from dicgrl.training import LinkObjective
from dicgrl.training.all_entities import AllEntitiesObjective
from dicgrl.training.known import HEAD, RELATION, TAIL
from dicgrl.training.settings import LinkSchedule, LinkTraining
from dicgrl.training.stepper import Objective
from dicgrl.training.unlearning import UnlearnedLinks

ALL = range(0)  # stands for all entities so far
TOP = 10  # an answer counts as found if its rank is at most this
_SORTED_AT_ONCE = 1 << 20  # a GPU sorts so many triples faster than the host selects among them
_SCORED_AT_ONCE = 1 << 14  # triples to score at a time
_SHARE = 8  # triples of a step that may share their negatives


class LinkTrainer(Trainer):
    """A knowledge graph embedding that learns part by part.

    Args:
        settings: The settings.
        seed: Seed of every random choice.
        device: Where to compute.

    Attributes:
        part: The newest part, in ids of the graph.
        attention_before: The attention parameters before the newest part; None if nothing was
            learned before, or if the model is plain.
    """

    metric = "hits@10"
    protocol: ClassVar = LINK_PROTOCOL
    model: KnowledgeModel
    graph: KnowledgeGraph

    def __init__(self, settings: Sections, seed: int, device: torch.device) -> None:
        super().__init__(settings, seed, device)
        self.training = settings.of(LinkTraining)
        self.graph = KnowledgeGraph()
        self.part: KnowledgePart | None = None
        self.attention_before: Tensor | None = None
        self._ranker: Ranker | None = None
        self._begin()

    def _begin(self) -> None:
        seed = self.seed + self.num_parts
        self.model = model_of(self.model_name, self.settings, seed, self.device)

    @property
    @override
    def schedule(self) -> LinkSchedule:
        return self._fitted(self.count("train"))

    def _fitted(self, triples: int) -> LinkSchedule:
        return self.settings.of(LinkSchedule).fitted(triples)

    @override
    def describe_protocol(self) -> dict[str, Any]:
        return super().describe_protocol() | negatives_of(self.training)

    @override
    def _needs(self, part: Part) -> list[Need]:
        rows = 0
        if isinstance(part, KnowledgePart):
            ids = self.graph.entities.found(part.entities, ids_in(part.new_entities))
            rows = int((ids < 0).sum())
        schedule = self._fitted(self.count("train") + len(part.train))
        return needs(self.model, self.settings, schedule, rows, len(part.train))

    @override
    def _add(self, part: Part) -> KnowledgePart:
        if not isinstance(part, KnowledgePart):
            raise UserError(f"{self.model_name} predicts links, but this part is of a network")
        self.part = self.graph.add(part)
        return self.part

    @override
    def _apply(self, change: Change) -> Change:
        if change.kind == MERGE:
            self._blend(change.labels["vocabulary"], change.arrays["ids"])
        applied = super()._apply(change)
        if isinstance(applied.part, KnowledgePart):
            self.part = applied.part
        return applied

    @torch.no_grad()
    def _blend(self, vocabulary: str, pairs: IntArray) -> None:
        """Place merged rows between the two, weighted by the triples that mention each."""
        relations = vocabulary == "relations"
        told = self.graph.evidence(pairs.ravel(), relations=relations)[0].reshape(pairs.shape)
        names = ("relations", "attention") if relations else ("entities",)
        ids = len(self.graph.vocabularies()[vocabulary])
        for name, table in self.model.tables().items():
            if name in names:
                blend_rows(table.rows.view(ids, -1), pairs, told)

    @override
    def _replay(self, history: Iterable[Change]) -> list[Change]:
        replayed = self.graph.replay(history)
        arrived = [change.part for change in replayed if isinstance(change.part, KnowledgePart)]
        self.part = arrived[-1] if arrived else None
        return replayed

    @override
    def _noted_of(self, part: Part, arrived: Part | None) -> dict[str, IntArray]:
        if not isinstance(part, KnowledgePart):
            return {}
        noted = {DATED: self.graph.dates_in(part)}
        if weighs_arrivals(self.training.weighting):
            added = arrived if isinstance(arrived, KnowledgePart) else None
            noted[AGAIN] = self.graph.repeats_in(part, added)
        return {name: rows for name, rows in noted.items() if len(rows)}

    @override
    def _note(self, noted: Mapping[str, npt.NDArray[Any]]) -> None:
        if AGAIN in noted:
            self.graph.repeat(noted[AGAIN])
        if DATED in noted:
            self.graph.date(noted[DATED])

    @override
    def _prepare(self) -> None:
        self._ranker = None

    @override
    def _grow(self) -> None:
        assert self.part is not None
        self.attention_before = self.model.attention_now() if self.num_parts else None
        self.model.grow(len(self.part.new_entities), len(self.part.new_relations))

    @override
    def check_model(self) -> None:
        rows = self.model.num_entities, self.model.num_relations
        known = len(self.graph.entities), len(self.graph.relations)
        if rows != known:
            raise ValueError(f"a model of {rows} entities and relations for a graph of {known}")

    @override
    def rebuild(self) -> None:
        self._begin()
        self.model.grow(len(self.graph.entities), len(self.graph.relations))

    @override
    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        return len(self.graph.rows(split, first, last))

    @override
    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        return self.on_device(self.graph.rows(split, first, last))

    @override
    def old_examples(self, chosen: IntArray) -> Tensor:
        return self.on_device(self.graph.train[chosen])

    @override
    def objective(self, examples: Tensor) -> Objective:
        return self.objective_against(range(self.model.num_entities), examples)

    @override
    def objective_around(self, examples: Tensor, batch: int) -> Objective:
        """On a CPU some triples of a step share their negatives, if that saves time.

        As the rows of negatives rest, this hardly affects what is learned.
        """
        del batch
        gains = self.model.shares_negatives and self.device.type == "cpu"
        return self.objective_against(
            range(self.model.num_entities), examples, share=_SHARE if gains else 1
        )

    def objective_against(
        self,
        entities: range,
        examples: Tensor,
        *,
        attention: Tensor | None = None,
        share: int = 1,
    ) -> Objective:
        """The loss of batches of triples against negatives of a range of entities.

        Args:
            entities: The entities to draw negatives from, which never form known training triples.
            examples: All triples that the loss will be computed for.
            attention: Attention parameters to use instead of the model's own; they do not learn.
            share: How many triples of a batch share their negatives, unless a setting says.
        """
        model, known = self.model, self.same_questions(examples)
        objective = self.link_objective(entities, known, share)

        def of_batch(triples: Tensor, weight: Tensor) -> Tensor:
            with model.attending(attention):
                return objective(model, triples, weight)

        return of_batch

    def link_objective(
        self, entities: range, known: Tensor, share: int = 1
    ) -> LinkObjective | AllEntitiesObjective:
        """The loss against negatives, which are drawn, or all entities (1-vs-all)."""
        relations, retired = self.model.num_relations, self.retired
        return objective_of(
            self.settings, entities, relations, known, self.generator, retired, share
        )

    @override
    def around(self, change: Change) -> IntArray:
        entities, relations = self._spoken_of(change)
        of_relations = np.flatnonzero(np.isin(self.graph.train[:, RELATION], relations))
        return distinct(self.graph.triples_of(entities)[1], of_relations)

    @override
    def rows_of(self, change: Change) -> dict[str, Tensor]:
        model = self.model
        entities, relations = map(self.on_device, self._spoken_of(change))
        rows = {
            "entities": model.entity_rows_of(entities),
            "relations": model.relation_rows_of(relations),
            "attention": relations,
        }
        return {name: rows[name] for name in model.tables()}

    def _spoken_of(self, change: Change) -> tuple[IntArray, IntArray]:
        """Entities that a change concerns, through removed facts or merges; merged relations."""
        gone = change.arrays.get("triples", np.empty((0, 3), np.int64))
        one = {"entities": gone[:0, 0], "relations": gone[:0, 0]}
        if change.kind == MERGE:
            one[change.labels["vocabulary"]] = change.arrays["ids"][:, 0]
        return distinct(gone[:, HEAD], gone[:, TAIL], one["entities"]), distinct(one["relations"])

    @override
    def gone(self, change: Change) -> Tensor:
        rows = change.arrays.get("triples")
        if rows is None:
            return self.on_device(np.empty((0, 3), np.int64))
        return self.on_device(rows[~self.graph.contains(rows)])

    @override
    def unlearning(self, gone: Tensor) -> Objective:
        return UnlearnedLinks(self.model, gone, self.on_device(self.graph.train), self.generator)

    @override
    @torch.no_grad()
    def standing(self, examples: Tensor) -> Tensor:
        blocks = torch.split(examples, _SCORED_AT_ONCE)
        return torch.cat([self.model.score(*triples.unbind(1)) for triples in blocks])

    @property
    def retired(self) -> Tensor:
        """Entities without any facts left, which are neither answers nor negatives."""
        return self.on_device(self.graph.retired("entities"))

    def same_questions(self, examples: Tensor) -> Tensor:
        """Known training triples that answer questions of the examples, and possibly others."""
        known = self.graph.train
        if len(known) > max(2 * len(examples), _SORTED_AT_ONCE if examples.is_cuda else 0):
            # selecting is cheaper than taking all
            known = known[self.graph.same_questions(examples.cpu().numpy())]
        return self.on_device(known)

    @override
    def weights(self, examples: Tensor) -> Tensor | None:
        """See `dicgrl.trainers.weighting`."""
        every = len(examples) == self.count("train")
        relations = self.model.num_relations if every else 0
        return weights_of(self.graph, self.training.weighting, examples, relations)

    @override
    def old_rows(self) -> dict[str, int]:
        assert self.part is not None
        entities, relations = self.part.new_entities.start, self.part.new_relations.start
        first = {
            "entities": entities * self.model.count,
            "relations": relations * self.model.relation_count,
            "attention": relations,
        }
        return {name: first[name] for name in self.model.tables()}

    @override
    def rows_in(self, examples: Tensor) -> dict[str, Tensor]:
        heads, relations, tails = examples.unbind(1)
        found = {
            "entities": self.model.entity_rows_of(torch.cat([heads, tails])),
            "relations": self.model.relation_rows_of(relations),
            "attention": relations,
        }
        return {name: found[name] for name in self.model.tables()}

    def ranks(self, triples: Tensor, besides: Tensor | None = None, among: range = ALL) -> Ranks:
        """Ranks of triples among all entities so far, or some, filtered by everything known.

        Args:
            triples: The triples.
            besides: Further true triples, which count as known.
            among: The entities.
        """
        ranker = self._ranker
        if ranker is None or besides is not None:
            known = [*map(self.examples, SPLITS), *([] if besides is None else [besides])]
            ranker = Ranker(torch.cat(known), self.model.num_relations, retired=self.retired)
            self._ranker = self._ranker if besides is not None else ranker
        return ranker.rank(self.model, triples, among or range(self.model.num_entities))

    @override
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """An answer is found if it is among the first ten; vectors are gathered only once."""
        every = self.ranks(torch.cat(list(sets))).split([len(triples) for triples in sets])
        return [
            (
                ranking_metrics(ranks, self.leads_elsewhere(triples)),
                (ranks.realistic <= TOP).flatten(),
            )
            for ranks, triples in zip(every, sets, strict=True)
        ]

    def leads_elsewhere(self, triples: Tensor) -> Tensor:
        """Which triples have a relation that is not reflexive, [n]."""
        relations = np.arange(len(self.graph.relations))
        reflexive = torch.from_numpy(self.graph.is_reflexive(relations)).to(triples.device)
        return ~reflexive[triples[:, RELATION]]

    @override
    def judge(self, examples: Tensor) -> float:
        return self.measure(examples)["mrr"]

    @override
    def chance(self) -> float:
        return min(TOP / max(self.model.num_entities, 1), 1.0)

    @override
    def _watched(self, valid: Tensor) -> Tensor:
        most = self.training.validate_at_most
        if not most or len(valid) <= most:
            return valid
        chosen = torch.randperm(len(valid), generator=torch.Generator().manual_seed(0))
        return valid[chosen[:most].to(valid.device)]

    def on_device(self, rows: npt.NDArray[Any]) -> Tensor:
        """An array as a tensor on the trainer's device; integers get 64 bits."""
        dtype = np.int64 if rows.dtype.kind == "i" else rows.dtype
        return torch.from_numpy(np.array(rows, dtype)).to(self.device)  # views are read-only
