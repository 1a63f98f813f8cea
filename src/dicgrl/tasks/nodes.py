"""Node classification on information networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from dicgrl.errors import UserError
from dicgrl.graph import Graph, KnowledgeStream, NetworkGraph, NetworkPart, Part
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.change import Change
from dicgrl.readers import NetworkFacts, Reading
from dicgrl.readers.facts import edges_of
from dicgrl.tasks.task import Task

if TYPE_CHECKING:
    import torch

    from dicgrl.ask.names import Names
    from dicgrl.ask.nodes import NodeAsking
    from dicgrl.common.options import Section
    from dicgrl.models import NetworkModel
    from dicgrl.trainers import NodeTrainer, Trainer


class NodeClassification(Task, name="node-classification"):
    """What class a node has, given its features and neighbours."""

    part_type = NetworkPart
    default_model = "gat"
    graph_is = "network"
    does = "classifies nodes"
    examples = "nodes"
    judged_by = "-loss"
    has_rows = False
    recipe = "nodes"

    @override
    def models(self) -> Mapping[str, type[Section]]:
        from dicgrl.models import BACKBONES
        from dicgrl.models.division import EncoderSettings

        return dict.fromkeys(BACKBONES, EncoderSettings)

    @override
    def sections(self) -> tuple[type[Section], ...]:
        from dicgrl.training.settings import NodeSchedule, NodeTraining

        return NodeTraining, NodeSchedule

    @override
    def trainer_type(self) -> type[NodeTrainer]:
        from dicgrl.trainers import NodeTrainer

        return NodeTrainer

    @override
    def asking(self, trainer: Trainer, names: Names) -> NodeAsking:
        from dicgrl.ask.nodes import NodeAsking
        from dicgrl.trainers import NodeTrainer

        assert isinstance(trainer, NodeTrainer)
        return NodeAsking(trainer, names)

    @override
    def facts(self, given: Any, graph: Graph | None) -> Part:
        given = edges_of(given)
        if not isinstance(given, NetworkFacts):  # the trainer will say that it is none of its own
            return KnowledgeStream.from_labels("learned", [given])[0]
        assert graph is None or isinstance(graph, NetworkGraph)
        return given.part(graph)

    @override
    def known_facts(
        self, given: Any, graph: Graph, reading: Reading | None = None
    ) -> tuple[dict[str, IntArray], int] | None:
        """See `Task.known_facts`; pairs are edges, or nodes and their classes."""
        from dicgrl.readers.facts import pairs_known_in
        from dicgrl.readers.pairs import as_pairs

        assert isinstance(graph, NetworkGraph)
        if isinstance(given, NetworkFacts):
            return given.known_in(graph)
        pairs = as_pairs(given, reading)
        if pairs is None:
            return None
        is_class = [pair[1] in graph.classes and pair[1] not in graph.nodes for pair in pairs]
        edges, classes = (
            [pair for pair, of_class in zip(pairs, is_class, strict=True) if of_class is wanted]
            for wanted in (False, True)
        )
        return pairs_known_in(graph, edges, classes)

    @override
    def revision(self, given: Any, graph: Graph) -> Change:
        assert isinstance(graph, NetworkGraph)
        if not isinstance(given, NetworkFacts):
            raise UserError("nodes are revised by NetworkFacts: their classes or features")
        return given.revision(graph)

    @override
    def empty_model(
        self, configuration: dict[str, Any], tensors: Mapping[str, torch.Tensor], device: Any
    ) -> NetworkModel:
        from dicgrl.models import Components, NetworkModel

        if configuration["components"] is not None:
            configuration["components"] = Components(**configuration["components"])
        model = NetworkModel(**configuration, device=device)
        model.grow(len(tensors["parameter/class_bias"]))
        return model
