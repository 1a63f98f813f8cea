"""Stores maps in the database of a run: the positions of all entities in a plane, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicgrl.errors import DataError, UserError
from dicgrl.store.database import as_text, opened, parsed
from dicgrl.store.run_folder import RunFolder

_STORED = np.dtype("<f4")


class StoredMap(NamedTuple):
    """The map of a version.

    Attributes:
        version: The version.
        about: How it was made and what moved, ready for JSON.
        points: Positions, float32 [N, 2]; NaN for rows that are on no map.
    """

    version: int
    about: Mapping[str, Any]
    points: NDArray[np.float32]


def read_maps(run: RunFolder) -> dict[int, Mapping[str, Any]]:
    """Metadata of the stored maps, by version."""
    if not run.has_database():
        return {}
    with opened(run.database) as database:
        database.config()  # rows are checked against the run's identity
        return {row["version"]: parsed(row["about"]) for row in database.rows("maps")}


def read_map(run: RunFolder, version: int) -> StoredMap | None:
    """The map of a version; None if none is stored.

    Raises:
        DataError: It is damaged.
    """
    if not run.has_database():
        return None
    with opened(run.database) as database:
        database.config()
        for row in database.rows("maps", "WHERE version = ?", (version,)):
            about, data = parsed(row["about"]), row["data"]
            if len(data) != about.get("rows", -1) * 2 * _STORED.itemsize:
                raise DataError(run.database, f"damaged run (the map of version {version})")
            points = np.frombuffer(data, _STORED).reshape(-1, 2).astype(np.float32)
            return StoredMap(version, about, points)
    return None


def write_map(run: RunFolder, made: StoredMap, *, wait: float = 0.0) -> None:
    """Store the map of a version, in place of the one that is there.

    Raises:
        BusyError: Another process is writing to the folder.
        UserError: The run is of an earlier release, whose folders have no place for it.
    """
    if not run.has_database():
        raise UserError(
            f"{run.path}: of an earlier release; learn, or tag a version, to convert it"
        )
    about = {**made.about, "rows": len(made.points)}
    data = made.points.astype(_STORED).tobytes()
    with run.locked(wait), opened(run.database, write=True) as database:
        database.config()  # rows carry the run's identity
        with database.transaction():
            database.insert("maps", version=made.version, about=as_text(about), data=data)
