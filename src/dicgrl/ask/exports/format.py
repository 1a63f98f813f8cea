"""Export formats: each writes the vectors and labels of a learner to files in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from dicgrl.ask.exports.takeout import Takeout
from dicgrl.common.atomic import check_place, new_folder
from dicgrl.common.registry import register
from dicgrl.errors import UserError, unknown_name
from dicgrl.graph.frames import listed

DEFAULT = "arrays"


class VectorFormat(ABC):
    """A way to write vectors and labels. A subclass with a name can be asked for by that name.

    Attributes:
        heeds: Which of the options `neighbours` and `license` have an effect on it.

    Example:
        `class Glove(VectorFormat, name="glove")` with a `write`; see `ask/exports/tables.py`.
    """

    registry: ClassVar[dict[str, type[VectorFormat]]] = {}
    heeds: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, name: str) -> None:
        super().__init_subclass__()
        register(VectorFormat.registry, "format of vectors", name, cls)

    @abstractmethod
    def write(self, takeout: Takeout, folder: Path) -> None:
        """Write to a folder in which other formats may have written their files."""


def chosen_formats(given: str | Sequence[str]) -> list[str]:
    """Names of formats from a list, or a text with commas.

    Raises:
        UserError: One is unknown, or there is none.

    Example:
        >>> chosen_formats("parquet, npy")
        ['parquet', 'npy']
    """
    found = given.split(",") if isinstance(given, str) else listed(given, "names of formats")
    for name in found:
        if not isinstance(name, str):
            raise unknown_name("format of vectors", name, VectorFormat.registry)
    names = list(dict.fromkeys(name.strip().lower() for name in found))
    for name in names:
        if name not in VectorFormat.registry:
            raise unknown_name("format of vectors", name, VectorFormat.registry)
    if not names:
        raise UserError(f"no format: expected one of {', '.join(VectorFormat.registry)}")
    return names


def check_options(
    formats: Sequence[str],
    neighbours: int | None = None,
    license: str = "",  # noqa: A002
) -> None:
    """Refuse options that none of the formats heeds.

    Raises:
        UserError: One of them is given.
    """
    known = VectorFormat.registry
    for option, is_given in (("neighbours", neighbours is not None), ("license", bool(license))):
        if is_given and not any(option in known[name].heeds for name in formats):
            heeding = " or ".join(name for name, each in known.items() if option in each.heeds)
            raise UserError(
                f"{option} has no effect with format {', '.join(formats)}; choose {heeding}"
            )


def write_takeout(
    takeout: Takeout, folder: Path, formats: str | Sequence[str] = DEFAULT
) -> list[str]:
    """Write what is taken out of a learner to a new folder, which appears whole or not at all.

    Args:
        takeout: What is taken out.
        folder: Where to; there must be nothing yet.
        formats: Names of formats.

    Returns:
        Names of the files.

    Raises:
        UserError: The folder is there, cannot be made, or a format is unknown.
    """
    chosen = chosen_formats(formats)
    with new_place(folder) as temporary:
        for name in chosen:
            VectorFormat.registry[name]().write(takeout, temporary)
        return sorted(path.name for path in temporary.iterdir())


@contextmanager
def new_place(folder: Path) -> Iterator[Path]:
    """Where to write what becomes a folder once all of it is there.

    Raises:
        UserError: It is there already, or cannot be made.
    """
    check_place(folder.parent)
    if folder.exists():
        raise UserError(f"{folder}: already exists; choose another folder")
    with new_folder(folder) as temporary:
        yield temporary


def write_lines(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write lines of fields with TAB between them."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
