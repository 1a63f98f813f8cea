"""A run in a folder: facts, versions and settings in SQLite, tensors as safetensors.

    store.sqlite  what the learner is, and its versions: facts, labels, names, reports, results
    tensors/      the models: a base, and deltas of changed rows
    results.json  what was measured after each part       (made from the store)
    trace.jsonl   a line per epoch                        (made from the store)
    curves.png    the learning curves                     (written by the command line)

A change is one version, and one commit: its tensors are written and synced, then a transaction of
the database makes it exist. Every row and every file of tensors carries a checksum and names the
run that it belongs to. Readers see the version that they opened, whatever a writer does; folders of
earlier releases are read as they are, and converted by the first save. See docs/store.md.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import torch

from dicgrl.common.atomic import check_place, hidden_name, make_folder, remove_leftovers, sync
from dicgrl.common.locks import locked
from dicgrl.errors import DataError, UserError
from dicgrl.graph import Part
from dicgrl.store.checkpoint import save_model
from dicgrl.store.content import changes_of
from dicgrl.store.convert import convert, remove_released
from dicgrl.store.database import create, opened
from dicgrl.store.overview import overview
from dicgrl.store.reading import read_state
from dicgrl.store.records import StoredRun
from dicgrl.store.released import ReleasedRun, has_parts, is_of_release, is_released
from dicgrl.store.results import checked_results, results_of, write_results, write_trace
from dicgrl.store.state import LearnerState
from dicgrl.store.tensors import MissingError
from dicgrl.store.version import Source, Version, chosen, lineage
from dicgrl.store.writer import Commit, Known, append, check_keep, configuration, remove_garbage
from dicgrl.tasks import task_of_model

_TRIES = 20
T = TypeVar("T")


class RunFolder:
    """The folder of a run, or a place for one.

    Args:
        path: The folder; it need not exist.

    Example:
        >>> RunFolder("no such run").config()
        Traceback (most recent call last):
        dicgrl.errors.DataError: no such run: no run here (store.sqlite is missing)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._database = self.path / "store.sqlite"
        self._results = self.path / "results.json"
        self._trace = self.path / "trace.jsonl"

    @property
    def curves_file(self) -> Path:
        """Where the picture of the learning curves goes."""
        return self.path / "curves.png"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return os.path.lexists(self._database) or is_released(self.path)

    def runs_inside(self) -> list[str]:
        """Names of the folders in this one that hold runs."""
        stored = {place.parent for place in self.path.glob(f"*/{self._database.name}")}
        released = {place.parent for place in self.path.glob("*/config.json")}
        of_release = {folder for folder in released if is_of_release(folder)}
        return sorted(folder.name for folder in stored | of_release)

    def locked(self, wait: float = 0.0) -> AbstractContextManager[None]:
        """Have the folder to oneself; see `dicgrl.common.locks`.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: It cannot be written to.
        """
        if self.path.is_dir() and not os.access(self.path, os.W_OK):
            raise UserError(f"{self.path}: cannot be written to")
        return locked(self.path, wait)

    def remove_leftovers(self) -> None:
        """Remove what a killed process left under temporary names."""
        remove_leftovers(self.path)

    # What may be written here

    def check_new(self, *, resume: bool = False, resumable: bool = True) -> bool:
        """Whether there is a run to resume; if there is one, that must be what was asked for.

        Args:
            resume: Whether a run that is there is to be resumed.
            resumable: Whether it could be; the message says so.

        Raises:
            UserError: The folder holds a run and nobody asked to resume it, or folders of runs, or
                parts without their configuration; or it is no folder.
        """
        check_place(self.path)
        there = self.exists()
        if there and not resume:
            go_on = ", or go on with it (--resume)" if resumable else ""
            raise UserError(f"{self.path}: holds a run already; choose another folder{go_on}")
        if not there:
            self._check_free()
        return there

    def check_layout(self, *, several: bool) -> None:
        """Refuse to mix a run with folders of runs, which is where several strategies go.

        Raises:
            UserError: The folder holds a run and several are to come, or the other way round.
        """
        if several and self.exists():
            raise UserError(
                f"{self.path}: holds a run already; several strategies need a folder of their own"
            )
        runs = self.runs_inside()
        if not several and runs:
            raise UserError(
                f"{self.path}: holds the runs {', '.join(runs)}; name one of them, or a new one"
            )

    def _check_free(self) -> None:
        self.check_layout(several=False)
        if has_parts(self.path):  # of an earlier release
            raise UserError(
                f"{self.path}: holds parts of a run, but config.json is missing; put it back, or "
                "choose another folder"
            )
        if any((self.path / "tensors").glob("*.safetensors")):
            raise UserError(
                f"{self.path}: holds tensors of a run, but store.sqlite is missing; put it back, "
                "or choose another folder"
            )

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
        return DataError(self.path, f"damaged run ({error})")

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
            return lineage(versions, chosen(at, versions, source.tags()))

    def num_parts(self) -> int:
        """How many changes there are."""
        return len(self.line())

    def stored_parts(self) -> list[Part]:
        """What the run has learned, part by part, in ids of its graph."""
        with self.source() as source:
            versions = source.versions()
            line = lineage(versions, len(versions))
            contents = [(version.kind, source.content(version)) for version in line]
            kind = task_of_model(source.config["model"]).part_type
            return [c.part for c in changes_of(kind, contents) if c.part is not None]

    def data_checksums(self) -> list[str]:
        """Checksums of the arrays and labels of every version; equal where the data is.

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
        """What was measured of a run that learned part by part.

        Raises:
            DataError: There are no results, or they are not about all versions.
        """
        return checked_results(self.path, self.config(), self.line(at))

    def is_measured(self) -> bool:
        """Whether all versions have results."""
        return all(version.results is not None for version in self.line())

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
        create(temporary, config)
        sync(temporary)
        temporary.rename(self._database)
        sync(self.path)

    @contextlib.contextmanager
    def writing(self) -> Iterator[StoredRun]:
        """The stored run to write to; what no version names any more is removed afterwards."""
        with opened(self._database, write=True) as database:
            run = StoredRun(database)
            yield run
            remove_garbage(run.folder, StoredRun(database).files())

    def _derive(self, commit: Commit, known: Known) -> None:
        """Write what people and scripts read beside the store."""
        if commit.results is None:
            return
        write_results(self._results, results_of(self.line()))
        write_trace(self._trace, known.changes - 1, commit.trace, self._whole_trace)

    def _whole_trace(self) -> dict[int, Any]:
        with opened(self._database) as database:
            run = StoredRun(database)
            versions, trace = run.versions(), run.trace()
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
