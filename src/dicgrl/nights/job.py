"""The nightly job: test, learn, check, commit, report.

First, last night's model is tested on tonight's facts; then they are learned as one part. The
held-out facts show what this changed, and gates may refuse the night. Only a night that passes is
written, as one version with its report. A refused night leaves only a report: the run stays at last
night's version.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dicgrl.common.devices import device_name
from dicgrl.evaluation.continual import Tested
from dicgrl.evaluation.part_report import PartReport
from dicgrl.graph.frames import listed
from dicgrl.intake import Facts, Intake
from dicgrl.jobs.changing import ChangeOptions, Changing, changing
from dicgrl.nights.gates import DOUBTS, Gate, failed, judged
from dicgrl.nights.held_out import after, before, in_common, metrics_of, pooled, split_of
from dicgrl.nights.history import History
from dicgrl.nights.holding import held_back
from dicgrl.nights.retraining import Evidence, learned_before, metric_of, retraining
from dicgrl.readers.remote import short_name
from dicgrl.report.night_page import night_page
from dicgrl.report.night_text import verdict
from dicgrl.report.progress_lines import NIGHTS
from dicgrl.report.terminal import counted
from dicgrl.store.nights import Night
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.version import now

__all__ = ["NightOptions", "NightOutcome", "nightly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightOptions(ChangeOptions):
    """Options of a night: those of any change, and its own.

    Attributes:
        fail_if: One or more gates (`dicgrl.nights.gates`); if one fails, the run stays as it was.
        keep_anyway: Keep the night even if a gate fails.
        test: Share of tonight's facts to hold out for testing, if they have no test set.
    """

    fail_if: str | Sequence[str] = ()
    keep_anyway: bool = False
    test: float = 0.0


USUAL = NightOptions()


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """The result of a night.

    Attributes:
        night: The report, as in the store and in the JSON file of the night.
        page: Path of its page.
        results: The results of the run, as written to `results.json`.
    """

    night: Night
    page: Path
    results: dict[str, Any] = field(repr=False)

    @property
    def failed(self) -> list[str]:
        """The gates that failed, as they were given."""
        return failed(self.night["gates"])

    @property
    def kept(self) -> bool:
        """Whether the run is at tonight's version."""
        return bool(self.night["kept"])


def nightly(out: str | Path, facts: Facts, options: NightOptions = USUAL) -> NightOutcome:
    """Let a run test, learn and check what arrived, and report; as `dicgrl nightly` does.

    Args:
        out: The run folder.
        facts: What arrived: a file or folder, `-` for standard input, or facts as
            `Learner.learn` takes them.
        options: How.

    Raises:
        BusyError: Another process is writing to the run folder.
        UserError: There is a mistake in what is asked for; the run is as it was.

    Example:
        >>> import tempfile
        >>> from dicgrl import Learner
        >>> place = tempfile.mkdtemp()
        >>> learner = Learner("transe", dim=8, epochs=20, lr=0.1, device="cpu")
        >>> report = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
        >>> learner.save(place)
        >>> tonight = [("Alien", "genre", "satire"), ("Aliens", "genre", "horror")]
        >>> night = nightly(place, tonight, NightOptions(device="cpu")).night
        >>> night["night"], night["version"], night["facts"]["newcomers"]
        (1, 2, 1)
    """
    given = options.fail_if
    said = [given] if isinstance(given, str) else listed(given, "gates such as 'mrr-drop 5%'")
    gates = [Gate.of(text) for text in said]
    folder = RunFolder(out)
    with changing(folder.path, options) as run:
        learner = run.learner
        learner.check_learned()
        source = short_name(facts) if isinstance(facts, str | Path) else "facts"
        NIGHTS.info("%s: a night begins with %s, at version %s", out, source, learner.version)
        for gate in gates:
            gate.check(metrics_of(learner), options.at_most is not None and bool(split_of(learner)))
        intake = learner.intake(facts, reading=options.reading)
        intake = held_back(intake, learner, options.test)
        NIGHTS.info("%s: %s", out, _what_arrived(intake))
        work = _Work(folder, run, intake, options, gates, facts)
        night, results = work.nothing() if work.is_idle else work.done()
        for each in folder.nights_without_page():
            folder.write_night_page(each["night"], night_page(folder.nights(), each["night"]))
        took = time.perf_counter() - work.started
        NIGHTS.info("%s: night %d: %s, in %.1f s", out, night["night"], verdict(night), took)
    return NightOutcome(night, folder.night_file(night["night"], "html"), results)


def _what_arrived(intake: Intake) -> str:
    left = {
        "known already": intake.known,
        "held out before": intake.held_out,
        "dropped as self loops": intake.self_loops,
    }
    said = [f"{counted(intake.given, 'fact')} arrived"]
    return ", ".join(said + [f"{count:,} {words}" for words, count in left.items() if count])


@dataclass(slots=True)
class _Work:
    """One night, under the lock of its folder."""

    folder: RunFolder
    run: Changing
    intake: Intake
    options: NightOptions
    gates: Sequence[Gate]
    source: Facts
    started: float = field(default_factory=time.perf_counter)

    @property
    def is_idle(self) -> bool:
        noted = self.run.learner.trainer.would_note(self.intake.given_part)
        return self.intake.is_empty and not noted

    def nothing(self) -> tuple[Night, dict[str, Any]]:
        """A night whose facts are all known."""
        results = self.run.results()
        self.run.take_names(self.intake)
        look = History.of(self.run.learner, self.folder).look(self._report(), [], [])
        gates = [judged(gate, look, []) for gate in self.gates]
        report = self._report() | {"kept": True, "gates": gates}
        return self.folder.note_night(report), results

    def done(self) -> tuple[Night, dict[str, Any]]:
        """A night with something to learn."""
        run, learner, at_most = self.run, self.run.learner, self.options.at_most
        measures = at_most is not None
        history = History.of(learner, self.folder)
        arriving = len(getattr(self.intake.part, split_of(learner) or "test"))
        then = before(learner, arriving, at_most) if at_most is not None else []
        learned_then = learned_before(learner, history) if measures else 0.0
        took = learner.learn(
            self.intake,
            probe=measures,
            probe_at_most=at_most or 0,
            foretell=True,
            monitor=run.watch,
        )
        found = after(learner, at_most) if at_most is not None else []
        results = run.results()
        night = self._report(took) | self._checked(took, found, then)
        if measures:
            evidence = Evidence.of(learner, found, history, learned_then)
            night["retraining"] = retraining(evidence, metric_of(learner))
        look = history.look(night, found, then)
        night["gates"] = [judged(gate, look, night[DOUBTS]) for gate in self.gates]
        night["kept"] = not failed(night["gates"]) or self.options.keep_anyway
        night["seconds"]["all"] = time.perf_counter() - self.started
        if not night["kept"]:
            return self.folder.note_night(night), results
        run.write(results, night=night)
        return self.folder.night(), results

    def _report(self, took: PartReport | None = None) -> Night:
        """What a night always says."""
        intake, part = self.intake, self.intake.part
        details = took.details if took else {}
        foretold = details.get("foretold", {})
        taught = took.new_examples if took else 0
        held_out = len(part.valid) + len(part.test)
        new = max(taught + held_out, part.facts - part.self_loops) if took else 0  # an edge is one
        newcomers = foretold.get("facts", 0) - foretold.get("answerable", 0)
        source, learner = self.source, self.run.learner
        return {
            "time": now(),
            "dataset": self.run.about["dataset"],
            "source": str(source) if isinstance(source, str | Path) else "facts",
            "message": self.options.message,
            "task": learner.task.name,
            "model": learner.settings.model,
            "strategy": learner.settings.strategy,
            "device": device_name(learner.trainer.device),
            "facts": {
                "given": intake.given,
                "known": intake.known,
                "held_out": intake.held_out,
                "self_loops": intake.self_loops,
                "new": new,
                "learned": taught,
                "newcomers": newcomers,
                "arrived": details.get("arrived", {}),
            },
            "foretold": foretold,
            "moved": details.get("moved", {}),
            "doubts": list(took.warnings) if took else [],
            "seconds": {
                "learn": took.learn_seconds if took else 0.0,
                "measure": took.evaluate_seconds if took else 0.0,
            },
        }

    def _checked(self, took: PartReport, found: list[Tested], then: list[Tested]) -> dict[str, Any]:
        """What learning took, and what is known of the facts that are held out."""
        learner = self.run.learner
        now_, before_ = in_common(found, then)
        total = pooled(found)
        return {
            "learning": {"epochs": took.epochs, "positives": took.positives},
            "held_out": {
                "split": split_of(learner) if found else "",
                "facts": total.facts,
                "asked": total.asked,
                "metrics": total.metrics,
                "sets": found,
                "before": {"asked": before_.asked, "metrics": before_.metrics},
                "same": {"asked": now_.asked, "metrics": now_.metrics},
                "retention": learner.retention[-1],
            },
        }
