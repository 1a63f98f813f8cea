"""Streams from and to PyTorch Geometric `Data` and PyKEEN `TriplesFactory` objects.

PyKEEN is optional: `pip install 'dicgrl[bench]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dicgrl.common.optional import needed
from dicgrl.errors import UserError, shown
from dicgrl.graph import SPLITS, KnowledgeStream, KnowledgeStreamBuilder, NetworkStream
from dicgrl.graph.arrays import IntArray, as_edges, as_ids
from dicgrl.graph.holdout import HoldOut
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.network_table import checked_table
from dicgrl.readers.npz import as_features

if TYPE_CHECKING:
    from pykeen.triples import TriplesFactory
    from torch_geometric.data import Data

__all__ = ["from_pyg", "from_pykeen", "to_pyg", "to_pykeen"]

_MASKS = ("train_mask", "val_mask", "test_mask")


def from_pykeen(
    training: TriplesFactory,
    validation: TriplesFactory | None = None,
    testing: TriplesFactory | None = None,
    *,
    name: str = "pykeen",
) -> KnowledgeStream:
    """A static graph (a stream of one part) from PyKEEN's factories; `split` it as you like.

    Entities and relations keep their ids and labels.

    Raises:
        UserError: The ids are not 0, 1, 2, ..., those of the factories differ, or a triple mentions
            another one.
    """
    builder = KnowledgeStreamBuilder(name)
    check_labels([*training.entity_to_id, *training.relation_to_id])
    builder.entities.add(_by_id("entity", training.entity_to_id))
    builder.relations.add(_by_id("relation", training.relation_to_id))
    rows = [
        factory.mapped_triples.cpu().numpy() if factory is not None else ()
        for factory in (training, validation, testing)
    ]
    for factory in (validation, testing):
        if factory is not None and (
            factory.entity_to_id != training.entity_to_id
            or factory.relation_to_id != training.relation_to_id
        ):
            raise UserError("the factories give different ids to the same labels")
    builder.add(*rows)
    return builder.build()


def _by_id(kind: str, ids: dict[str, int]) -> list[str]:
    labels = sorted(ids, key=ids.__getitem__)
    wrong = next((label for i, label in enumerate(labels) if ids[label] != i), None)
    if wrong is not None:
        raise UserError(
            f"{kind} {shown(wrong)} has id {ids[wrong]}; the ids of {len(ids)} labels must be 0 to "
            f"{len(ids) - 1}, each once"
        )
    return labels


def to_pykeen(stream: KnowledgeStream) -> tuple[TriplesFactory, ...]:
    """The stream's parts merged, as PyKEEN factories for training, validation and testing.

    Convert a prefix (`to_pykeen(stream[:2])`) for the state after some parts. An empty valid or
    test set gives an empty factory.
    """
    import torch

    factory = needed("pykeen.triples", "bench", "to_pykeen").TriplesFactory
    part = stream.merged()[0]
    entity_to_id = dict(
        zip(part.entities.labels(part.new_entities), part.new_entities, strict=True)
    )
    relation_to_id = dict(
        zip(part.relations.labels(part.new_relations), part.new_relations, strict=True)
    )
    return tuple(
        factory(
            mapped_triples=torch.from_numpy(getattr(part, split)).long(),
            entity_to_id=entity_to_id,
            relation_to_id=relation_to_id,
        )
        for split in SPLITS
    )


def from_pyg(
    data: Data,
    *,
    name: str = "pyg",
    valid: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
) -> NetworkStream:
    """A network from `Data(x, edge_index, y)`.

    `train_mask`, `val_mask` and `test_mask` say which nodes are in which set; without any of them
    all nodes of a known class are trained on. A part that has no node for validation, or none for
    testing, gives up the share `valid` or `test` of its training nodes, chosen at random. `part`
    [n], if there, says with which part a node arrives; without it there is one part.
    """
    for field in ("x", "edge_index", "y"):
        if getattr(data, field, None) is None:
            raise UserError(f"Data has no {field}; x, edge_index and y are needed")
    if data.y.ndim != 1:
        raise UserError(f"y has shape {list(data.y.shape)}; expected one class for each node")
    count = int(data.num_nodes)
    given = getattr(data, "node_labels", None)
    labels = [as_label(label) for label in (range(count) if given is None else given)]
    check_labels(labels)
    classes = [str(c) if c >= 0 else "" for c in data.y.cpu().tolist()]
    edges = as_edges(data.edge_index.cpu().numpy().T, "edges")
    if data.is_undirected():
        edges = edges[edges[:, 0] <= edges[:, 1]]  # each pair once, as other readers give it
    split: IntArray | None = None
    if any(getattr(data, mask, None) is not None for mask in _MASKS):
        split = np.full(count, -1, dtype=np.int64)
        for number, mask in enumerate(_MASKS):
            chosen = getattr(data, mask, None)
            if chosen is None:
                continue
            if chosen.shape != (count,):
                raise UserError(
                    f"{mask} has shape {list(chosen.shape)}; expected one value for each of "
                    f"{count} nodes (choose one column of several)"
                )
            split[chosen.bool().cpu().numpy()] = number  # a mask of numbers is no list of nodes
    part = getattr(data, "part", None)
    arrival = np.zeros(count, np.int64) if part is None else as_ids(part.cpu().numpy(), "part")
    table = checked_table(
        "Data",
        labels,
        edges,
        as_features("Data.x", data.x.cpu().numpy()),
        classes,
        part=arrival,
        split=split,
        hold_out=HoldOut(valid, test, seed),
    )
    return table.stream(name)


def to_pyg(stream: NetworkStream) -> Data:
    """The stream's parts merged, as one `Data` with masks and the part of every node.

    Edges run in both directions, each once, without self loops.
    """
    import torch

    data_class = needed("torch_geometric.data", "bench", "to_pyg").Data
    to_undirected = needed("torch_geometric.utils", "bench", "to_pyg").to_undirected
    merged = stream.merged()[0]
    edges = merged.edges[merged.edges[:, 0] != merged.edges[:, 1]]
    masks = {}
    for mask, split in zip(_MASKS, SPLITS, strict=True):
        masks[mask] = torch.zeros(merged.num_nodes, dtype=torch.bool)
        masks[mask][torch.from_numpy(getattr(merged, split).copy())] = True
    sizes = [len(part.new_nodes) for part in stream]
    return data_class(
        x=torch.from_numpy(merged.features.copy()),
        edge_index=to_undirected(torch.from_numpy(edges.T.copy()), num_nodes=merged.num_nodes),
        y=torch.from_numpy(merged.labels.copy()),
        part=torch.from_numpy(np.repeat(np.arange(len(stream)), sizes)),
        node_labels=merged.nodes.labels(merged.new_nodes),
        **masks,
    )
