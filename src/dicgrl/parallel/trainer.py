"""Link prediction by several processes: the trainer that strategies see on each rank.

Every rank has the whole graph and runs the same strategy with the same random numbers; only
negatives are drawn by each rank for itself. Vectors of entities, their gradients and the
optimiser's state are distributed over the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import Sections
from dicgrl.errors import SetupError
from dicgrl.evaluation.ranks import Ranks
from dicgrl.graph.change import Change
from dicgrl.graph.part import SPLITS
from dicgrl.models import KnowledgeModel
from dicgrl.parallel.group import Group
from dicgrl.parallel.model import OwnShare, ShardedModel
from dicgrl.parallel.objective import ShardedObjective, Step
from dicgrl.parallel.ranks import ShardedRanker
from dicgrl.parallel.sampling import OwnSampler
from dicgrl.parallel.training import Together
from dicgrl.trainers.from_settings import model_of
from dicgrl.trainers.links import ALL, LinkTrainer
from dicgrl.training import FitReport, LinkObjective, Schedule, TrainingSet, fit
from dicgrl.training.loop import Monitor
from dicgrl.training.settings import LinkTraining

STRATEGIES = ("frozen", "lower", "upper", "warm", "fresh")
_SEEDS_APART = 15_485_863


class ShardedTrainer(LinkTrainer):
    """A knowledge graph embedding that several processes learn together.

    Args:
        settings: The settings.
        seed: Seed of every random choice.
        device: Where this process computes.
        group: The processes.

    Raises:
        SetupError: Several processes cannot learn this strategy or model.
    """

    model: ShardedModel

    def __init__(self, settings: Sections, seed: int, device: torch.device, group: Group) -> None:
        self.group = group
        self._step: Step | None = None
        self._objectives = 0  # number of objectives made for this change
        self._sharded_ranker: ShardedRanker | None = None
        check_shared(settings)
        if device.type == "cuda" and not group.on_gpus:
            raise SetupError(
                f"{group.size} processes share fewer GPUs: start one for each, or use --device cpu"
            )
        super().__init__(settings, seed, device)

    @override
    def _begin(self) -> None:
        super()._begin()
        self.model = ShardedModel.of(self.model, self.group, self.device)

    @override
    def reseed(self) -> None:
        super().reseed()
        self._objectives = 0

    @override
    def recall(self, history: Iterable[Change], model: KnowledgeModel) -> None:
        super().recall(history, ShardedModel.of(model, self.group, self.device))

    @override
    def _prepare(self) -> None:
        super()._prepare()
        self._sharded_ranker = None

    @override
    def _grow(self) -> None:
        super()._grow()
        if self.model.num_entities < self.group.size:
            raise SetupError(
                f"{self.model.num_entities} entities are too few for {self.group.size} processes"
            )

    @override
    def link_objective(self, entities: range, known: Tensor, share: int = 1) -> LinkObjective:
        alone = super().link_objective(range(0), known[:0], share)
        assert isinstance(alone, LinkObjective)  # ensured by `check_shared`
        never = known[:0] if self.training.known_negatives else known
        # Ranks draw different negatives, but the same ones if the part is learned again.
        self._objectives += 1
        seed = self.generator.initial_seed() + _SEEDS_APART * (
            self._objectives * self.group.size + self.group.rank
        )
        generator = torch.Generator(self.device).manual_seed(seed)
        shards, rank = self.model.sharded.shards, self.group.rank
        relations = self.model.num_relations
        sampler = OwnSampler(never, shards, rank, len(entities), relations, generator, self.retired)
        return ShardedObjective(alone, sampler, self._open)

    def _open(self, step: Step) -> None:
        self._step = step

    def settle(self) -> None:
        """Send the gradients of a step to their owners."""
        assert self._step is not None, "no step was taken"
        self._step.settle(self.model)
        self._step = None

    @override
    def fit(
        self,
        training_set: TrainingSet,
        monitor: Monitor | None = None,
        schedule: Schedule | None = None,
        *,
        validate: Callable[[], float] | None = None,
    ) -> FitReport:
        self.model.agree()
        return fit(
            OwnShare(self.model),
            Together(training_set, self.settle, self.group),
            schedule or self.schedule,
            self.generator,
            validate=validate,
            monitor=monitor,
        )

    @override
    def ranks(self, triples: Tensor, besides: Tensor | None = None, among: range = ALL) -> Ranks:
        ranker = self._sharded_ranker
        if ranker is None or besides is not None:
            known = [*map(self.examples, SPLITS), *([] if besides is None else [besides])]
            ranker = ShardedRanker(torch.cat(known), self.retired)
            self._sharded_ranker = self._sharded_ranker if besides is not None else ranker
        return ranker.rank(self.model, triples, among or range(self.model.num_entities))


def check_shared(settings: Sections) -> None:
    """Refuse settings that several processes do not support yet.

    Raises:
        SetupError: The settings have one of these.
    """
    if settings.strategy not in STRATEGIES:
        raise SetupError(
            f"several processes do not learn by strategy {settings.strategy}, which looks at all "
            f"vectors at once: use one of {', '.join(STRATEGIES)}, or one process"
        )
    if not settings.of(LinkTraining).negatives:
        raise SetupError("several processes do not compare with all entities yet: negatives=64")
    if settings.of(Schedule).clip:
        raise SetupError("several processes do not clip gradients yet: --set clip=0")
    weights = [name for name, _ in model_of(settings.model, settings).named_parameters()]
    if weights:
        raise SetupError(
            f"{settings.model} has weights besides its vectors ({', '.join(weights)}), which "
            "several processes cannot share yet: use transe, distmult, complex or rotate"
        )
