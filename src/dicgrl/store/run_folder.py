"""A run in a folder: safetensors for arrays, JSON for the rest, checksummed, no pickle.

    config.json   what the learner is: settings, seed, identity
    names-*.json  readable names of labels, where there are any
    part-0/       what arrived with a part, and what is known of it (`dicgrl.store.part_folder`)
    results.json  what was measured after each part      (written by jobs)
    trace.jsonl   a line per epoch                       (written by jobs)
    curves.png    the learning curves                    (written by the command line)
    reliability.png  how reliable probabilities are      (likewise)

With `keep="last"` only the newest part has a model and a strategy's state beside it; config.json
remembers it.

A part's folder is written under another name and renamed when it is complete: a folder that is
there is complete, and a run that was killed resumes after its last part. Every byte that a learner
is made of is covered by a checksum: config.json, part.json and report.json carry their own, the
others stand in part.json (names-*.json in config.json). All of them name the learner that they
belong to. Loading reads, and checks, everything but the models of earlier parts. A newest part that
was lost is missed by results.json, which is written after each part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from dicgrl.common.atomic import check_place, remove_leftovers, write_json
from dicgrl.common.locks import locked
from dicgrl.errors import DataError, UserError, unknown_name
from dicgrl.graph import Part
from dicgrl.graph.change import LEARN, Change
from dicgrl.store.checkpoint import save_model
from dicgrl.store.config_file import described, read_config, update_names, write_config
from dicgrl.store.content import parts_of
from dicgrl.store.overview import overview
from dicgrl.store.part_folder import PartFolder, answers_of
from dicgrl.store.results_file import measured_parts, read_results
from dicgrl.store.sealed import BEFORE, FORMAT, read_json
from dicgrl.store.state import LearnerState
from dicgrl.store.trace import append_trace, check_trace
from dicgrl.tasks import task_of_model
from dicgrl.training import EpochReport

KEEP = ("all", "last")


class RunFolder:
    """The folder of a run, or a place for one.

    Args:
        path: The folder; it need not exist.

    Example:
        >>> RunFolder("no such run").config()
        Traceback (most recent call last):
        dicgrl.errors.DataError: no such run: no run here (config.json is missing)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._config = self.path / "config.json"
        self._results = self.path / "results.json"
        self._trace = self.path / "trace.jsonl"

    @property
    def curves_file(self) -> Path:
        """Where the picture of the learning curves goes."""
        return self.path / "curves.png"

    @property
    def reliability_file(self) -> Path:
        """Where the picture of how reliable probabilities are goes."""
        return self.path / "reliability.png"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return self._config.exists()

    def runs_inside(self) -> list[str]:
        """Names of the folders in this one that hold runs."""
        found = []
        for place in self.path.glob(f"*/{self._config.name}"):
            with contextlib.suppress(DataError):  # of somebody else
                if read_json(place).get("format") in (FORMAT, BEFORE):
                    found.append(place.parent.name)
        return sorted(found)

    def locked(self) -> AbstractContextManager[None]:
        """Have the folder to oneself; see `dicgrl.common.locks`."""
        return locked(self.path)

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
                parts without their config.json, or a damaged trace; or it is no folder.
        """
        check_place(self.path)
        there = self.exists()
        if there and not resume:
            go_on = ", or go on with it (--resume)" if resumable else ""
            raise UserError(f"{self.path}: holds a run already; choose another folder{go_on}")
        if not there:
            self._check_free()
        self.check_trace()
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
        if PartFolder.numbers(self.path):  # config.json is written before the first of them
            raise UserError(
                f"{self.path}: holds parts of a run, but config.json is missing; put it back, or "
                "choose another folder"
            )

    # The learner

    def config(self, identity: str = "") -> dict[str, Any]:
        """What the run is, as config.json says.

        Args:
            identity: That of the learner whose run it must be; any unless given.

        Raises:
            DataError: There is none, or it is damaged or not of this package.
        """
        if not self._config.is_file():
            runs = self.runs_inside()
            held = f"; the folder holds the runs {', '.join(runs)}" if runs else ""
            raise DataError(self.path, f"no run here (config.json is missing){held}")
        return read_config(self._config, identity)

    def misfit(self, error: Exception) -> DataError:
        """The error for a configuration that this version, or this installation, cannot use."""
        return DataError(self._config, f"not a run that works here ({error})")

    def damage(self, error: Exception) -> DataError:
        """The error for files that are undamaged each, and do not fit together."""
        return DataError(self.path, f"damaged run ({error})")

    def save(
        self,
        state: LearnerState,
        *,
        about: Mapping[str, Any] | None = None,
        keep: str | None = None,
        known: int = 0,
    ) -> None:
        """Write a learner; parts that are there already are left as they are.

        Args:
            state: The learner.
            about: Further values for the configuration of a new run.
            keep: Whose models stay in the folder: of all parts, or of the last; unless given, as
                the run was begun, and all in a new one.
            known: How many parts this learner wrote to the folder or read from it. They are not
                looked at again, so that the cost follows what is new.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: The folder holds another learner, folders of runs or parts without their
                config.json, or is a file.
        """
        check_keep(keep)
        check_place(self.path)
        with self.locked():
            if self.exists():
                config = self.config()
                if config.get("identity") != state.identity:
                    raise UserError(f"{self.path}: holds another run; choose another folder")
                keep = keep or config.get("keep")
                update_names(self._config, config, state.names)
            else:
                known = 0
                self._check_free()
                write_config(self._config, state, about, keep or "all")
            places = [PartFolder(self.path, number) for number in range(len(state.parts))]
            for place in places[max(known - 1, 0) :]:  # the last may have been measured since
                if place.number >= known:
                    place.check_same(state)
                place.write(state)
            if keep == "last":
                for place in places[:-1]:
                    place.drop_model(state.identity)

    def save_diverged(
        self, state: LearnerState, *, about: Mapping[str, Any], meta: dict[str, Any]
    ) -> None:
        """Write the last good weights of a first part that was not learned to its end.

        Args:
            state: The learner; only what it is and its model are written.
            about: Further values for the configuration.
            meta: What is kept beside the model.
        """
        assert state.model is not None
        write_config(self._config, state, about, "all")
        save_model(state.model, self.path, meta)

    def load(self, device: torch.device, identity: str = "") -> LearnerState:
        """Read back a learner with its newest part.

        Where another process saves a part meanwhile, and with it drops the model that is being
        read, it is read again.

        Args:
            device: Where the model and the strategy's tensors go.
            identity: That of the learner whose run it must be; any unless given.

        Raises:
            DataError: A file is missing, damaged or not of this package.
        """
        while True:
            config, parts = self.config(identity), self.num_parts()
            try:
                return self._read(config, device)
            except (DataError, FileNotFoundError) as error:
                if self.num_parts() != parts:
                    continue
                if isinstance(error, DataError):
                    raise
                raise self.damage(error) from error

    def _read(self, config: dict[str, Any], device: torch.device) -> LearnerState:
        try:
            state = described(self.path, config)
        except KeyError as error:
            raise self.misfit(error) from error
        places = self._places()
        if not places:
            return LearnerState(**state)
        for place in places:
            place.verify(config["identity"], newest=place is places[-1])
        model, strategy = places[-1].model(device)
        try:
            parts = self._parts(config, places)
            reports = [place.report(config["identity"]) for place in places]
            return LearnerState(
                **state,
                history=[Change(LEARN, part) for part in parts],
                model=model,
                strategy=strategy,
                reports=[report["report"] for report in reports],
                tests=[report["tests"] for report in reports],
                before=[report["before"] for report in reports],
                retention=[report["retention"] for report in reports],
                first_answers=answers_of(reports[0]),
            )
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise self.damage(error) from error

    # Parts

    def num_parts(self) -> int:
        """How many parts are complete.

        Raises:
            DataError: A part is missing between others, or one that results.json knows.
        """
        return len(self._places())

    def _places(self) -> list[PartFolder]:
        measured = self.measured_parts()  # before parts are counted: one may be written meanwhile
        numbers = PartFolder.numbers(self.path)
        places = [PartFolder(self.path, number) for number in range(len(numbers))]
        for place, found in zip(places, numbers, strict=True):
            if place.number != found:
                raise DataError(place.path, "damaged run: this part is missing")
        if len(places) < measured:  # a part is written before the results that it led to
            raise DataError(
                PartFolder(self.path, len(places)).path,
                f"damaged run: this part is missing, results.json knows {measured}; put it back, "
                f"or remove results.json to go on after {len(places)}",
            )
        return places

    def stored_parts(self) -> Iterator[Part]:
        """What the run has learned, part by part, in ids of its graph."""
        return self._parts(self.config(), self._places())

    def _parts(self, config: Mapping[str, Any], places: Iterable[PartFolder]) -> Iterator[Part]:
        kind = task_of_model(config["model"]).part_type
        return parts_of(kind, (place.content() for place in places))

    def data_checksums(self) -> list[tuple[str, str]]:
        """Checksums of the arrays and labels of every part; equal where the data is.

        Raises:
            DataError: A part is damaged or missing.
        """
        return [place.data_checksums() for place in self._places()]

    def overview(self) -> dict[str, Any]:
        """What the run is, what each of its parts brought and cost, and what is known since.

        Raises:
            DataError: It is no run, or a file of it is damaged.
        """
        config = self.config()
        results = read_json(self._results) if self._results.exists() else {}
        return overview(self.path, config, results, self._places())

    # What jobs leave beside the learner

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Write what was measured so far; after the parts that it is about."""
        write_json(self._results, results)

    def measured_parts(self) -> int:
        """How many parts the results are about; 0 where they cannot be read: they can be redone."""
        return measured_parts(self._results)

    def results(self) -> dict[str, Any]:
        """What was measured of a run that learned part by part.

        Raises:
            DataError: There are no results, or they are not about the parts that are there.
        """
        results = read_results(self._results, self.config())
        parts = self.num_parts()
        if len(results["parts"]) != parts:
            raise DataError(
                self._results,
                f"of {len(results['parts'])} parts where the run has {parts}; `learn` or --resume"
                " writes it anew",
            )
        return results

    def append_trace(self, part: int, epochs: Iterable[EpochReport]) -> None:
        """Add a part's epochs to the trace; see `dicgrl.store.trace`."""
        append_trace(self._trace, part, epochs)

    def check_trace(self) -> None:
        """Refuse a damaged trace now, rather than when there is something to add.

        Raises:
            DataError: It is damaged.
        """
        check_trace(self._trace)


def check_keep(keep: str | None) -> None:
    """Refuse what is given and none of `KEEP`.

    Raises:
        UserError: It is not.
    """
    if keep is not None and keep not in KEEP:
        raise unknown_name("keep", keep, KEEP)
