"""Reads new classes or features of known nodes from a file."""

from __future__ import annotations

from typing import Any

from dicgrl.readers.facts import NetworkFacts
from dicgrl.readers.network import feature_columns, node_columns
from dicgrl.readers.network_table import refuse_duplicates
from dicgrl.readers.pairs import read_pairs
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import first_fields


def read_revision(file: SourceFile) -> NetworkFacts:
    """Nodes of a network with other classes or features.

    A table with a header, as `nodes.csv` is: `node`, and `class`, `split` and columns of features
    where there are any; or lines of a node and its class.

    Raises:
        DataError: It is neither.
    """
    names = [name.lower() for name in first_fields(file, ",")]
    if "node" not in names or names == ["node"]:
        pairs = read_pairs(file)
        nodes, classes = [node for node, _ in pairs], [named for _, named in pairs]
        return NetworkFacts(nodes, classes=classes, source=file.label)
    columns = node_columns(file)
    nodes = columns.pop("node")
    refuse_duplicates(file.label, nodes, first_line=2)
    told: dict[str, Any] = {"classes": columns.pop("class", None)}
    told["split"] = columns.pop("split", None)
    if columns:
        told["features"] = feature_columns(file, columns, len(nodes))
    return NetworkFacts(nodes, **told, source=file.label)
