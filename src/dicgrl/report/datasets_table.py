"""Tables of datasets and of a stream's statistics."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from dicgrl.datasets import datasets, load_stream, sizes_of
from dicgrl.graph import describe

_RULES = {  # irregularity: what the graph does about it
    "duplicates": "duplicates in the part (kept once)",
    "repeated": "repeats of an earlier part (dropped)",
    "self_loops": "self loops",
    "leaked": "valid/test triples found in train (kept)",
    "untrained": "new entities without training triple",
    "isolated": "new nodes without edge",
    "featureless": "new nodes with all-zero features",
    "unlabelled": "new nodes without class",
}
_SIZES = ("entities", "nodes", "triples", "edges")


def dataset_rows() -> list[dict[str, Any]]:
    """Every dataset known by name: name, task, what it is, where it is, parts and size."""
    rows = []
    for dataset in datasets():
        count, sizes = dataset.parts, dict(dataset.sizes)
        if not count:
            parts = describe(load_stream(dataset.name))["parts"]
            count, sizes = len(parts), sizes_of(parts)
        row = {
            "name": dataset.name,
            "task": str(dataset.task),
            "about": dataset.about,
            "place": "built in" if dataset.built_in else str(dataset.place or ""),
            "get": dataset.get,
            "parts": count,
        }
        rows.append(row | sizes)
    return rows


def datasets_table(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table."""
    table = Table(title="Datasets")
    for heading in ("name", "task", "parts", "size", "what", "where"):
        table.add_column(heading, justify="right" if heading == "parts" else "left")
    for row in rows:
        where = row["place"] or f"not here: {row['get']}"
        size = ", ".join(f"{row[key]:,} {key}" for key in _SIZES if key in row)
        table.add_row(row["name"], row["task"], str(row["parts"]), size, row["about"], where)
    return table


def statistics_tables(description: dict[str, Any]) -> list[Table]:
    """What `describe` counted, part by part; a second table if something is irregular."""
    extra = ""
    if "classes" in description:
        extra = f", {description['classes']} classes, {description['features']:,} features"
    title = f"{description['name']} ({description['task']}{extra})"
    regular = [{k: v for k, v in p.items() if k != "irregular"} for p in description["parts"]]
    irregular = [part.get("irregular", {}) for part in description["parts"]]
    tables = [_parts_table(title, regular)]
    if any(value for part in irregular for value in part.values()):
        tables.append(_parts_table("Irregular, and what is done about it", irregular))
    return tables


def _parts_table(title: str, parts: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for index in range(len(parts)):
        table.add_column(f"part {index}", justify="right")
    for key in parts[0]:
        heading = _RULES.get(key, key.replace("_", " "))
        table.add_row(heading, *(f"{part[key]:,}" for part in parts))
    return table
