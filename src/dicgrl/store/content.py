"""A part as arrays and labels, and back: what a run folder and checksums are made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from dicgrl.graph import KnowledgePart, NetworkPart, Part, Vocabulary
from dicgrl.graph.part import SPLITS

Content = tuple[dict[str, Tensor], dict[str, Any]]
"""Arrays by name, and labels that are new by kind."""


def part_content(part: Part) -> Content:
    """Arrays and new labels of a part, in ids of the graph."""
    if isinstance(part, KnowledgePart):
        arrays = {split: getattr(part, split) for split in SPLITS}
        labels = {
            "entities": part.entities.labels(part.new_entities),
            "relations": part.relations.labels(part.new_relations),
        }
    else:
        names = ("edges", "features", "labels", *SPLITS)
        arrays = {name: getattr(part, name) for name in names}
        labels = {
            "nodes": part.nodes.labels(part.new_nodes),
            "classes": part.classes.labels(part.new_classes),
        }
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, labels


def parts_of(contents: Iterable[Content]) -> Iterator[Part]:
    """The parts again, in the order in which they arrived; they share their vocabularies."""
    first, second = Vocabulary(), Vocabulary()
    for number, (tensors, labels) in enumerate(contents):
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        is_network = "nodes" in labels
        names = ("nodes", "classes") if is_network else ("entities", "relations")
        ranges = []
        for vocabulary, name in zip((first, second), names, strict=True):
            known = len(vocabulary)
            vocabulary.add(labels[name])
            ranges.append(range(known, len(vocabulary)))
        kind: Any = NetworkPart if is_network else KnowledgePart
        yield kind(number, first, second, *ranges, **arrays)


def same_content(one: Content, other: Content) -> bool:
    """Whether two parts brought the same."""
    (arrays, labels), (theirs, their_labels) = one, other
    return (
        labels == their_labels
        and arrays.keys() == theirs.keys()
        and all(torch.equal(arrays[name], theirs[name]) for name in arrays)
    )


def fingerprint(parts: Iterable[Part]) -> str:
    """A checksum of what parts bring: their arrays and labels."""
    digest = hashlib.sha256()
    for part in parts:
        arrays, labels = part_content(part)
        for name, array in arrays.items():
            digest.update(f"{name} {tuple(array.shape)} ".encode())
            digest.update(array.contiguous().numpy().tobytes())
        digest.update(json.dumps(labels).encode())
    return digest.hexdigest()
