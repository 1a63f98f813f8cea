"""How a run is changed: under the lock of its folder, and written as one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dicgrl.errors import unknown_name
from dicgrl.intake import Intake
from dicgrl.jobs.held import clear_up, held
from dicgrl.jobs.results import results_of
from dicgrl.learner import Learner
from dicgrl.readers import Reading
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.training import EpochReport

OnEpoch = Callable[[int, EpochReport], None]
"""Told the number of the part and the report of every epoch."""

EVALUATE: dict[str, int | None] = {"sample": 2000, "all": 0, "none": None}
"""How much is measured after a change: test examples at most, 0 for all."""


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How a run is changed.

    Attributes:
        device: auto, cpu or cuda.
        keep: As for `run_stream`.
        evaluate: What is measured then: a sample of the test sets if they are large (`sample`),
            `all` of them or `none`.
        message: What to say of the version.
        wait: Seconds to wait for another process that is writing to the run.
        reading: How files are to be read, where they do not say it themselves.
        on_epoch: Told the part and the report of every epoch.
    """

    device: str = "auto"
    keep: str | None = None
    evaluate: str = "sample"
    message: str = ""
    wait: float = 0.0
    reading: Reading | None = None
    on_epoch: OnEpoch | None = None

    @property
    def at_most(self) -> int | None:
        """How many test examples are measured; 0 for all, None for none.

        Raises:
            UserError: `evaluate` is none of `EVALUATE`.
        """
        return most_measured(self.evaluate)


USUAL = ChangeOptions()


def most_measured(evaluate: str) -> int | None:
    """How many test examples are measured after a change; 0 for all, None for none.

    Raises:
        UserError: It is none of `EVALUATE`.
    """
    if not isinstance(evaluate, str) or evaluate not in EVALUATE:
        raise unknown_name("evaluate", evaluate, EVALUATE)
    return EVALUATE[evaluate]


@dataclass(slots=True)
class Changing:
    """A run that is about to have a new version.

    Args:
        learner: What learns; it stands at the newest version.
        about: What `about_run` says of the run.
        folder: Run folder; nothing is written without one.
        keep: As for `run_stream`.
        message: What to say of the version.
        on_epoch: Told the part and the report of every epoch.

    Attributes:
        trace: The reports of all epochs so far.
    """

    learner: Learner
    about: Mapping[str, Any]
    folder: RunFolder | None
    keep: str | None = None
    message: str = ""
    on_epoch: OnEpoch | None = None
    trace: list[EpochReport] = field(default_factory=list, init=False)
    _number: int = field(init=False)

    def __post_init__(self) -> None:
        self._number = self.learner.num_parts

    def watch(self, report: EpochReport) -> None:
        """Take note of an epoch; a `Monitor`."""
        self.trace.append(report)
        if self.on_epoch:
            self.on_epoch(self._number, report)

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """The trace, as plain values."""
        return [asdict(report) for report in self.trace]

    def results(self) -> dict[str, Any]:
        """What results.json will say."""
        return results_of(self.learner, self.about)

    def take_names(self, intake: Intake) -> None:
        """Keep the readable names that came with facts which were all known."""
        if intake.names.items() - self.learner.names.items():
            self.learner.learn(intake)
            if self.folder is not None:
                self.learner.save(self.folder.path, keep=self.keep)

    def write(self, results: Mapping[str, Any], **more: Any) -> None:
        """Write the new version.

        Args:
            results: What results.json will say.
            more: What else belongs to the commit, as `Learner.save` takes it.
        """
        if self.folder is not None:
            self.learner.save(
                self.folder.path,
                keep=self.keep,
                about=self.about,
                message=self.message,
                results=results,
                trace=self.epochs,
                **more,
            )


@contextmanager
def changing(out: Path, options: ChangeOptions) -> Iterator[Changing]:
    """Hold the run in a folder while it changes.

    Raises:
        BusyError: Another process is writing to the run folder.
        UserError: There is no run, or an option is wrong.
    """
    folder = RunFolder(out)
    config = folder.config()
    check_keep(options.keep)
    most_measured(options.evaluate)
    with held(folder, options.wait):
        learner = Learner.load(out, device=options.device)
        clear_up(folder)
        about = about_stored(config, learner, out)
        yield Changing(learner, about, folder, options.keep, options.message, options.on_epoch)


def about_stored(config: Mapping[str, Any], learner: Learner, out: Path) -> dict[str, Any]:
    """What `about_run` said of a run that goes on with other data; no published values are its."""
    return {
        "dataset": config.get("dataset", out.resolve().name),
        "task": config.get("task", learner.task.name),
        "recipe": config.get("recipe", "default"),
        "published": {},
    }
