"""What arrives at a learner: facts in any form, made into a checked part of what is new in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dicgrl.ask.names import Names
from dicgrl.errors import UserError
from dicgrl.graph import (
    SPLITS,
    KnowledgeGraph,
    KnowledgePart,
    KnowledgeStream,
    NetworkGraph,
    NetworkPart,
    NetworkStream,
    Part,
)
from dicgrl.graph.checks import checked
from dicgrl.graph.labels import Triples
from dicgrl.readers import NetworkFacts, read_part
from dicgrl.tasks import LinkTrainer, NodeTrainer

Facts = Part | Triples | NetworkFacts | str | Path
"""What `learn` takes: a part of a stream; labelled triples; nodes and edges; a file of either."""

_CONVERTERS = {"pykeen": "from_pykeen", "torch_geometric": "from_pyg"}  # by library


@dataclass(frozen=True, slots=True)
class Intake:
    """What a learner makes of what it is given, before it learns it.

    Attributes:
        part: What there is to learn. Of facts, those that are known or held out are dropped; a part
            of a stream is taken as it is.
        names: Readable names that came with the facts.
        given: How many facts there were: triples, or edges of a network.
        known: How many of them are dropped because they were learned before.
        held_out: How many are dropped because the learner holds them out to measure with.
        named_alike: New labels that are readable names of known ones. They become something new;
            whoever asks by that name then means it.
        is_empty: Whether facts hold nothing to learn; a first part and one of a stream never do.
        is_repeated: Whether it is a part of a stream, all of which is known.
    """

    part: Part
    names: Mapping[str, str]
    given: int
    known: int = 0
    held_out: int = 0
    named_alike: tuple[str, ...] = ()
    is_empty: bool = False
    is_repeated: bool = False


def take_in(trainer: LinkTrainer | NodeTrainer, names: Names, facts: Facts) -> Intake:
    """Check facts against what a learner knows; nothing is learned.

    Args:
        trainer: The graph and model so far.
        names: Readable names so far.
        facts: What arrived.

    Raises:
        UserError: It is neither a part, nor triples or facts, nor a file of one part.
    """
    part, found = _as_part(trainer, facts)
    given = _count(part)
    if isinstance(facts, KnowledgePart | NetworkPart):
        part = checked(part)
        repeated = trainer.num_parts > 0 and _is_known(trainer, part)
        return Intake(part, found, given, is_repeated=repeated)
    known = held_out = 0
    if isinstance(trainer, LinkTrainer) and isinstance(part, KnowledgePart):
        part, (known, held_out) = trainer.graph.news(part)
    if not _brings_something(trainer, part):
        return Intake(part, found, given, known, held_out, is_empty=True)
    alike = _named_alike(trainer, names, part)
    return Intake(part, found, given, known, held_out, alike)


def _as_part(trainer: LinkTrainer | NodeTrainer, facts: Facts) -> tuple[Part, Mapping[str, str]]:
    """The part that facts make, and the readable names beside them."""
    if isinstance(facts, KnowledgePart | NetworkPart):
        return facts, {}
    if isinstance(facts, KnowledgeStream | NetworkStream):
        raise UserError("a stream is learned part by part: for part in stream: learn(part)")
    if (library := type(facts).__module__.partition(".")[0]) in _CONVERTERS:
        raise UserError(f"dicgrl.interop.{_CONVERTERS[library]} makes a stream of it, to learn")
    network = trainer.graph if isinstance(trainer, NodeTrainer) else None
    if isinstance(facts, NetworkFacts):
        return facts.part(network), {}
    if isinstance(facts, str | Path):
        return read_part(facts, network)
    return KnowledgeStream.from_labels("learned", [facts])[0], {}


def _count(part: Part) -> int:
    if isinstance(part, NetworkPart):
        return len(part.edges)
    return sum(len(getattr(part, split)) for split in SPLITS)


def _is_known(trainer: LinkTrainer | NodeTrainer, part: Part) -> bool:
    """Whether a part of a stream says something, all of which is known."""
    graph, says = trainer.graph, any(len(getattr(part, split)) for split in SPLITS)
    if isinstance(part, KnowledgePart):
        return says and isinstance(graph, KnowledgeGraph) and graph.is_known(part)
    return says and isinstance(graph, NetworkGraph) and graph.is_known(part)


def _brings_something(trainer: LinkTrainer | NodeTrainer, part: Part) -> bool:
    """Whether there is anything to learn in facts of which the known ones are dropped."""
    graph = trainer.graph
    if not trainer.num_parts or isinstance(part, NetworkPart) != isinstance(graph, NetworkGraph):
        return True  # or nothing that this learner could learn: the trainer says so
    if isinstance(part, NetworkPart) and isinstance(graph, NetworkGraph):
        return not graph.is_known(part)
    return any(len(getattr(part, split)) for split in SPLITS)


def _named_alike(trainer: LinkTrainer | NodeTrainer, names: Names, part: Part) -> tuple[str, ...]:
    readable = {name for label, name in names.items() if name != label}
    if not readable:
        return ()
    if isinstance(part, KnowledgePart):
        entities = part.entities.labels(part.new_entities)
        labels = [*entities, *part.relations.labels(part.new_relations)]
    else:
        labels = [*part.nodes.labels(part.new_nodes), *part.classes.labels(part.new_classes)]
    graph = trainer.graph
    known = (
        (graph.nodes, graph.classes)
        if isinstance(graph, NetworkGraph)
        else ()
        if graph is None
        else (graph.entities, graph.relations)
    )
    return tuple(
        label
        for label in labels
        if label in readable and not any(label in vocabulary for vocabulary in known)
    )
