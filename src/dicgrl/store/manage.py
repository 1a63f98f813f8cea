"""Operations on versions: log, tag, restore, compact."""

from __future__ import annotations

import re
from typing import Any

from dicgrl.errors import UserError, shown, shown_value
from dicgrl.store.database import as_text, parsed
from dicgrl.store.records import (
    StoredRun,
    chains_of,
    changed_names,
    insert_names,
    insert_version,
)
from dicgrl.store.tensors import Delta, size_of, write_file
from dicgrl.store.version import RESTORE, ModelTensors, Source, Version, chosen, not_kept, now
from dicgrl.store.writer import kept_versions, prune

_HEAD = 1 << 16  # bytes that files of tensors may have besides
_TAG = re.compile(r"[\w.+@:/-]{1,100}")


def log(source: Source) -> list[dict[str, Any]]:
    """The versions of a run, in order, ready for JSON."""
    tags = source.tags()
    models = source.models()
    return [
        {
            "version": version.number,
            "kind": version.kind,
            "time": version.time,
            "message": version.message,
            "parent": version.parent,
            "counts": dict(version.counts),
            "seconds": version.report.get("learn_seconds"),
            "tags": sorted(name for name, number in tags.items() if number == version.number),
            "model": version.number in models,
        }
        for version in source.versions()
    ]


def tag(run: StoredRun, name: str, at: int | str | None) -> int:
    """Name a version; its model stays whatever the run keeps. Gives its number.

    Raises:
        UserError: The name cannot be one or is another version's, or the model was not kept.
    """
    tags = run.tags()
    number = chosen(at, run.versions(), run)
    if not isinstance(name, str) or not _TAG.fullmatch(name) or name.isdecimal():
        raise UserError(
            f"{shown_value(name)}: a tag has letters, digits and any of . + @ : / - _, and is not "
            "a number"
        )
    if tags.get(name, number) != number:
        raise UserError(f"{shown(name)} is version {tags[name]}; --delete it first")
    check_kept(run, number)
    with run.database.transaction():
        run.database.insert("tags", name=name, version=number)
        _count_tags(run)
    return number


def untag(run: StoredRun, name: str, keep: str) -> int:
    """Take a name away from a version; gives its number.

    Raises:
        UserError: There is no such tag.
    """
    tags = run.tags()
    if name not in tags:
        known = f"; tags: {', '.join(sorted(tags))}" if tags else ""
        raise UserError(f"there is no tag {shown(name)}{known}")
    with run.database.transaction():
        run.database.connection.execute("DELETE FROM tags WHERE name = ?", (name,))
        _count_tags(run)
        prune(run, keep)
    return tags[name]


def _count_tags(run: StoredRun) -> None:
    """Note how many tags there are, so that one which is lost is missed."""
    run.database.change_config(tags=run.database.count("tags"))


def restore(run: StoredRun, at: int | str, message: str) -> int:
    """Make a version whose content is that of an earlier one; gives its number. Nothing is lost.

    Raises:
        UserError: There is no such version, it is the newest, or its model was not kept.
    """
    database, versions = run.database, run.versions()
    number, newest = chosen(at, versions, run), len(versions)
    if number == newest:
        raise UserError(f"version {number} is the newest already")
    check_kept(run, number)
    sources = run.models()
    row = next(database.rows("models", "WHERE version = ?", (number,)))
    restored = Version(
        newest + 1,
        number,
        RESTORE,
        time=now(),
        message=message or f"version {number} again",
        counts={"restored": number},
    )
    with database.transaction():
        insert_version(database, restored)
        database.insert(
            "models",
            version=restored.number,
            source=sources[number],
            configuration=as_text(parsed(row["configuration"])),
        )
        names = changed_names(run.names(newest), run.names(number))
        insert_names(database, restored.number, names)
        database.change_config(versions=restored.number)
        prune(StoredRun(database), str(run.config.get("keep", "all")))
    return restored.number


def compact(run: StoredRun, keep: str) -> None:
    """Forget what need not stay, and give room back.

    The newest model becomes one file where that takes no more room than the files that it replaces:
    they stay as long as another version needs them.
    """
    database, newest = run.database, int(run.config["versions"])
    files, model = [], _worth_a_base(run, newest, keep)
    if model is not None:
        source = run.models()[newest]
        files.append(write_file(run.folder, Delta(model.tensors, []), source, 0, database.identity))
    with database.transaction():
        for file in files:
            database.insert("files", **file._asdict())
        prune(run, keep)
    database.connection.execute("VACUUM")
    database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _worth_a_base(run: StoredRun, newest: int, keep: str) -> ModelTensors | None:
    """The newest model, if a single file would take no more room than the files it replaces."""
    files, sources = run.files(), run.models()
    others = [sources[version] for version in kept_versions(run, keep) - {newest}]
    shared = {file.name for chain in chains_of(files, others) for file in chain}
    chain = run.chain(newest)
    # Its own delta stays: a reader of the version before takes in only that.
    freed = sum(file.bytes for file in chain[:-1] if file.name not in shared)
    if len(chain) < 2 or not freed:
        return None
    model = run.model(newest)
    return model if model is not None and size_of(model.tensors) <= freed + _HEAD else None


def check_kept(run: StoredRun, number: int) -> None:
    """Refuse a version whose model was not kept.

    Raises:
        UserError: It was not.
    """
    models = run.models()
    if number not in models:
        raise not_kept(number, models)
