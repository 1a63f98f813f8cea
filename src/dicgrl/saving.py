"""A learner that is stored: save, load, refresh."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from dicgrl.ask.names import Names
from dicgrl.ask.questions import Questions
from dicgrl.common.devices import pick_device
from dicgrl.errors import UserError
from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.part_report import PartReport
from dicgrl.settings import Settings
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.state import LearnerState
from dicgrl.store.writer import Commit, Known

if TYPE_CHECKING:
    from dicgrl.strategies import Strategy
    from dicgrl.trainers import Trainer


class Saving(Questions):
    """The part of a learner that writes it to a folder and reads it back.

    Attributes:
        identity: Tells the learner from every other one.
        stored: What it knows of the folders that it was read from or written to.
        version: The version that it was read from or written as last; 0 before that.
    """

    settings: Settings
    seed: int
    identity: str
    stored: dict[Path, Known]
    trainer: Trainer
    strategy: Strategy
    names: Names
    reports: list[PartReport]
    tests: list[list[Tested]]
    before: list[float | None]
    retention: list[float | None]
    first_answers: torch.Tensor | None
    version: int = 0

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
    ) -> None:
        """Write the learner to a folder, as a new version where it has learned since.

        Args:
            folder: Where to; a folder that holds this learner's earlier versions, or none.
            keep: Whose models stay in the folder: of all versions ("all"), of the last ("last"), or
                of so many ("10"); unless given, as the folder was begun, and all in a new one.
            about: Further values for the configuration of a new folder, such as the dataset.
            message: What to say of the version.
            results: What `dicgrl.jobs.results` made of its evaluations.
            trace: What was noted of each epoch of the newest part.

        Raises:
            BusyError: Another process is writing to the folder.
            UserError: The folder holds another learner, folders of runs or a damaged run, or is a
                file; or the last part was not learned to its end.
        """
        self.check_usable()
        place = Path(folder).resolve()
        known = self.stored.get(place, Known())
        commit = Commit(about or {}, keep, message, results, trace, known)
        self.stored[place] = RunFolder(folder).save(self.state(), commit)
        self.version = self.stored[place].version

    def state(self) -> LearnerState:
        """All that there is to save, as plain values."""
        return LearnerState(
            identity=self.identity,
            model_name=self.settings.model,
            strategy_name=self.settings.strategy,
            seed=self.seed,
            settings=self.settings.as_dict(),
            protocol=self.strategy.describe_protocol(self.trainer),
            names=self.names,
            history=self.trainer.history,
            model=self.trainer.model if self.trainer.num_parts else None,
            strategy=self.strategy.state(),
            reports=[asdict(report) for report in self.reports],
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
        """Read back a learner that was saved.

        Args:
            folder: Where it was saved.
            at: A version, or its tag; the newest unless given.
            device: auto, cpu or cuda.

        Raises:
            DataError: The folder is damaged or not a learner of this package.
            UserError: There is no such version, or its model was not kept.
        """
        place = pick_device(device)  # a mistake there is not the folder's
        run = RunFolder(folder)
        config = run.config()
        try:  # before anything large is read
            settings = Settings.from_dict(config["settings"])
            learner = cls(settings=settings, seed=config["seed"], device=place)  # type: ignore[call-arg]
            learner.identity = config["identity"]
        except (AttributeError, KeyError, OverflowError, TypeError, UserError) as error:
            raise run.misfit(error) from error
        state = run.load(place, learner.identity, at)
        try:
            learner._recall(state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise run.damage(error) from error
        except UserError as error:  # a part that does not fit the graph
            raise run.damage(error) from error
        learner.stored[Path(folder).resolve()] = Known(state.version, len(state.history))
        return learner

    def _recall(self, state: LearnerState) -> None:
        """Become what was saved."""
        self.names = Names(state.names)
        if state.model is None:
            return
        self.trainer.recall(state.history, state.model)
        self.reports = [PartReport(**report) for report in state.reports]
        self.tests = list(state.tests)
        self.before = list(state.before)
        self.retention = list(state.retention)
        self.first_answers = state.first_answers
        self.strategy.restore(dict(state.strategy))
        self.version = state.version
