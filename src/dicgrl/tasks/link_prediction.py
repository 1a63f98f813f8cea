"""Link prediction on a knowledge graph that grows: triples are examples, ranks are filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.evaluation.ranks import Ranks
from dicgrl.graph import KnowledgeGraph, KnowledgePart, Part
from dicgrl.graph.arrays import IntArray, distinct, ids_in
from dicgrl.graph.part import SPLITS
from dicgrl.models import KnowledgeModel
from dicgrl.settings import LinkSettings, NodeSettings, examples_within
from dicgrl.tasks.activation import (
    Activation,
    Links,
    activate,
    component_bits,
)
from dicgrl.tasks.base import TRAINED_BYTES, ExampleGroup, Replay, Run
from dicgrl.tasks.start import start_from_neighbours
from dicgrl.tasks.thresholds import bars
from dicgrl.training import LinkObjective, NegativeSampler, make_loss
from dicgrl.training.known import HEAD, RELATION, TAIL
from dicgrl.training.stepper import Objective

PROTOCOL = {
    "ranking": "filtered, head and tail side, realistic ties",
    "candidates": "all entities seen so far",
    "negatives": "entities seen so far, no known training triple",
    "selection": "best validation MRR",
}
TOP = 10  # an answer counts as found when it is among so many
_SLOWEST = 0.02  # pace of an old row that is open and of which the part says nothing new
_SORTED_AT_ONCE = 1 << 20  # triples that a GPU sorts before a host would have chosen among them
_NEGATIVE_BYTES = 20  # at least: its id twice, its score
_ROUTE_BLOCK = 1 << 16  # triples whose components are computed at a time


class LinkTrainer(Run):
    """A knowledge-graph embedding that learns part by part.

    Args:
        settings: The settings.
        seed: Seed of every random choice.
        device: Where to compute.
    """

    metric = "hits@10"
    settings: LinkSettings
    model: KnowledgeModel

    def __init__(
        self, settings: LinkSettings | NodeSettings, seed: int, device: torch.device
    ) -> None:
        if not isinstance(settings, LinkSettings):
            raise UserError(f"{settings.model} classifies nodes; this is a knowledge graph")
        super().__init__(settings, seed, device)
        self.graph = KnowledgeGraph()
        self.part: KnowledgePart | None = None
        self._kept: Tensor | None = None
        self._ranker: Ranker | None = None
        self._begin()

    def _begin(self) -> None:
        settings = self.settings
        self.model = KnowledgeModel(
            settings.model,
            settings.dim,
            settings.division(),
            dict(settings.options),
            self.seed + self.num_parts,
            self.device,
        )

    def _needs(self, part: Part) -> list[tuple[int, str]]:
        settings, rows = self.settings, 0
        if isinstance(part, KnowledgePart):
            ids = self.graph.entities.found(part.entities, ids_in(part.new_entities))
            rows = int((ids < 0).sum())
        table = self.model.entities
        gained = table.gains(rows * self.model.count)
        # On a GPU kernels may need no more than ids and scores.
        each = _NEGATIVE_BYTES if self.device.type == "cuda" else self.model.link_bytes()
        negatives = min(settings.batch, len(part.train)) * settings.negatives
        return [
            (
                gained * table.width * TRAINED_BYTES,
                f"dim={settings.dim} for {rows:,} new entities",
            ),
            (
                negatives * each,
                f"batch={settings.batch} and negatives={settings.negatives}",
            ),
        ]

    def _add(self, part: Part) -> KnowledgePart:
        if not isinstance(part, KnowledgePart):
            raise UserError(f"{self.settings.model} predicts links; this part is of a network")
        self._ranker = None
        self.part = self.graph.add(part)
        return self.part

    def _grow(self) -> None:
        assert self.part is not None
        entities, relations = self.part.new_entities, self.part.new_relations
        self._kept = self.model.attention_now() if self.num_parts else None
        self.model.grow(len(entities), len(relations))
        if self.num_parts and self.settings.starts_from_neighbours:
            train = self._on_device(self.part.train)
            start_from_neighbours(self.model, train, entities.start, relations.start)

    def rebuild(self) -> None:
        """See `Run`."""
        self._begin()
        self.model.grow(len(self.graph.entities), len(self.graph.relations))

    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        """See `Run`."""
        return len(self.graph.rows(split, first, last))

    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        """See `Run`."""
        return self._on_device(self.graph.rows(split, first, last))

    def old_examples(self, chosen: IntArray) -> Tensor:
        """See `Run`."""
        return self._on_device(self.graph.train[chosen])

    def objective(self, examples: Tensor, *, old: bool = False) -> Objective:
        """See `Run`."""
        model = self.model
        objective = self._against(range(model.num_entities), self._same_questions(examples))

        def of_batch(triples: Tensor, weight: Tensor) -> Tensor:
            with model.attending(self._kept if old else None):
                return objective(model, triples, weight)

        return of_batch

    def weights(self, examples: Tensor) -> Tensor | None:
        """See `Run`; with `weighting=frequency` a triple counts less, the more often it is asked.

        1 / sqrt(4 + #(h, r, ?) + #(?, r, t)), scaled to mean 1; after RotatE (Sun et al. 2019),
        which has 6 in place of 4.
        """
        if self.settings.weighting == "even":
            return None
        asked = torch.full((len(examples),), 4.0, device=examples.device)
        for given in (HEAD, TAIL):
            question = examples[:, given] * self.model.num_relations + examples[:, RELATION]
            _, group, counts = torch.unique(question, return_inverse=True, return_counts=True)
            asked += counts[group]
        weight = asked.rsqrt()
        return weight / weight.mean()

    def shield(self, examples: Tensor) -> ExampleGroup | None:
        """See `Run`: old triples are compared with new entities only."""
        assert self.part is not None
        model, kept, new = self.model, self._kept, self.part.new_entities
        if not len(new) or not len(examples):
            return None
        known = self._same_questions(examples)
        objective = self._against(new, known)
        level = None
        if self.settings.shield_rank:
            with model.attending(kept):
                level = bars(
                    model, examples, known, new.start, self.settings.shield_rank, self.generator
                )

        def of_batch(chosen: Tensor, weight: Tensor) -> Tensor:
            with model.attending(kept):
                bar = None if level is None else level[chosen]
                return objective(model, examples[chosen], weight, bar)

        entries = torch.arange(len(examples), device=self.device)
        return ExampleGroup(of_batch, entries, torch.ones(len(entries), device=self.device))

    def draw_shield(self) -> tuple[Tensor, IntArray]:
        """See `Run`."""
        old, new = self.count("train", 0, self.newest), self.count("train", self.newest)
        count = examples_within(self.settings.shield, old, new, "shield")
        positions = self.draw(count, 0, self.newest)
        return self.old_examples(positions), positions

    def _against(self, entities: range, known: Tensor) -> LinkObjective:
        """The loss against negatives that are drawn from entities and are not known."""
        settings = self.settings
        loss = make_loss(settings.loss, settings.margin, settings.temperature)
        sampler = NegativeSampler(known, entities, self.model.num_relations, self.generator)
        return LinkObjective(sampler, loss, settings.negatives, settings.beta)

    def _same_questions(self, examples: Tensor) -> Tensor:
        """Known training triples that answer questions of the examples, or more of them."""
        known = self.graph.train
        few = max(2 * len(examples), _SORTED_AT_ONCE if examples.is_cuda else 0)
        if len(known) > few:  # choosing costs less than taking all
            known = known[self.graph.same_questions(examples.cpu().numpy())]
        return self._on_device(known)

    def activate(self, budget: int, used: IntArray | None = None) -> Replay:
        """See `Run`."""
        settings = self.settings
        links = _Links(self)
        new = np.arange(links.old, len(self.graph.train))
        found = activate(links, links.ends(new), links.components(new), settings.orders)
        chosen = found.within(budget, settings.selection, self.choices, used)
        weight = np.where(chosen.order == 1, settings.weight1, settings.weight2)
        return Replay(
            self.old_examples(chosen.rows),
            torch.from_numpy(weight).float().to(self.device),
            chosen.rows,
            chosen,
            found.candidates,
            len(found),
        )

    def concerned(
        self, triple: IntArray, old: int | None = None
    ) -> tuple[Activation, IntArray, list[float]]:
        """What a triple [3] would activate, if it arrived now.

        All its neighbours are looked at, whatever the `fan` of a part is.

        Args:
            triple: The triple, by ids.
            old: How many training triples count as old; all of them unless given.

        Returns:
            The activation, the components of the triple, and their attention weights.
        """
        links = _Links(self, old=len(self.graph.train) if old is None else old)
        with torch.no_grad():
            route = self.model.route(*self._on_device(triple[None]).unbind(1))
        if route is None:
            raise UserError("a plain model has no components to explain; use a disentangled one")
        chosen = route.chosen.cpu().numpy().reshape(-1)
        bits = component_bits(chosen)[None]
        found = activate(links, triple[None][:, [0, 2]], bits, self.settings.orders)
        return found, chosen, route.alpha.reshape(-1).tolist()

    def open_concerned(self, replay: Replay) -> None:
        """See `Run`."""
        model, count, links = self.model, self.model.count, _Links(self)
        new, concerned = np.arange(links.old, len(self.graph.train)), replay.concerned
        rows = np.concatenate([new, concerned.rows])
        bits = np.concatenate([links.components(new), concerned.common])
        triples = self.graph.train[rows]
        ends = np.concatenate([triples[:, 0], triples[:, 2]])
        old = self.old_rows()
        spoken = {
            "entities": _component_rows(ends, np.concatenate([bits, bits]), count),
            "relations": triples[:, 1],
            "attention": self.graph.train[new, 1],
        }
        if model.relation_count > 1:
            spoken["relations"] = _component_rows(triples[:, 1], bits, count)
        for name, table in model.tables().items():
            fresh = ids_in(range(old[name], len(table)))
            opened = distinct(spoken[name], fresh)
            table.restrict(self._on_device(opened), self._pace(name, opened, old[name]))

    def _pace(self, name: str, rows: IntArray, old: int) -> Tensor | None:
        """How fast rows of a table may change: the old ones by how much of them is news."""
        if not self.settings.pace:
            return None
        per = {"entities": self.model.count, "relations": self.model.relation_count}.get(name, 1)
        known, news = self.graph.evidence(rows // per, relations=name != "entities")
        pace = np.clip(self.settings.pace * news / np.maximum(known, 1), _SLOWEST, 1)
        return torch.from_numpy(np.where(rows < old, pace, 1.0)).float().to(self.device)

    def brings_news_only(self) -> bool:
        """See `Run`."""
        assert self.part is not None
        train, first = self.part.train, self.part.new_entities.start
        old = (train[:, 0] < first) & (train[:, 2] < first)
        return not (old & (train[:, 1] < self.part.new_relations.start)).any()

    def old_rows(self) -> dict[str, int]:
        """See `Run`."""
        assert self.part is not None
        entities, relations = self.part.new_entities.start, self.part.new_relations.start
        first = {
            "entities": entities * self.model.count,
            "relations": relations * self.model.relation_count,
            "attention": relations,
        }
        return {name: first[name] for name in self.model.tables()}

    def open_new(self) -> None:
        """See `Run`."""
        for name, first in self.old_rows().items():
            table = self.model.tables()[name]
            table.restrict(self._on_device(ids_in(range(first, len(table)))))
        self.model.requires_grad_(False)  # the scorer's own weights serve old triples as well

    def open_all(self) -> None:
        """See `Run`."""
        for table in self.model.tables().values():
            table.restrict(None)
        self.model.requires_grad_(True)

    def ranks(self, triples: Tensor, besides: Tensor | None = None) -> Ranks:
        """Ranks of triples among all entities so far, filtered by all that is known.

        Args:
            triples: The triples.
            besides: Further true triples, which count as known.
        """
        ranker = self._ranker
        if ranker is None or besides is not None:
            known = [self.examples(split) for split in SPLITS]
            known += [] if besides is None else [besides]
            ranker = Ranker(torch.cat(known), self.model.num_relations)
            if besides is None:
                self._ranker = ranker
        return ranker.rank(self.model, triples, range(self.model.num_entities))

    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        """See `Run`; an answer is found when it is among the first ten.

        The entities' vectors are gathered once for all of them.
        """
        every = self.ranks(torch.cat(list(sets))).split([len(triples) for triples in sets])
        return [(ranking_metrics(ranks), (ranks.realistic <= TOP).flatten()) for ranks in every]

    def judge(self, examples: Tensor) -> float:
        """See `Run`."""
        return self.measure(examples)["mrr"]

    def chance(self) -> float:
        """See `Run`."""
        return min(TOP / max(self.model.num_entities, 1), 1.0)

    def describe_protocol(self) -> dict[str, Any]:
        """See `Run`."""
        return self._selected(PROTOCOL)

    def _watched(self, valid: Tensor) -> Tensor:
        most = self.settings.validate_at_most
        if not most or len(valid) <= most:
            return valid
        chosen = torch.randperm(len(valid), generator=torch.Generator().manual_seed(0))
        return valid[chosen[:most].to(valid.device)]

    def _on_device(self, rows: IntArray) -> Tensor:
        return torch.from_numpy(np.array(rows)).to(self.device)  # a copy: views are read-only


class _Links(Links):
    """The triples of a run as activation sees them: old ones by the attention of before."""

    def __init__(self, run: LinkTrainer, old: int | None = None) -> None:
        train = run.graph.train
        before = run.count("train", 0, run.newest) if old is None else old
        super().__init__(
            run.graph,
            run.graph.triples_of,
            before,
            train[before:][:, [0, 2]],
            run.settings.fan if old is None else 0,
            run.choices,
        )
        self._run, self._train = run, train
        self._kept = run._kept if old is None else None
        self._bits: dict[bool, IntArray] = {}

    def ends(self, rows: IntArray) -> IntArray:
        return self._train[rows][:, [0, 2]]

    def components(self, rows: IntArray) -> IntArray:
        triples = self._train[rows]
        is_old = bool(len(rows)) and bool(rows[-1] < self.old)
        model, kept = self._run.model, self._kept if is_old else None
        if model.attention is None:  # routes of triples differ
            blocks = np.array_split(triples, max(len(triples) // _ROUTE_BLOCK, 1))
            return np.concatenate([self._route(block, kept) for block in blocks])
        if is_old not in self._bits:
            count = model.num_relations if kept is None else len(kept)
            one_each = np.zeros((count, 3), dtype=np.int64)
            one_each[:, 1] = np.arange(count)
            self._bits[is_old] = self._route(one_each, kept)
        return self._bits[is_old][triples[:, 1]]

    @torch.no_grad()
    def _route(self, triples: IntArray, kept: Tensor | None) -> IntArray:
        model = self._run.model
        with model.attending(kept):
            route = model.route(*self._run._on_device(triples).unbind(1))
        assert route is not None
        return component_bits(route.chosen.cpu().numpy())


def _component_rows(ids: IntArray, bits: IntArray, count: int) -> IntArray:
    """Rows id * K + k for every component k among an id's bits."""
    which, component = ((bits[:, None] >> np.arange(count)) & 1).nonzero()
    return ids[which] * count + component
