"""The layout of a file with nothing but edges, between nodes that a network already has."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from dicgrl.errors import DataError
from dicgrl.graph import Graph, NetworkGraph, NetworkStream
from dicgrl.graph.arrays import as_edges
from dicgrl.graph.holdout import HoldOut
from dicgrl.readers.formats import has_format
from dicgrl.readers.layouts import Layout, Source, register_layout
from dicgrl.readers.network_table import Positions, checked_table
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.triples import triple_rows


@register_layout
class EdgeFile(Layout):
    """A file with two columns, the ends of edges, in any `Format`; only for an existing network."""

    name = "a file of edges"
    data = "a network"
    files = "for a network that is there: one file .tsv, .csv, .parquet, ..., of source and target"

    @override
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        arrives = isinstance(graph, NetworkGraph)
        return arrives and isinstance(source, SourceFile) and has_format(source)

    @override
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> NetworkStream:
        assert isinstance(source, SourceFile) and isinstance(graph, NetworkGraph)
        positions = Positions((), graph)
        blocks = [as_edges(())]
        for rows in triple_rows(source, 2):
            ends = np.stack([positions.of(column) for column in rows.columns], axis=1)
            unknown = np.argwhere(ends < 0)
            if len(unknown):
                row, column = unknown[0]
                raise DataError(
                    source.label,
                    positions.unknown(rows.columns[column][row], "a file of edges brings no nodes"),
                    rows.first_line + int(row),
                )
            blocks.append(ends)
        features = np.empty((0, graph.num_features), dtype=np.float32)
        edges = np.concatenate(blocks)
        return checked_table(source.label, (), edges, features, (), positions=positions).stream(
            name
        )
