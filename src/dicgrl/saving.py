"""Save, load and refresh a learner."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from dicgrl.ask.names import Names
from dicgrl.ask.questions import Questions
from dicgrl.common.devices import pick_device
from dicgrl.common.room import check_folder
from dicgrl.errors import DicgrlError, UserError
from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.part_report import PartReport
from dicgrl.parallel.group import current, speaks
from dicgrl.parallel.model import ShardedModel
from dicgrl.settings import Settings
from dicgrl.store.checkpoint import built_model, patch_model
from dicgrl.store.content import Following, changes_of
from dicgrl.store.damage import is_no_damage, rebuilding
from dicgrl.store.pending import Entry
from dicgrl.store.reading import answers_of, divided
from dicgrl.store.released import STRATEGY
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.state import MEASURED, Each, Known, LearnerState, merged
from dicgrl.store.tensors import Delta, combined
from dicgrl.store.update import Update
from dicgrl.store.writer import Commit

if TYPE_CHECKING:
    from dicgrl.strategies import Strategy
    from dicgrl.trainers import Trainer


HOST = torch.device("cpu")  # where a model is that several processes will share


class Saving(Questions):
    """The part of a learner that writes it to a folder and reads it back.

    Attributes:
        identity: Tells the learner from every other one.
        stored: What it knows of the folders that it was read from or written to.
        version: The version that it was read from or written as last; 0 before that.
        stamp: Tells this version from others of its number, in another copy of the run.
        edits: Tells what had been saved without a version, such as names, when it was read.
    """

    settings: Settings
    seed: int
    identity: str
    stored: dict[Path, Known]
    trainer: Trainer
    strategy: Strategy
    _names: Names
    reports: list[PartReport]
    tests: list[Sequence[Tested]]
    before: list[float | None]
    retention: list[float | None]
    first_answers: torch.Tensor | None
    version: int = 0
    stamp: int = 0
    edits: int = 0
    _half_learned: bool

    @property
    @abstractmethod
    def names(self) -> Names:
        """Readable names by label."""

    @property
    def moment(self) -> tuple[int, int, int]:
        """The version, its stamp and the edits: all that it has of a folder."""
        return self.version, self.stamp, self.edits

    @abstractmethod
    def check_usable(self) -> None:
        """Refuse to go on while a part is learned, or after one that was learned by half.

        Raises:
            UserError: The last call of `learn` failed, or has not ended.
        """

    def save(
        self,
        folder: str | Path,
        *,
        keep: str | None = None,
        about: Mapping[str, Any] | None = None,
        message: str = "",
        results: Mapping[str, Any] | None = None,
        trace: Sequence[Mapping[str, Any]] = (),
        night: Mapping[str, Any] | None = None,
        settled: Sequence[Entry] = (),
    ) -> None:
        """Write the learner to a folder, as a new version if it has learned since the last one.

        Names that another process has saved there meanwhile stay, and so does what it has measured,
        unless this learner has changed the same; `refresh` reads them.

        Args:
            folder: Where to; a folder that holds this learner's earlier versions, or none.
            keep: Whose models stay in the folder: of all versions ("all"), of the last ("last"), or
                of so many ("10"); unless given, as the folder was begun, and all in a new one.
            about: Further values for the configuration of a new folder, such as the dataset.
            message: What to say of the version.
            results: What `dicgrl.jobs.results` made of its evaluations.
            trace: What was noted of each epoch of the newest part.
            night: What a nightly job found.
            settled: The folder's waiting entries that were learned (`store.pending`); they wait no
                more once the version is there.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: The folder holds another learner, folders of runs or a damaged run, or is a
                file; or the last part was not learned to its end.
        """
        self.check_usable()
        place = Path(folder).resolve()
        known = self.stored.get(place, Known())
        names = None if known.named < 0 else self.names.changed(known.named)
        commit = Commit(about or {}, keep, message, results, trace, night, known, settled, names)
        state = self.state()  # of several processes each hands in what it has
        if speaks():
            known = RunFolder(folder).save(state, commit)
        if group := current():
            numbers = [known.version, known.changes, known.stamp, known.edits, known.seen]
            told = group.told(torch.tensor(numbers)).tolist()
            measured = known.measured if speaks() else state.measured(len(state.history) - 1)
            known = replace(Known(*told), measured=measured)
        self._know(place, replace(known, named=self.names.changes))

    def _know(self, place: Path, known: Known) -> None:
        """Remember what a folder holds."""
        self.stored[place] = known
        self.version, self.stamp, self.edits = known.version, known.stamp, known.edits
        self.names.settle(min(each.named for each in self.stored.values()))

    def state(self) -> LearnerState:
        """All that there is to save, as plain values; of several processes the first has it."""
        model = self.trainer.model if self.trainer.num_parts else None
        return replace(
            self._record(),
            protocol=self.strategy.describe_protocol(self.trainer),
            model=model.whole() if isinstance(model, ShardedModel) else model,
            strategy=self.strategy.state(),
        )

    def _record(self) -> LearnerState:
        """The same without the model and what the strategy keeps."""
        return LearnerState(
            identity=self.identity,
            model_name=self.settings.model,
            strategy_name=self.settings.strategy,
            seed=self.seed,
            settings=self.settings.as_dict(),
            protocol={},
            names=self.names,
            history=self.trainer.history,
            reports=Each(asdict, self.reports),
            tests=self.tests,
            before=self.before,
            retention=self.retention,
            first_answers=self.first_answers,
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        at: int | str | None = None,
        device: str | torch.device = "auto",
    ) -> Self:
        """Load a learner that was saved.

        Args:
            folder: Where it was saved.
            at: A version, or its tag; the newest unless given.
            device: auto, cpu or cuda.

        Raises:
            DataError: The folder is damaged or not a learner of this package.
            SetupError: This machine or installation lacks what the learner needs.
            UserError: There is no such version, or its model was not kept.
        """
        place = pick_device(device)  # a mistake there, or here, is not the folder's
        check_folder()
        run = RunFolder(folder)
        config = run.config()
        try:  # before anything large is read
            settings = Settings.from_dict(config["settings"])
            learner = cls(settings=settings, seed=config["seed"], device=place)  # type: ignore[call-arg]
            learner.identity = config["identity"]
        except (AttributeError, KeyError, OverflowError, TypeError, UserError) as error:
            if is_no_damage(error):
                raise
            raise run.misfit(error) from error
        state = run.load(place if current() is None else HOST, learner.identity, at)
        with rebuilding(run.path):
            learner._recall(state)
        learner._know(
            Path(folder).resolve(), learner._known(state.version, state.stamp, state.edits)
        )
        return learner

    def _known(self, version: int, stamp: int, edits: int) -> Known:
        """What it remembers of a folder of which it has everything."""
        changes = len(self.trainer.history)
        measured = self._record().measured(changes - 1)
        return Known(version, changes, stamp, edits, version, self.names.changes, measured)

    def refresh(self, folder: str | Path | None = None) -> bool:
        """Catch up with the newest version of the folder that it was loaded from or saved to.

        Only what is new is read: facts that arrived, rows of the model that changed, and the names
        and measurements that others have saved. Where an earlier version was restored, the folder
        was put back from a backup, or the changed rows are not kept any more, all of it is read.
        Names that were changed here and not saved yet stay.

        Args:
            folder: The folder; needed only where the learner knows several.

        Returns:
            Whether there was anything new.

        Raises:
            UserError: The learner has learned something that is not saved, or knows no folder.
            DataError: The folder is damaged.

        Example:
            >>> import tempfile
            >>> from dicgrl import Learner
            >>> learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
            >>> report = learner.learn([("Alien", "genre", "horror")])
            >>> place = tempfile.mkdtemp()
            >>> learner.save(place)
            >>> reader = Learner.load(place, device="cpu")
            >>> report = learner.learn([("Brazil", "genre", "satire")])
            >>> learner.save(place)
            >>> reader.refresh(), reader.num_entities, reader.refresh()
            (True, 4, False)
        """
        self.check_usable()
        place = self._home(folder)
        known = self.stored[place]
        if len(self.trainer.history) != known.changes:
            raise UserError("this learner has unsaved changes; save it, or load another")
        run = RunFolder(place)
        by_rows = bool(known.version and self.trainer.has_rows)
        news = run.news(known, self.identity, by_rows=by_rows)
        if news.is_known(known):
            return False
        own = self.names.changed(known.named)
        measured = self._record().measured(known.changes - 1)
        if news.update is None or not known.version:
            self._become(self.load(place, device=self.trainer.device), own)
            return True
        try:
            with rebuilding(run.path):
                self._take_in(news.update, known)
        except Exception:
            self._recover(place, known, own)
            raise
        self._know(place, self._known(*news[:3]))
        self.names.amend(own)
        if measured != known.measured:  # and not saved
            there = self._record().measured(known.changes - 1)
            self._revise(known.changes - 1, merged(there, measured, known.measured))
        return True

    def _recover(self, place: Path, known: Known, own: Mapping[str, str | None]) -> None:
        """Be the version from before a refresh that failed half-way; of no further use without it.

        What is damaged is found before anything changes, but for what undamaged files may say.
        """
        self._half_learned = True
        with contextlib.suppress(DicgrlError, MemoryError, OSError, RuntimeError):
            self._become(self.load(place, at=known.version, device=self.trainer.device), own)
            self._half_learned = False

    def _home(self, folder: str | Path | None) -> Path:
        if folder is not None and Path(folder).resolve() in self.stored:
            return Path(folder).resolve()
        if folder is not None or len(self.stored) != 1:
            raise UserError(
                "say which folder to load newer versions from: one in which the learner is saved"
            )
        return next(iter(self.stored))

    def _take_in(self, update: Update, known: Known) -> None:
        """Become newer by what changed."""
        if update.versions:
            self._follow(update)
        for version in update.revised:
            place = known.changes - 1 - (known.version - version.number)
            self._revise(place, {name: getattr(version, name) for name in MEASURED})
        if update.names is None:
            self.names.amend(update.renamed)
        else:
            self.names.become(update.names)

    def _revise(self, place: int, measured: Mapping[str, Any]) -> None:
        """Know what was measured after a change."""
        self.reports[place] = PartReport(**measured["report"])
        self.before[place], self.tests[place] = measured["before"], measured["tests"]
        self.retention[place] = measured["retention"]
        if place == 0:
            self.first_answers = answers_of(measured["answers"])

    def _follow(self, update: Update) -> None:
        """Take in versions."""
        trainer = self.trainer
        vocabularies = {name: Following(v) for name, v in trainer.graph.vocabularies().items()}
        kinds = [version.kind for version in update.versions]
        changes = changes_of(
            self.settings.task.part_type,
            list(zip(kinds, update.contents, strict=True)),
            vocabularies,
            trainer.num_parts,
        )
        if update.model is None:
            before = {STRATEGY + name: kept.cpu() for name, kept in self.strategy.state().items()}
            strategy = combined([Delta(before, []), *update.of_strategy()])
            for delta in update.deltas:
                patch_model(trainer.model, delta)
        else:
            tensors, strategy = divided(update.model.tensors)
            trainer.model = built_model(update.model.configuration, tensors, trainer.device)
        trainer.follow(changes)
        self.strategy.restore(
            {name.removeprefix(STRATEGY): t.to(trainer.device) for name, t in strategy.items()}
        )
        for version in update.versions:
            self.reports.append(PartReport(**version.report))
            self.tests.append(version.tests)
            self.before.append(version.before)
            self.retention.append(version.retention)

    def _become(self, other: Self, own: Mapping[str, str | None]) -> None:
        """Be as another learner of the same run is, but for own names."""
        self.stored = other.stored
        self.trainer, self.strategy = other.trainer, other.strategy
        self._names = other._names
        self._names.amend(own)
        self.version, self.stamp, self.edits = other.version, other.stamp, other.edits
        self.reports, self.tests = other.reports, other.tests
        self.before, self.retention = other.before, other.retention
        self.first_answers = other.first_answers

    def _recall(self, state: LearnerState) -> None:
        """Become what was saved."""
        self._names = Names(state.names)
        if state.model is None:
            return
        self.trainer.recall(state.history, state.model)
        self.reports = [PartReport(**report) for report in state.reports]
        self.tests = list(state.tests)
        self.before = list(state.before)
        self.retention = list(state.retention)
        self.first_answers = state.first_answers
        self.strategy.restore(dict(state.strategy))
