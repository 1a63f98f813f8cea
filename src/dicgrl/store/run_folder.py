"""A run in a folder: facts, versions and settings in SQLite, tensors as safetensors.

    store.sqlite  what the learner is, and its versions: facts, labels, names, reports, results
    tensors/      the models: a base, and deltas of changed rows
    results.json  what was measured after each part       (made from the store)
    trace.jsonl   a line per epoch                        (made from the store)
    nights/       a JSON and a page for each night        (made from the store)
    curves.png    the learning curves                     (written by the command line)
    reliability.png  how reliable probabilities are       (likewise)

Each change of the learner becomes one version, in one commit: first its tensors are written and
synced, then a transaction of the database adds the version. Every row and every tensor file carries
a checksum and the identity of its run. A reader keeps the version that it opened, even if others
are written meanwhile. Folders of earlier releases can be read; the first save converts them. See
docs/store.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import check_place, hidden_name, make_folder, new_folder, sync, written_as
from dicgrl.errors import DataError, UserError
from dicgrl.graph.change import Change
from dicgrl.store.backup import backup
from dicgrl.store.checkpoint import save_model
from dicgrl.store.content import changes_of
from dicgrl.store.convert import convert, remove_released
from dicgrl.store.damage import damaged_run, is_no_damage
from dicgrl.store.database import create, opened
from dicgrl.store.manage import compact, log, restore, tag, untag
from dicgrl.store.nights import NightsPlace
from dicgrl.store.overview import overview
from dicgrl.store.pending import PendingFacts
from dicgrl.store.reading import read_state
from dicgrl.store.records import StoredRun
from dicgrl.store.released import ReleasedRun, is_released
from dicgrl.store.results import (
    checked_results,
    is_written,
    newest,
    results_of,
    write_results,
    write_trace,
)
from dicgrl.store.state import Known, LearnerState
from dicgrl.store.tensors import MissingError
from dicgrl.store.update import News, news_since
from dicgrl.store.verify import Findings, verify
from dicgrl.store.version import Source, Version, chosen, lineage
from dicgrl.store.writer import Commit, append, check_keep, configuration, remove_garbage
from dicgrl.tasks import task_of_model

_TRIES = 20


class RunFolder(NightsPlace, PendingFacts):
    """A folder that holds a run, or in which one can be saved.

    Args:
        path: The folder; it need not exist.

    Example:
        >>> RunFolder("no such run").config()
        Traceback (most recent call last):
        dicgrl.errors.DataError: no such run: no run here (store.sqlite is missing)
    """

    # Reading

    @contextlib.contextmanager
    def source(self) -> Iterator[Source]:
        """The stored run, as it is at this moment until the block ends.

        Raises:
            DataError: There is none, or it is damaged or not of this package.
        """
        if os.path.lexists(self._database):
            with opened(self._database) as database:
                try:
                    yield StoredRun(database)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise self.damage(error) from error
        elif is_released(self.path):
            yield ReleasedRun(self.path)
        else:
            runs = self.runs_inside()
            held = f"; the folder holds the runs {', '.join(runs)}" if runs else ""
            raise DataError(self.path, f"no run here (store.sqlite is missing){held}")

    def config(self, identity: str = "") -> dict[str, Any]:
        """What the run is.

        Args:
            identity: That of the learner whose run it must be; any unless given.

        Raises:
            DataError: There is none, or it is damaged or not of this package.
        """
        with self.source() as source:
            config = source.config
        if identity and config.get("identity") != identity:
            raise DataError(self.path, f"of another run: identity {config.get('identity')}")
        return config

    def misfit(self, error: Exception) -> DataError:
        """The error for a configuration that this version, or this installation, cannot use."""
        return DataError(self.path, f"not a run that works here ({error})")

    def damage(self, error: Exception) -> DataError:
        """The error for files that are undamaged each, and do not fit together."""
        return damaged_run(self.path, error)

    def load(
        self, device: torch.device, identity: str = "", at: int | str | None = None
    ) -> LearnerState:
        """Read back a learner, its newest version or an earlier one.

        Where another process removes a file that is being read, it is read again.

        Args:
            device: Where the model and the strategy's tensors go.
            identity: That of the learner whose run it must be; any unless given.
            at: The version, or a tag; the newest unless given.

        Raises:
            DataError: A file is missing, damaged or not of this package.
            UserError: There is no such version, or its model was not kept.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self.source() as source:
                    if identity and source.config.get("identity") != identity:
                        raise DataError(self.path, "of another run than a moment ago")
                    return read_state(source, device, at)
            except (MissingError, FileNotFoundError) as error:
                if not left:
                    raise error if isinstance(error, DataError) else self.damage(error) from error
            except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
                if is_no_damage(error):
                    raise
                raise self.damage(error) from error
        raise AssertionError

    def versions(self) -> list[Version]:
        """All versions, oldest first."""
        with self.source() as source:
            return source.versions()

    def line(self, at: int | str | None = None) -> list[Version]:
        """The versions whose changes, in order, make a version; of the newest unless given."""
        with self.source() as source:
            versions = source.versions()
            return lineage(versions, chosen(at, versions, source))

    def number(self, at: int | str | None = None) -> int:
        """The number of a version, or of a tag's; of the newest unless given."""
        with self.source() as source:
            return chosen(at, source.versions(), source)

    def num_parts(self) -> int:
        """Number of changes."""
        return len(self.line())

    def history(self, at: int | str | None = None) -> list[Change]:
        """What made a version, change by change, in ids of its graph; that needs no model."""
        with self.source() as source:
            versions = source.versions()
            line = lineage(versions, chosen(at, versions, source))
            kinds = [version.kind for version in line]
            contents = list(zip(kinds, source.contents(line), strict=True))
            kind = task_of_model(source.config["model"]).part_type
            return changes_of(kind, contents)

    def data_checksums(self) -> list[str]:
        """Checksums of the arrays and labels of every version.

        Raises:
            DataError: A version is damaged or missing.
        """
        return [version.data for version in self.line()]

    def overview(self, at: int | str | None = None) -> dict[str, Any]:
        """What the run is, what each of its parts brought and cost, and what is known since.

        Raises:
            DataError: It is no run, or damaged.
        """
        return overview(self.path, self.config(), self.line(at))

    def results(self, at: int | str | None = None) -> dict[str, Any]:
        """The results of a run that learned part by part.

        Raises:
            DataError: There are no results, or they are not about all versions.
        """
        return checked_results(self.path, self.config(), self.line(at))

    def news(self, known: Known, identity: str, *, by_rows: bool = True) -> News:
        """The newest version, and what a reader of an earlier one takes in; see `news_since`."""
        for left in reversed(range(_TRIES)):
            try:
                with self.source() as source:
                    if not isinstance(source, StoredRun):
                        versions = source.versions()
                        return News(len(versions), versions[-1].stamp if versions else 0)
                    if source.config.get("identity") != identity:
                        raise DataError(self.path, "of another run than a moment ago")
                    return news_since(source, known, by_rows=by_rows)
            except MissingError:
                if not left:
                    raise
        raise AssertionError

    def log(self) -> list[dict[str, Any]]:
        """The versions of the run, in order, ready for JSON."""
        with self.source() as source:
            return log(source)

    def verify(self) -> Findings:
        """Check every checksum, id, count and link; nothing is changed."""
        if not os.path.lexists(self._database):
            self.config()
            found = Findings()
            found.tried(str(self.path), lambda: self._verify_released(found))
            return found
        return verify(self._database)

    def _verify_released(self, found: Findings) -> None:
        with self.source() as source:
            found.versions = len(source.versions())
            for number in sorted(source.models()):
                if found.tried(f"version {number}", partial(source.model, number)):
                    found.restorable.append(number)

    def backup(self, target: Path) -> int:
        """Copy the run to a new folder, as it is at one moment, while others may write to it."""
        self.config()
        if os.path.lexists(self._database):
            number = backup(self._database, target)
        else:
            number = len(self.versions())
            with new_folder(target) as temporary:
                shutil.copytree(self.path, temporary, dirs_exist_ok=True)
        copy = RunFolder(target)
        copy._derive(Commit(results={}), Known(changes=copy.num_parts()))
        copy.take_night_pages(self)
        return number

    def is_measured(self) -> bool:
        """Whether all versions have results."""
        return all(version.results is not None for version in newest(self.line()))

    # Writing

    def save(self, state: LearnerState, commit: Commit | None = None) -> Known:
        """Write a learner: what it has done since the newest version becomes versions.

        Args:
            state: The learner.
            commit: What is written besides.

        Returns:
            What the learner knows of the folder then.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: The folder holds another learner, folders of runs or parts without their
                configuration, or is a file.
        """
        commit = commit or Commit()
        check_keep(commit.keep)
        check_place(self.path)
        with self.locked():
            if self.exists():
                if self.config().get("identity") != state.identity:
                    raise UserError(f"{self.path}: holds another run; choose another folder")
            else:
                self._check_free()
            self._prepare(configuration(state, commit))
            with self.writing() as run:
                known = append(run, state, commit)
            self._derive(commit, known)
        return known

    def _prepare(self, config: Mapping[str, Any]) -> None:
        """Have a database of this version: a new one, or that of an earlier format's run."""
        if os.path.lexists(self._database):
            remove_released(self.path)
            return
        self.remove_leftovers()
        make_folder(self.path)
        if is_released(self.path):
            convert(self.path, self._database)
            remove_released(self.path)
            return
        temporary = hidden_name(self._database)
        with written_as(temporary, self._database):
            create(temporary, config)
            sync(temporary)
            temporary.rename(self._database)
            sync(self.path)

    def restore(self, at: int | str, message: str = "", wait: float = 0.0) -> int:
        """Make a version whose content is that of an earlier one; gives its number."""
        with self._changing(wait) as run:
            return restore(run, at, message)

    def tag(self, name: str, at: int | str | None = None, wait: float = 0.0) -> int:
        """Name a version, so that its model stays; gives its number."""
        with self._changing(wait) as run:
            return tag(run, name, at)

    def untag(self, name: str, wait: float = 0.0) -> int:
        """Take a name away from a version; gives its number."""
        with self._changing(wait) as run:
            return untag(run, name, str(run.config.get("keep", "all")))

    def compact(self, keep: str | None = None, wait: float = 0.0) -> None:
        """Write the newest model as one file, and forget what need not stay."""
        check_keep(keep)
        with self._changing(wait) as run:
            compact(run, str(keep or run.config.get("keep", "all")))

    @contextlib.contextmanager
    def _changing(self, wait: float) -> Iterator[StoredRun]:
        """The stored run to change versions of; what is derived from them follows."""
        config = self.config()  # that there is one
        with self.locked(wait):
            self.clear_up()
            self._prepare(config)
            with self.writing() as run:
                yield run
            self._derive(Commit(results={}), Known(changes=self.num_parts()))

    @contextlib.contextmanager
    def writing(self) -> Iterator[StoredRun]:
        """The stored run to write to; what no version names any more is removed afterwards."""
        with opened(self._database, write=True) as database:
            run = StoredRun(database)
            yield run
            remove_garbage(run.folder, StoredRun(database).files())

    def _derive(self, commit: Commit, known: Known) -> None:
        """Write the files for people and scripts beside the store."""
        self.write_nights()
        if commit.results is None:
            return
        write_results(self._results, commit.results or results_of(self.line()))
        if commit.trace or not commit.results or self._is_traced(known.version):
            write_trace(self._trace, known.changes - 1, commit.trace, self._whole_trace)

    def clear_up(self) -> None:
        """Remove what a killed process left, and write what it did not come to; nobody else writes.

        The versions stay as they are.
        """
        self.remove_leftovers()
        if os.path.lexists(self._database):
            with self.writing():
                pass
            self.write_nights()
            found = results_of(self.line())
            if found and not is_written(self._results, found):
                self._derive(Commit(results={}), Known(changes=self.num_parts()))

    def _is_traced(self, version: int) -> bool:
        with opened(self._database) as database:
            found = database.connection.execute("SELECT 1 FROM trace WHERE version = ?", (version,))
            return found.fetchone() is not None

    def _whole_trace(self) -> dict[int, Any]:
        with opened(self._database) as database:
            versions, trace = StoredRun(database).versions(), StoredRun(database).trace()
            line = lineage(versions, len(versions))
            return {i: trace[v.number] for i, v in enumerate(line) if v.number in trace}

    def save_diverged(self, state: LearnerState, commit: Commit, meta: dict[str, Any]) -> None:
        """Write the last good weights of a first part that was not learned to its end.

        Args:
            state: The learner; only what it is and its model are written.
            commit: What is written besides.
            meta: What is kept beside the model.
        """
        assert state.model is not None
        self._prepare(configuration(state, commit))
        save_model(state.model, self.path, meta)
        write_trace(self._trace, 0, commit.trace, lambda: {0: commit.trace})
