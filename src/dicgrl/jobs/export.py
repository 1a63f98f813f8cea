"""Vectors of a run for other programs: all of them, or what changed since a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from dicgrl.ask.exports import DEFAULT, Takeout, write_takeout
from dicgrl.ask.exports.format import check_options, chosen_formats
from dicgrl.ask.exports.index_kinds import index_named
from dicgrl.ask.exports.indexes import build_index, index_version, update_index
from dicgrl.errors import UserError
from dicgrl.jobs.maps import places_of
from dicgrl.jobs.versions import Models, changed_ids, gone_labels
from dicgrl.learner import Learner
from dicgrl.store.run_folder import RunFolder


def export_run(
    folder: Path,
    to: Path,
    *,
    format: str | Sequence[str] = DEFAULT,  # noqa: A002
    index: str | None = None,
    since: int | str | None = None,
    at: int | str | None = None,
    neighbours: int | None = None,
    license: str = "",  # noqa: A002
) -> list[str]:
    """Write the vectors of a run for other programs.

    Args:
        folder: The run.
        to: Where to; there must be nothing yet, unless an index is updated.
        format: Names of formats, see `Asking.export`.
        index: Instead: the kind of a vector index, usearch, faiss or lance, built or updated.
        since: Only rows that changed since this version; for an index that it has.
        at: The version to have; the newest unless given.
        neighbours: How many neighbours of each row Parquet tells.
        license: For the model card.

    Returns:
        Names of the files.

    Raises:
        UserError: There is no such version, format or index, an option has no effect, or the target
            is there already.
    """
    about = {"license": license}
    if index is not None:
        if format != DEFAULT:
            raise UserError("--index makes an index, --format files: one at a time")
        if neighbours is not None or license:
            raise UserError("--neighbours and --license are about files: leave out --index")
        return _index(folder, to, index, since, at)
    formats = chosen_formats(format)  # before anything is loaded
    if since is not None and DEFAULT in formats:
        formats.append("parquet")  # which comes with the arrays of rows that changed
    check_options(formats, neighbours, license)
    if since is not None:
        takeout = _changes(folder, Models.loaded(folder, since, at), about, neighbours)
    else:
        takeout = _everything(folder, at, about, neighbours)
    return write_takeout(takeout, to, format)


def export_since(
    folder: Path, to: Path, since: int | str, at: int | str | None = None
) -> list[str]:
    """Write the rows that changed since a version; see `export_run`."""
    return export_run(folder, to, since=since, at=at)


def _everything(
    folder: Path, at: int | str | None, about: Mapping[str, Any], neighbours: int | None = None
) -> Takeout:
    learner = Learner.load(folder, at=at, device="cpu")
    return learner.ask.takeout(
        about=_about(folder, learner, about),
        neighbours=neighbours,
        places=places_of(folder, learner.version),
    )


def _changes(
    folder: Path, models: Models, about: Mapping[str, Any], neighbours: int | None = None
) -> Takeout:
    arrays, labels = models.after.ask.arrays()
    before, _ = models.before.ask.arrays()
    ids = {name: changed_ids(models, name).numpy() for name in labels}
    whole = models.after.ask.takeout(
        ids,
        gone={name: gone_labels(models.known, name) for name in labels},
        changed=True,
        about=_about(folder, models.after, about),
        neighbours=neighbours,
        places=places_of(folder, models.after.version),
    )
    same = [  # these have no rows of their own
        name
        for name in arrays.keys() - labels.keys()
        if name in before and torch.equal(before[name], arrays[name])
    ]
    return whole.without(same)


def _index(
    folder: Path, to: Path, name: str, since: int | str | None, at: int | str | None
) -> list[str]:
    index_named(name)
    if since is None:
        takeout = _everything(folder, at, {})
        return build_index(takeout, to, name, next(iter(takeout.rows)))
    there = index_version(to, name)
    said = RunFolder(folder).line(since)[-1].number
    if there != said:
        raise UserError(f"{to}: the index is of version {there}: say --since {there}")
    models = Models.loaded(folder, since, at)
    if not models.known.same_line:
        raise UserError(f"version {said} did not become the one wanted: build the index again")
    takeout = _changes(folder, models, {})
    of = next(iter(takeout.rows))
    retired = models.after.trainer.graph.retired(of)
    return update_index(takeout, to, name, of, retired)


def _about(folder: Path, learner: Learner, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a model card says: of the learner, its data, and what the user adds."""
    config = RunFolder(folder).config()
    data = {"dataset": config.get("dataset", folder.name), "recipe": config.get("recipe", "")}
    made = {"identity": learner.identity, "dicgrl": _version()}
    return {**data, **learner.about(), **made, **told}


def _version() -> str:
    try:
        return version("dicgrl")
    except PackageNotFoundError:  # run from a copy of the source
        return ""
