"""Vector indexes that follow a run: they are built once, and then updated with what changed.

A folder holds the index, whose keys are ids, a table of id, label and name, and `index.json`, which
says to which version they belong. That file is written last. If a process is killed before, the
update is simply repeated: it does no harm to insert or remove a row twice.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from dicgrl.ask.exports.format import new_place, write_lines
from dicgrl.ask.exports.index_kinds import VectorIndex, index_named
from dicgrl.ask.exports.takeout import Row, Takeout
from dicgrl.common.atomic import as_json, replacing_file
from dicgrl.errors import DataError, UserError
from dicgrl.graph.arrays import IntArray

_ABOUT = "index.json"
_TOLD = ("index", "of", "width", "version", "digest", "identity")


def build_index(takeout: Takeout, folder: Path, name: str, of: str) -> list[str]:
    """Build an index in a new folder.

    Args:
        takeout: All rows.
        folder: Where to; there must be nothing yet, or an index, which is refused.
        name: The kind of index.
        of: What is in it, such as entities.

    Returns:
        Names of the files.

    Raises:
        UserError: There is something already, or a library is missing.
    """
    kind = index_named(name)
    if (folder / _ABOUT).exists():
        version = index_version(folder, name)
        raise UserError(
            f"{folder}: holds an index of version {version}; --since {version} updates it"
        )
    rows, vectors = takeout.answering(of)
    index = kind(vectors.shape[1])
    index.put(rows, vectors)
    with new_place(folder) as temporary:
        _write(index, rows, takeout, temporary, of)
        return sorted(path.name for path in temporary.iterdir())


def update_index(
    takeout: Takeout, folder: Path, name: str, of: str, retired: IntArray
) -> list[str]:
    """Put the rows that changed into an index, and take out those that are no answers any more.

    Args:
        takeout: The rows that changed.
        folder: Where the index is.
        name: The kind of index.
        of: What is in it.
        retired: Ids of all that is no answer.

    Returns:
        Names of the files.

    Raises:
        DataError: The index is damaged.
        UserError: It is of another kind, or another run.
    """
    about = _about(folder, name)
    rows, vectors = takeout.answering(of)
    file = folder / f"{of}.{name}"
    if about["of"] != of or about["width"] != vectors.shape[1]:
        raise UserError(
            f"{folder}: holds {about['of']} of length {about['width']}; expected {of} of length "
            f"{vectors.shape[1]}"
        )
    if about["identity"] != takeout.about.get("identity", ""):
        raise UserError(f"{folder}: the index belongs to another run")
    index = index_named(name)(about["width"])
    if not index.in_place and _digest(file) not in (about["digest"], about["coming"]):
        raise DataError(file, f"not the file that {_ABOUT} speaks of; build the index again")
    index.read(file)
    index.remove(np.setdiff1d(retired, [row.id for row in rows]))
    index.put(rows, vectors)
    gone = set(retired.tolist())
    told = {row.id: row for row in _told(folder / f"{of}.tsv") if row.id not in gone}
    told |= {row.id: row for row in rows}
    _write(index, [told[key] for key in sorted(told)], takeout, folder, of)
    return sorted(path.name for path in folder.iterdir())


def index_version(folder: Path, name: str) -> int:
    """The version of the run that an index is of.

    Raises:
        DataError: There is no index, or it is of another kind.
    """
    return int(_about(folder, name)["version"])


def _about(folder: Path, name: str) -> dict[str, Any]:
    place = folder / _ABOUT
    try:
        about = json.loads(place.read_text(encoding="utf-8"))
        found = {key: about[key] for key in _TOLD} | {"coming": about.get("coming", "")}
    except OSError:
        raise UserError(f"{folder}: holds no index; leave out --since to build one") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(place, f"damaged ({error})") from None
    if found["index"] != name:
        raise UserError(f"{folder}: the index is of {found['index']}, not {name}")
    return found


def _write(index: VectorIndex, rows: list[Row], takeout: Takeout, folder: Path, of: str) -> None:
    with replacing_file(folder / f"{of}.tsv") as temporary:
        write_lines(temporary, ((str(row.id), row.label, row.name) for row in rows))
    digest = _stored(index, folder / f"{of}.{index.name}")
    about = {
        "index": index.name,
        "of": of,
        "rows": len(index),
        "width": takeout.arrays[of].flatten(1).shape[1],
        "metric": "cosine",
        "version": takeout.about.get("version", 0),
        "identity": takeout.about.get("identity", ""),
        "digest": digest,
    }
    _note(folder / _ABOUT, about)


def _stored(index: VectorIndex, file: Path) -> str:
    """Write an index, and give the digest of its file; empty where it has none.

    Which file is coming is noted before it comes, so that whoever is killed between the two finds a
    file that is known.
    """
    if index.in_place:
        index.write(file)
        return ""
    place = file.parent / _ABOUT
    with replacing_file(file) as temporary:
        index.write(temporary)
        digest = _digest(temporary)
        if place.exists():
            told = json.loads(place.read_text(encoding="utf-8"))
            _note(place, told | {"digest": _digest(file), "coming": digest})
    return digest


def _note(place: Path, about: dict[str, Any]) -> None:
    with replacing_file(place) as temporary:
        temporary.write_text(as_json(about), encoding="utf-8")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _told(path: Path) -> list[Row]:
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0].isdecimal():
            raise DataError(path, "expected id, label and name", number)
        found.append(Row(int(fields[0]), fields[1], fields[2]))
    return found
