"""Data frames of the library that one likes; none of them is needed by anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dicgrl.common.optional import needed
from dicgrl.errors import unknown_name

LIBRARIES = ("pandas", "polars", "pyarrow")


def as_frame(columns: Mapping[str, Sequence[Any]], library: str = "pandas") -> Any:
    """A data frame of columns.

    Args:
        columns: Values by the name of the column, all of one length.
        library: pandas, polars or pyarrow.

    Raises:
        UserError: There is no such library, or it is not installed.
    """
    if library not in LIBRARIES:
        raise unknown_name("library of data frames", library, LIBRARIES)
    extra = "arrow" if library == "pyarrow" else "frames"
    made = needed(library, extra, f"a frame of {library}")
    if library == "pyarrow":
        return made.table({name: list(values) for name, values in columns.items()})
    return made.DataFrame({name: list(values) for name, values in columns.items()})
