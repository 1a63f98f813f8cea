"""Facts that turn out wrong: what a model that forgets them has, beside one that never saw them.

Of the facts of a stream, all parts together, a share arrives late and as many wrong ones are put in
its place: triples whose head or tail is another entity. Then the wrong ones are replaced by those
that were late. Facts that stayed, came and went are ranked apart, as is the test set, by models
that

- never saw the wrong facts, and learn the late ones as the next part (`never`);
- know them, and learn the late ones as the next part (`knows`);
- know them, and have them replaced by the late ones (`replaced`);
- learn all right facts from scratch (`retrained`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dicgrl.common.devices import device_name
from dicgrl.errors import UserError
from dicgrl.graph import KnowledgePart, KnowledgeStream, KnowledgeStreamBuilder, Stream
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.knowledge import triple_keys
from dicgrl.learner import Learner, PartReport
from dicgrl.recipes import Recipe
from dicgrl.trainers import LinkTrainer

ASKED = 2000  # facts of a kind that are ranked, at most
KINDS = ("kept", "added", "removed", "test")
_NONE: IntArray = np.empty((0, 3), np.int64)
ROWS = ("retrained", "never", "knows", "replaced")


@dataclass(frozen=True, slots=True)
class Division:
    """Facts of a knowledge graph, as triples of ids, [n, 3] each.

    Attributes:
        kept: Known from the beginning, and right.
        added: Right, and late.
        removed: Known from the beginning, and wrong.
        valid: To select a model with.
        test: To measure with.
    """

    kept: IntArray
    added: IntArray
    removed: IntArray
    valid: IntArray
    test: IntArray

    @classmethod
    def of(cls, stream: KnowledgeStream, share: float, generator: np.random.Generator) -> Division:
        """Divide the facts of a stream.

        Args:
            stream: The stream; its parts are taken together.
            share: Share of the training facts that is late, and of as many wrong ones.
            generator: Makes the choice.
        """
        train, valid, test = (
            np.concatenate([getattr(part, split) for part in stream])
            for split in ("train", "valid", "test")
        )
        train = train[np.sort(np.unique(triple_keys(train), return_index=True)[1])]
        late = np.zeros(len(train), np.bool_)
        late[generator.choice(len(train), max(round(share * len(train)), 1), replace=False)] = True
        kept = train[~late]
        known = triple_keys(np.concatenate([train, valid, test]))
        wrong = kept[generator.choice(len(kept), min(3 * late.sum(), len(kept)), replace=False)]
        column = 2 * generator.integers(2, size=len(wrong))
        others = np.unique(kept[:, [0, 2]])
        wrong[np.arange(len(wrong)), column] = generator.choice(others, len(wrong))
        wrong = wrong[~np.isin(triple_keys(wrong), known)]
        first = np.sort(np.unique(triple_keys(wrong), return_index=True)[1])
        return cls(kept, train[late], wrong[first][: late.sum()], valid, test)


def study_forgetting(
    stream: Stream, recipe: Recipe, share: float, *, seed: int = 0, device: str = "auto"
) -> dict[str, Any]:
    """Learn with wrong facts, replace them, and compare.

    Args:
        stream: A knowledge graph.
        recipe: Settings.
        share: As of `Division.of`.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
    """
    if not isinstance(stream, KnowledgeStream):
        raise UserError("this study is about triples; the stream is a network")
    facts = Division.of(stream, share, np.random.default_rng((seed, 25)))
    study = _Study(stream, facts, recipe, seed, device)
    knows = study.learned(facts.kept, facts.removed)
    never = study.learned(facts.kept)
    late = study.part(facts.added)
    found = {
        "retrained": study.row(study.learned(facts.kept, facts.added), None),
        "never": study.row(never, lambda learner: learner.learn(late)),
        "replaced": study.row(
            copy.deepcopy(knows), lambda learner: learner.replace(study.part(facts.removed), late)
        ),
        "knows": study.row(knows, lambda learner: learner.learn(late)),
    }
    return {
        "dataset": stream.name,
        "task": stream.task,
        "model": recipe.settings.model,
        "strategy": recipe.settings.strategy,
        "recipe": recipe.name,
        "seed": seed,
        "device": device_name(knows.trainer.device),
        "settings": recipe.settings.as_dict(),
        "counts": {kind: len(getattr(facts, kind)) for kind in KINDS},
        "rows": found,
    }


@dataclass(frozen=True, slots=True)
class _Study:
    stream: KnowledgeStream
    facts: Division
    recipe: Recipe
    seed: int
    device: str

    def part(
        self, train: IntArray, valid: IntArray = _NONE, test: IntArray = _NONE
    ) -> KnowledgePart:
        """Facts as a part of their own, by their labels."""
        builder = KnowledgeStreamBuilder("facts")
        rows = [
            builder.rows(
                self.stream.entities.labels(given[:, 0]),
                self.stream.relations.labels(given[:, 1]),
                self.stream.entities.labels(given[:, 2]),
            )
            for given in (train, valid, test)
        ]
        builder.add(*rows)
        return builder.build()[0]

    def learned(self, *train: IntArray) -> Learner:
        """A learner of some facts; all of them know the same test set."""
        learner = Learner(settings=self.recipe.settings, seed=self.seed, device=self.device)
        learner.learn(self.part(np.concatenate(train), self.facts.valid, self.facts.test))
        return learner

    def row(
        self, learner: Learner, change: Callable[[Learner], PartReport] | None
    ) -> dict[str, Any]:
        """What a change took, that of the first part for None, and what is known then."""
        report = learner.reports[0] if change is None else change(learner)
        trainer = learner.trainer
        assert isinstance(trainer, LinkTrainer)
        metrics = {}
        for kind in KINDS:
            rows = self._ids(trainer, getattr(self.facts, kind))
            some = np.random.default_rng(25).permutation(len(rows))[:ASKED]
            metrics[kind] = trainer.measure(torch.from_numpy(rows[some]).long().to(trainer.device))
        return {
            "metrics": metrics,
            "positives": sum(report.positives.values()),
            "seconds": report.learn_seconds,
        }

    def _ids(self, trainer: LinkTrainer, rows: IntArray) -> IntArray:
        entity = trainer.graph.entities.found(self.stream.entities, rows[:, [0, 2]])
        relation = trainer.graph.relations.found(self.stream.relations, rows[:, 1])
        found = np.stack([entity[:, 0], relation, entity[:, 1]], axis=1)
        return found[(found >= 0).all(axis=1)]
