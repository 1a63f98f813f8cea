"""Writes versions with their facts, names and tensors, and decides which models to keep.

Tensor files are written and synced first; then one transaction adds the version. If a writer dies
between the two, it leaves tensor files that no version uses, which the next writer deletes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from dicgrl.common.atomic import make_folder
from dicgrl.errors import DataError, UserError, unknown_name
from dicgrl.graph.change import Change
from dicgrl.store.checkpoint import model_tensors
from dicgrl.store.content import change_content
from dicgrl.store.database import Database, as_text
from dicgrl.store.nights import insert_night
from dicgrl.store.pending import Entry, delete_pending
from dicgrl.store.records import (
    StoredRun,
    chain_of,
    chains_of,
    digest_of,
    insert_content,
    insert_names,
    insert_version,
)
from dicgrl.store.released import STRATEGY
from dicgrl.store.state import MEASURED, Known, LearnerState, merged
from dicgrl.store.tensors import Delta, TensorFile, delta_of, size_of, write_file
from dicgrl.store.version import RESTORE, ModelTensors, Version, lineage, now

KEEP = ("all", "last")
LONGEST_CHAIN = 16  # deltas that a load may have to apply
_MARKS = 64  # for readers that are behind


@dataclass(frozen=True, slots=True)
class Commit:
    """Metadata to write with a learner.

    Attributes:
        about: Further values for the configuration of a new run.
        keep: Which versions keep their models: "all", the "last", or a number of them such as "10".
            None for what the run was begun with, or all in a new run.
        message: The author's description of the version.
        results: Content of results.json; None if nothing was measured.
        trace: A record of each epoch of the newest change.
        night: The report of the nightly job that made the version.
        known: What the learner remembers of the folder, which is then not read again.
        settled: The queue's entries (`store.pending`) that this version has learned.
        names: The names that the learner has changed since `known`, None for those it has removed;
            None if that is not known: then all of its names count.
    """

    about: Mapping[str, Any] = field(default_factory=dict)
    keep: str | None = None
    message: str = ""
    results: Mapping[str, Any] | None = None
    trace: Sequence[Mapping[str, Any]] = ()
    night: Mapping[str, Any] | None = None
    known: Known = field(default_factory=Known)
    settled: Sequence[Entry] = ()
    names: Mapping[str, str | None] | None = None


_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def check_keep(keep: str | None) -> None:
    """Refuse what is given and neither one of `KEEP` nor a number of versions.

    Raises:
        UserError: It is not.
    """
    number = keep is not None and bool(_NUMBER.fullmatch(str(keep)))
    if keep is not None and keep not in KEEP and not number:
        raise unknown_name("keep", str(keep), (*KEEP, "a number of versions"))


def configuration(state: LearnerState, commit: Commit) -> dict[str, Any]:
    """What a new run is."""
    return {
        **commit.about,
        "identity": state.identity,
        "model": state.model_name,
        "strategy": state.strategy_name,
        "seed": state.seed,
        "settings": state.settings,
        "protocol": state.protocol,
        "keep": str(commit.keep or "all"),
    }


def append(run: StoredRun, state: LearnerState, commit: Commit) -> Known:
    """Write what a learner has done since the newest version, as versions of their own.

    Of names and of what was measured after the newest version, only what the learner has changed is
    written: other processes may have written there, too.

    Returns:
        What the learner knows of the folder then.

    Raises:
        UserError: The learner is not one that the newest version has become.
    """
    database, newest, known = run.database, int(run.config["versions"]), commit.known
    if known.stamp and run.stamp(known.version) != known.stamp:
        # The folder was put back from a backup: check everything, and compare all names.
        known = replace(known, version=-1, edits=-1, seen=0, measured={})
        commit = replace(commit, names=None)
    stored = _stored_changes(run, state, known, newest)
    new = [_described(state, number) for number in range(stored, len(state.history))]
    last = newest + len(new)
    if not new and stored > len(state.history):  # the folder is ahead of the learner
        with database.transaction():
            if _insert_own_names(run, state, commit, newest):
                _note_edit(database)
        return commit.known
    files: list[TensorFile] = []
    if new:
        assert state.model is not None
        tensors = ModelTensors(state.model.configuration(), all_tensors(state))
        files = write_tensor_files(run, tensors, last, newest)
    with database.transaction():
        if new:
            _insert_new(run, state, commit, new, files)
        edited = _insert_own_names(run, state, commit, last)
        if newest:  # it may be measured since
            before = known.measured if known.changes == stored else {}
            mine = state.measured(stored - 1)
            edited |= _update_report(StoredRun(database), mine, before, newest)
        if last:
            _update_results(StoredRun(database), commit, last)
        if edited:
            _note_edit(database)
        delete_pending(database, commit.settled)
        prune(StoredRun(database), str(commit.keep or run.config.get("keep", "all")))
    edits, seen = known.edits, known.seen
    if run.edits == edits:  # nobody else has written anything that the learner does not have
        edits, seen = StoredRun(database).edits, last
    changes = len(state.history)
    measured = state.measured(changes - 1)
    return Known(last, changes, run.stamp(last), edits, seen, measured=measured)


def _insert_new(
    run: StoredRun,
    state: LearnerState,
    commit: Commit,
    new: Sequence[Version],
    files: Sequence[TensorFile],
) -> None:
    """Write new versions, and the model, trace and night of the last of them."""
    assert state.model is not None
    database, newest = run.database, int(run.config["versions"])
    last, stored = newest + len(new), len(state.history) - len(new)
    for number, version in enumerate(new, newest + 1):
        content = change_content(state.history[stored + number - newest - 1])
        version = replace(
            version,
            number=number,
            parent=number - 1,
            time=now(),
            message=commit.message if number == last else "",
            data=digest_of(content),
        )
        insert_content(database, number, content)
        insert_version(database, version)
    insert_model(database, last, last, state.model.configuration(), files)
    if commit.trace:
        database.insert("trace", version=last, epochs=as_text(list(commit.trace)))
    if commit.night is not None:
        insert_night(database, commit.night, last)
    database.change_config(versions=last)


def all_tensors(state: LearnerState) -> dict[str, Tensor]:
    """Tensors of the model and of the strategy, by name."""
    kept = {STRATEGY + name: values.cpu().contiguous() for name, values in state.strategy.items()}
    return model_tensors(state.model) | kept


def insert_model(
    database: Database,
    version: int,
    source: int,
    configuration: Mapping[str, Any],
    files: Sequence[TensorFile],
) -> None:
    """Write that a version has a model, and which files were written for it."""
    database.insert("models", version=version, source=source, configuration=as_text(configuration))
    for file in files:
        database.insert("files", **file._asdict())


def write_tensor_files(
    run: StoredRun, model: ModelTensors, version: int, parent: int
) -> list[TensorFile]:
    """Write the tensors of a version: a delta, or a base if deltas have become too large.

    With a base the changes are written as well, where they are few: whoever has the version before
    takes in only them.
    """
    make_folder(run.folder)
    identity, tensors = run.database.identity, model.tensors
    source = run.models().get(parent)
    chain = [] if source is None else chain_of(run.files(), source)
    written = []
    base = not chain
    if chain:
        assert source is not None
        before = run.model(parent)
        assert before is not None
        delta = delta_of(before.tensors, tensors)
        of_deltas = sum(file.bytes for file in chain[1:]) + delta.bytes
        base = of_deltas > chain[0].bytes or len(chain) > LONGEST_CHAIN
        if not base or delta.bytes < size_of(tensors) / 2:
            written.append(write_file(run.folder, delta, version, source, identity))
    if base:
        written.append(write_file(run.folder, Delta(tensors, []), version, 0, identity))
    return written


def prune(run: StoredRun, keep: str) -> None:
    """Forget models that need not stay: those of tags and of as many versions as asked for do."""
    sources, files = run.models(), run.files()
    if not sources:
        return
    newest = max(sources)
    kept = kept_versions(run, keep)
    needed = {file.name for file in files if file.version == newest and file.parent}
    for chain in chains_of(files, [sources[version] for version in kept]):
        needed |= {file.name for file in chain}
    connection = run.database.connection
    for version in sources.keys() - kept:
        connection.execute("DELETE FROM models WHERE version = ?", (version,))
    for name in {file.name for file in files} - needed:
        connection.execute("DELETE FROM files WHERE name = ?", (name,))


def kept_versions(run: StoredRun, keep: str) -> set[int]:
    """The versions with a model whose model stays: those of tags, and as many as asked for.

    Where a tag is damaged, nobody knows which model it keeps: then all stay.
    """
    models = run.models().keys()
    most = {"all": len(models), "last": 1}.get(keep) or int(keep)
    try:
        tagged = set(run.tags().values())
    except DataError:
        return set(models)
    return (set(sorted(models)[-most:]) | tagged) & models


def remove_garbage(folder: Path, files: Sequence[TensorFile]) -> None:
    """Remove files of tensors that no version names."""
    named = {file.name for file in files}
    for path in folder.glob("*"):
        if path.name not in named:
            path.unlink(missing_ok=True)
    for path in folder.glob(".*"):
        path.unlink(missing_ok=True)


def _stored_changes(run: StoredRun, state: LearnerState, known: Known, newest: int) -> int:
    """How many changes of a learner are stored already, after checking that they are its own."""
    if known.version == newest:
        return known.changes
    line = lineage(run.versions(), newest)
    for number, (version, change) in enumerate(zip(line, state.history, strict=False)):
        if version.number > known.version and not _same(version, change):
            raise _gone_other_ways(run, f"another part {number} was learned")
    if len(line) < known.changes:
        raise _gone_other_ways(run, "an earlier version was restored")
    return len(line)


def _gone_other_ways(run: StoredRun, how: str) -> UserError:
    return UserError(
        f"{run.database.path.parent}: {how} and saved here; choose another folder, or load the "
        "newest version"
    )


def _same(version: Version, change: Change) -> bool:
    return version.kind == change.kind and version.data == digest_of(change_content(change))


def _described(state: LearnerState, number: int) -> Version:
    """Metadata of a change that is to be stored."""
    change = state.history[number]
    counts: dict[str, int] = {}
    if change.part is not None:
        counts |= {"facts": change.part.facts}
        counts |= {f"new_{kind}": count for kind, count in change.part.arrived().items()}
    counts |= {name: len(array) for name, array in change.arrays.items()}
    return Version(0, 0, change.kind, counts=counts, **state.measured(number))


def _insert_own_names(run: StoredRun, state: LearnerState, commit: Commit, last: int) -> bool:
    """Write the names that the learner has changed; whether there are any."""
    names = commit.names
    if names is None:  # what it has removed is not known
        there = run.names(last)
        names = {label: name for label, name in state.names.items() if there.get(label) != name}
    insert_names(run.database, last, names)
    return bool(names)


def _update_report(
    run: StoredRun, mine: Mapping[str, Any], before: Mapping[str, Any], number: int
) -> bool:
    """Write what the learner has measured after a version since it was written; whether it has."""
    version = run.version(number)
    there = {name: getattr(version, name) for name in MEASURED}
    found = merged(there, mine, before)
    if version.kind == RESTORE or found == there:
        return False
    insert_version(run.database, replace(version, **found))
    return True


def _note_edit(database: Database) -> None:
    """Let readers see that something was written besides versions, and how many names there are.

    A number by chance, and no count: in another copy of the run it is never the same.
    """
    mark = 1 + secrets.randbelow(1 << 62)
    marks = [*database.config().get("marks", []), [mark, database.count("names")]]
    database.change_config(edits=mark, marks=marks[-_MARKS:])


def _update_results(run: StoredRun, commit: Commit, last: int) -> None:
    """Write the results of the newest version, and of those that have none."""
    entries = (commit.results or {}).get("parts", [])
    if not entries:
        return
    summary = {key: value for key, value in (commit.results or {}).items() if key != "parts"}
    newest = run.version(last)
    if newest.kind != RESTORE:
        results = {"summary": summary, "entry": _without_tests(entries[-1])}
        insert_version(run.database, replace(newest, results=results))
    if not run.lacks_results(max(1, last - len(entries)), last):
        return
    line = lineage(run.versions(), last)[-len(entries) :]
    for version, entry in zip(line, entries, strict=True):
        if version.results is None:  # saved from Python
            results = {"summary": summary, "entry": _without_tests(entry)}
            insert_version(run.database, replace(version, results=results))


def _without_tests(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of results.json without what the version has anyway."""
    return {key: value for key, value in entry.items() if key != "tests"}
