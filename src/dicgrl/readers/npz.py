"""Reads networks from NPZ files.

- `edges` [m, 2]: the ends, as rows of the other arrays, or as labels (text), which may then also
  name nodes of an existing network.
- `features` [n, F].
- `classes` [n]: text, or whole numbers, with -1 or NaN for a class that is not known. Numbers are
  positions in `class_names`, if that is given.
- Optional: `nodes` (labels), `class_names`, `part`, `split` and `edge_part`.
- Optional: `readable_names` of the nodes, or of the labels in `readable_names_of`; "" for none.
- `feature_names` is allowed, for human readers only.

A list of labels or names can also be a single text with one of them per line. This saves space,
because NumPy pads the texts of an array to equal length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, UserError, nearest, shown, shown_value
from dicgrl.graph import NetworkGraph, NetworkStream
from dicgrl.graph.arrays import FloatArray, IntArray, as_edges
from dicgrl.graph.holdout import HoldOut
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.arrays_file import load_arrays
from dicgrl.readers.network_table import (
    Positions,
    check_lengths,
    checked_table,
    refuse_duplicates,
)
from dicgrl.readers.sources import SourceFile

_Arrays = dict[str, npt.NDArray[Any]]
_NEEDED = ("edges", "features", "classes")
_PARTS = ("part", "split", "edge_part")  # arrays that may be left out
_NAMES = ("nodes", "class_names", "feature_names", "readable_names", "readable_names_of")
_LISTED = 10  # names in a message
_KNOWN = (*_NEEDED, *_PARTS, *_NAMES)


def read_npz(
    file: SourceFile,
    name: str,
    hold_out: HoldOut,
    graph: NetworkGraph | None,
) -> NetworkStream:
    """A network from the arrays of an NPZ file; see the module's text."""
    arrays = load_arrays(file)
    if not isinstance(arrays, dict):
        raise DataError(file.label, "holds one array without a name; save it with np.savez")
    missing = set(_NEEDED) - set(arrays)
    if missing:
        raise DataError(
            file.label,
            f"array {sorted(missing)[0]!r} is missing; found {shown_value(list(arrays), 300)}",
        )
    _refuse_unknown(file, arrays)
    features = as_features(f"{file.label}[features]", arrays["features"])
    count = len(features)
    listed = len(_list(file, arrays, "classes"))
    if "nodes" not in arrays and listed != count:  # a shape alone is no reason to number so many
        raise DataError(file.label, f"features has {count} rows, classes has {listed}")
    nodes = _texts(file, arrays, "nodes") if "nodes" in arrays else [*map(str, range(count))]
    check_labels(nodes, f"{file.label}[nodes]: ")
    refuse_duplicates(f"{file.label}[nodes]", nodes, graph=graph)
    class_names = _texts(file, arrays, "class_names") if "class_names" in arrays else None
    classes = _classes(file, arrays, nodes, class_names)
    check_labels({*classes, *(class_names or ())}, f"{file.label}[classes]: ")
    positions = Positions(nodes, graph)
    table = checked_table(
        file.label,
        nodes,
        _edge_rows(file, arrays["edges"], positions),
        features,
        classes,
        hold_out=hold_out,
        positions=positions,
        **{key: _integer_list(file, arrays, key) for key in _PARTS if key in arrays},
    )
    table.class_order = class_names or ()
    table.names = _names(file, arrays, nodes)
    return table.stream(name)


def _refuse_unknown(file: SourceFile, arrays: _Arrays) -> None:
    unknown = []
    for key in arrays:
        if key not in _KNOWN:
            close = ["split"] if key.lower().endswith("mask") else nearest(key, _KNOWN, count=1)
            unknown.append(shown(key) + "".join(f" ({name}?)" for name in close))
    if unknown:
        raise DataError(
            file.label,
            f"unknown {'arrays' if len(unknown) > 1 else 'array'}: "
            f"{', '.join(unknown[:_LISTED])}; rename or leave out. Known: {', '.join(_KNOWN)}",
        )


def _classes(
    file: SourceFile, arrays: _Arrays, nodes: Sequence[str], names: Sequence[str] | None
) -> list[str]:
    """The class of each node, "" where it is not known."""
    source = f"{file.label}[classes]"
    classes = _list(file, arrays, "classes")
    check_lengths(file.label, nodes, classes=classes)
    if classes.dtype.kind not in "iuf":
        if names is not None:
            raise DataError(source, f"whole numbers expected, found {classes.dtype}")
        return [str(label) for label in classes]
    codes = classes.tolist()
    if classes.dtype.kind == "f":
        codes = _whole(source, classes, nodes)
    if names is None:
        return ["" if code == -1 else str(code) for code in codes]
    for node, code in zip(nodes, codes, strict=True):
        if not -1 <= code < len(names):
            raise DataError(
                source, f"unknown class {code} of node {shown(node)}; class_names has {len(names)}"
            )
    return [names[code] if code >= 0 else "" for code in codes]


def _whole(source: str, classes: npt.NDArray[Any], nodes: Sequence[str]) -> list[int]:
    with np.errstate(over="ignore"):
        values = classes.astype(np.float64)
    values[np.isnan(values)] = -1
    # Beyond 2^53 neighbouring whole numbers are the same float.
    wrong = np.flatnonzero((values != np.floor(values)) | (np.abs(values) > 2**53))
    if len(wrong):
        at = int(wrong[0])
        raise DataError(
            source, f"whole numbers expected, found {classes[at]} of node {shown(nodes[at])}"
        )
    found: list[int] = values.astype(np.int64).tolist()
    return found


def _names(file: SourceFile, arrays: _Arrays, nodes: Sequence[str]) -> dict[str, str]:
    if "readable_names" not in arrays:
        return {}
    source = f"{file.label}[readable_names]"
    of = "readable_names_of"
    labels = _texts(file, arrays, of) if of in arrays else nodes
    names = _texts(file, arrays, "readable_names")
    if len(names) != len(labels):
        raise DataError(source, f"{len(names)} names for {len(labels)} labels")
    check_labels([*names, *labels], f"{source}: ")
    return {label: name for label, name in zip(labels, names, strict=True) if name}


def _texts(file: SourceFile, arrays: _Arrays, key: str) -> list[str]:
    found = arrays[key]
    if found.ndim == 0 and found.dtype.kind == "U":
        return str(found).split("\n")
    return [str(label) for label in _list(file, arrays, key)]


def _list(file: SourceFile, arrays: _Arrays, key: str) -> npt.NDArray[Any]:
    found = arrays[key]
    if found.ndim != 1:
        raise DataError(f"{file.label}[{key}]", f"shape {list(found.shape)}; expected a list [n]")
    return found


def _integer_list(file: SourceFile, arrays: _Arrays, key: str) -> IntArray:
    return _integral(f"{file.label}[{key}]", _list(file, arrays, key))


def _edge_rows(file: SourceFile, rows: npt.NDArray[Any], positions: Positions) -> IntArray:
    source = f"{file.label}[edges]"
    if rows.size and (rows.ndim != 2 or rows.shape[1] != 2):
        raise DataError(source, f"shape {list(rows.shape)}; expected pairs of nodes [m, 2]")
    if not np.issubdtype(rows.dtype, np.str_):
        return as_edges(_integral(source, rows))
    return edges_by_label(source, rows, positions)


def _integral(source: str, numbers: npt.NDArray[Any]) -> IntArray:
    if numbers.dtype.kind not in "iuf" or (numbers != np.floor(numbers)).any():
        raise DataError(source, f"whole numbers expected, found {numbers.dtype}")
    # Beyond 2^53 neighbouring whole numbers are the same float; infinity is among them.
    large = (numbers < -(2.0**53)) | (numbers > 2.0**53)
    if large.any():
        raise DataError(source, f"{numbers[large][0]} is too large")
    return numbers.astype(np.int64)


def edges_by_label(source: str, ends: npt.NDArray[Any], positions: Positions) -> IntArray:
    """Positions [m, 2] of edges whose ends are labels, or a clear refusal of an unknown one."""
    try:
        labels = list(map(as_label, ends.ravel().tolist()))
    except UserError as error:
        raise DataError(source, str(error)) from None
    found = positions.of(labels)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        at = int(unknown[0])
        message = positions.unknown(labels[at], "it is not among the nodes")
        raise DataError(source, f"edge {at // 2} mentions {message}")
    return as_edges(found.reshape(-1, 2))


def as_features(source: str, features: Any) -> FloatArray:
    """A float32 matrix of features, or a clear refusal."""
    if not isinstance(features, np.ndarray) or features.ndim != 2:
        raise DataError(source, f"shape {list(np.shape(features))}; expected features [n, F]")
    if features.dtype.kind not in "iufb":
        raise DataError(source, f"features must be numbers, not {features.dtype}")
    with np.errstate(over="ignore"):  # too large for float32 is infinite, found later
        return features.astype(np.float32, copy=False)
