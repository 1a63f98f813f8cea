"""Link prediction on knowledge graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from dicgrl.graph import Graph, KnowledgePart, KnowledgeStream, Part
from dicgrl.readers import NetworkFacts
from dicgrl.tasks.task import Task

if TYPE_CHECKING:
    import torch

    from dicgrl.ask.links import LinkAsking
    from dicgrl.ask.names import Names
    from dicgrl.common.options import Section, Sections
    from dicgrl.models import KnowledgeModel
    from dicgrl.trainers import LinkTrainer, Trainer


class LinkPrediction(Task, name="link-prediction"):
    """Which triples are likely: head, relation and tail."""

    part_type = KnowledgePart
    default_model = "rotate"
    published_model = "transe"
    graph_is = "knowledge graph"
    does = "predicts links"
    examples = "triples"
    judged_by = "MRR"
    recipe = "links"
    asks_entities = True

    @override
    def models(self) -> Mapping[str, type[Section]]:
        from dicgrl.models import Scorer

        return {name: scorer.Settings for name, scorer in Scorer.registry.items()}

    @override
    def sections(self) -> tuple[type[Section], ...]:
        from dicgrl.models.division import VectorSettings
        from dicgrl.training.settings import LinkSchedule, LinkTraining

        return VectorSettings, LinkTraining, LinkSchedule

    @override
    def choices(self) -> Mapping[str, Mapping[str, type[Section]]]:
        from dicgrl.training import LOSSES

        return {"loss": {name: loss.Settings for name, loss in LOSSES.items()}}

    @override
    def suited(self, model: str) -> Mapping[str, Any]:
        from dicgrl.models import scorer

        return scorer(model).defaults

    @override
    def check(self, settings: Sections) -> None:
        from dicgrl.models.division import VectorSettings
        from dicgrl.models.scorer import check_multiple
        from dicgrl.parallel.group import current
        from dicgrl.parallel.trainer import check_shared
        from dicgrl.trainers.from_settings import model_of

        vectors = settings.of(VectorSettings)
        used = settings.top if settings.components else 1
        check_multiple(settings.model, vectors.active // used, used)
        model_of(settings.model, settings)
        if current() is not None:
            check_shared(settings)

    @override
    def trainer_type(self) -> type[LinkTrainer]:
        from dicgrl.trainers import LinkTrainer

        return LinkTrainer

    @override
    def trainer(self, settings: Sections, seed: int, device: torch.device) -> Trainer:
        from dicgrl.parallel.group import current

        group = current()
        if group is None:
            return super().trainer(settings, seed, device)
        from dicgrl.parallel.trainer import ShardedTrainer

        return ShardedTrainer(settings, seed, device, group)

    @override
    def asking(self, trainer: Trainer, names: Names) -> LinkAsking:
        from dicgrl.ask.links import LinkAsking
        from dicgrl.trainers import LinkTrainer

        assert isinstance(trainer, LinkTrainer)
        return LinkAsking(trainer, names)

    @override
    def facts(self, given: Any, graph: Graph | None) -> Part:
        if isinstance(given, NetworkFacts):  # the trainer will say that it is none of its own
            return given.part(None)
        return KnowledgeStream.from_labels("learned", [given])[0]

    @override
    def empty_model(
        self, configuration: dict[str, Any], tensors: Mapping[str, torch.Tensor], device: Any
    ) -> KnowledgeModel:
        from dicgrl.models import Components, KnowledgeModel

        del tensors
        if configuration["components"] is not None:
            configuration["components"] = Components(**configuration["components"])
        if "length" not in configuration:  # earlier versions called it so
            configuration["length"] = configuration.pop("dim")
        return KnowledgeModel(**configuration, device=device)
