"""Makes maps of a run's versions. Each starts from the map of the version before it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from dicgrl.common.atomic import check_place, make_folder, replacing_file
from dicgrl.errors import BusyError, UserError
from dicgrl.graph.arrays import IntArray
from dicgrl.learner import Learner
from dicgrl.maps import layout, movement, spread
from dicgrl.maps.forces import Floats
from dicgrl.maps.layout import directions
from dicgrl.store.maps import StoredMap, read_map, read_maps, write_map
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.version import not_kept
from dicgrl.tasks import task_of_model

MOST = 24
"""How many versions are mapped where none is yet: the others need not be waited for."""


class _Known(NamedTuple):
    """The earlier map that a new one starts from."""

    version: int
    points: Floats
    vectors: Tensor | None


def map_of(learner: Learner, before: Floats | None = None, earlier: Tensor | None = None) -> Floats:
    """Where a learner's entities, or nodes, are on a map, [N, 2]; NaN for what was forgotten.

    Args:
        learner: The learner.
        before: The map that it goes on from, whose rows are its first ones; none for a new map.
        earlier: The vectors of that map.

    Example:
        >>> learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
        >>> report = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
        >>> map_of(learner).shape
        (4, 2)
    """
    _, vectors = learner.ask.vectors()
    graph = learner.trainer.graph
    gone = graph.retired(graph.part_type.vocabularies[0])
    return layout(vectors, before, earlier, absent=gone, seed=learner.seed)


def stored_map(folder: str | Path, at: int | str | None = None) -> StoredMap | None:
    """The map of a version as it is stored; None where none is.

    Raises:
        UserError: There is no such version.
    """
    run = RunFolder(folder)
    line = run.line(at)
    return read_map(run, line[-1].number) if line else None


def places_of(
    folder: str | Path, at: int | str | None = None
) -> Callable[[str, IntArray], Floats | None]:
    """Where rows of a version are on its map, for exports: [n, 2] for a vocabulary and ids.

    The places are None where there is no map, and of a vocabulary that is on none; NaN for rows
    that the map does not know.

    Raises:
        UserError: There is no such version.
    """
    stored = stored_map(folder, at)
    shown = task_of_model(RunFolder(folder).config()["model"]).part_type.vocabularies[0]

    def places(vocabulary: str, ids: IntArray) -> Floats | None:
        if stored is None or vocabulary != shown:
            return None
        found = np.full((len(ids), 2), np.nan, dtype=np.float32)
        known = ids < len(stored.points)
        found[known] = stored.points[ids[known]]
        return found

    return places


def write_places(folder: str | Path, to: Path, at: int | str | None = None) -> int:
    """Write the map of a version as lines of label, name, x and y; gives how many.

    Raises:
        UserError: There is no such version, or the file is there already.
    """
    if to.exists():
        raise UserError(f"{to}: already exists; choose another file")
    learner = Learner.load(folder, at=at, device="cpu")
    vocabulary, _ = learner.ask.vectors()
    name = learner.task.part_type.vocabularies[0]
    places = places_of(folder, at)(name, np.arange(len(vocabulary)))
    if places is None:
        raise UserError(f"{folder}: there is no map; dicgrl map {folder} makes it")
    lines = [
        f"{label}\t{learner.names.of(label)}\t{x:.6g}\t{y:.6g}\n"
        for label, (x, y) in zip(vocabulary, places.tolist(), strict=True)
        if x == x  # not a number: on no map
    ]
    check_place(to.parent)
    make_folder(to.parent)
    with replacing_file(to) as temporary:
        temporary.write_text("".join(["label\tname\tx\ty\n", *lines]), encoding="utf-8")
    return len(lines)


def make_maps(
    folder: str | Path, at: int | str | None = None, *, afresh: bool = False, wait: float = 0.0
) -> Iterator[StoredMap]:
    """Make the maps of a version and of those before it that have none, and store them.

    Where there is no map yet, at most `MOST` versions get one, the first and the last among them;
    later ones go on from there. A version whose model was not kept gets none. Where another process
    writes to the folder, a map is given and not stored.

    Args:
        folder: The run.
        at: The version, or a tag; the newest unless given.
        afresh: Make them all anew, without regard to those that are stored.
        wait: Seconds to wait for another process that writes.

    Raises:
        UserError: There is no such version, its model was not kept, or nothing was learned yet.
    """
    run = RunFolder(folder)
    line = [version.number for version in run.line(at)]
    if not line:
        raise UserError(f"{folder}: nothing was learned yet, so there is nothing to show")
    with run.source() as source:
        models = source.models()
    there = set() if afresh else {n for n in read_maps(run) if n in line}
    if line[-1] not in there and line[-1] not in models:
        raise not_kept(line[-1], models)
    first = max((line.index(n) for n in there), default=-1)
    todo = [n for n in line[first + 1 :] if n in models]
    if len(todo) > MOST:
        todo = [todo[i] for i in np.linspace(0, len(todo) - 1, MOST).round().astype(int)]
    known = _begin(run, line[first] if there else 0)
    for number in todo:
        made, known = _next(Path(folder), number, known)
        with contextlib.suppress(BusyError):
            write_map(run, made, wait=wait)
        yield made


def _begin(run: RunFolder, number: int) -> _Known | None:
    """What the first new map goes on from."""
    stored = read_map(run, number) if number else None
    if stored is None:
        return None
    try:
        vectors = _vectors(Learner.load(run.path, at=number, device="cpu"))
    except UserError:  # its model is gone: nobody is let loose then
        vectors = None
    return _Known(number, stored.points, vectors)


def _next(folder: Path, number: int, known: _Known | None) -> tuple[StoredMap, _Known]:
    started = time.perf_counter()
    learner = Learner.load(folder, at=number, device="cpu")
    before, earlier = (known.points, known.vectors) if known else (None, None)
    vectors = _vectors(learner)
    points = map_of(learner, before, earlier)
    about: dict[str, Any] = {"after": known.version if known else 0, "spread": spread(points)}
    there = int((~np.isnan(points[:, 0])).sum())
    came = there
    if before is not None:
        moved = movement(before, points)
        came = there - moved.points
        about |= {"moved": {"median": moved.median, "most": moved.most}}
    if earlier is not None:
        turned = (directions(vectors)[: len(earlier)] - directions(earlier)).norm(dim=1)
        about["drift"] = {
            "changed": float((turned > 0).float().mean()),
            "median": float(turned.median()),
            "most": float(turned.quantile(0.95)),
        }
    about |= {"shown": there, "came": came, "seconds": time.perf_counter() - started}
    return StoredMap(number, about, points), _Known(number, points, vectors)


def _vectors(learner: Learner) -> Tensor:
    return learner.ask.vectors()[1].detach().cpu().clone()
