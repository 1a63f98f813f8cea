"""Reads networks from NPZ files, and NumPy arrays without ever unpickling.

Arrays `edges` [m, 2], `features` [n, F], `classes` [n] and, if wanted, `nodes` (labels),
`class_names`, `part`, `split`, `edge_part`. The ends of `edges` are rows of the other arrays, or
labels as text: those may also name nodes of a network that is known already.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph import NetworkGraph, NetworkStream
from dicgrl.graph.arrays import FloatArray, IntArray, as_edges
from dicgrl.graph.labels import as_label, check_labels
from dicgrl.readers.files import SourceFile
from dicgrl.readers.network_table import (
    NOTHING,
    Positions,
    SetAside,
    checked_table,
    refuse_duplicates,
)

_Arrays = dict[str, npt.NDArray[Any]]
_PARTS = ("part", "split", "edge_part")  # arrays that may be left out
_UNREADABLE = (  # what NumPy and zipfile raise for damaged files and pickled objects
    ValueError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(
    file: SourceFile,
    name: str,
    aside: SetAside = NOTHING,
    graph: NetworkGraph | None = None,
) -> NetworkStream:
    """A network from the arrays of an NPZ file; see the module's text."""
    arrays = load_arrays(file)
    if not isinstance(arrays, dict):
        raise DataError(file.label, "holds one array without a name; save it with np.savez")
    missing = {"edges", "features", "classes"} - set(arrays)
    if missing:
        raise DataError(
            file.label, f"array {sorted(missing)[0]!r} is missing; found {list(arrays)}"
        )
    features = as_features(f"{file.label}[features]", arrays["features"])
    count = len(features)
    nodes = [str(label) for label in _list(file, arrays, "nodes", np.arange(count))]
    check_labels(nodes, f"{file.label}[nodes]: ")
    refuse_duplicates(f"{file.label}[nodes]", nodes, graph=graph)
    classes = [str(c) for c in _list(file, arrays, "classes")]
    names: list[str] = []
    if "class_names" in arrays:
        names = [*map(str, _list(file, arrays, "class_names"))]
        ids = _integer_list(file, arrays, "classes")
        bad = np.flatnonzero((ids < -1) | (ids >= len(names)))
        if len(bad):
            raise DataError(
                f"{file.label}[classes]",
                f"unknown class {ids[bad[0]]} of node {shown(nodes[bad[0]])}; "
                f"class_names has {len(names)}",
            )
        classes = [names[i] if i >= 0 else "" for i in ids]
    check_labels([*names, *set(classes)], f"{file.label}[classes]: ")
    positions = Positions(nodes, graph)
    table = checked_table(
        file.label,
        nodes,
        _edge_rows(file, arrays["edges"], positions),
        features,
        ["" if c == "-1" else c for c in classes],
        aside=aside,
        positions=positions,
        **{key: _integer_list(file, arrays, key) for key in _PARTS if key in arrays},
    )
    table.class_order = names
    return table.stream(name)


def load_arrays(file: SourceFile) -> Any:
    """The array of an NPY file or the arrays of an NPZ file; never a pickled object."""
    try:
        found = np.load(io.BytesIO(file.read()), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {key: found[key] for key in found.files}
    except _UNREADABLE as error:
        # NumPy's own words about pickles say how to load them, which nobody should.
        why = "" if "pickle" in str(error) else f" ({error})"
        raise DataError(file.label, f"not a NumPy file of plain arrays{why}") from error


def _list(
    file: SourceFile, arrays: _Arrays, key: str, default: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    found = arrays[key] if default is None else arrays.get(key, default)
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
    if not np.issubdtype(numbers.dtype, np.number) or (numbers != np.floor(numbers)).any():
        raise DataError(source, f"whole numbers expected, found {numbers.dtype}")
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
    if not np.issubdtype(features.dtype, np.number) and features.dtype != np.bool_:
        raise DataError(source, f"features must be numbers, not {features.dtype}")
    return features.astype(np.float32)
