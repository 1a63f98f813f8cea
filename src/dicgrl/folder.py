"""A run in a folder: a method for every command about runs, with the same names and options.

Each method gives what its command prints with `--json`, as values; what learns and answers does so
with a learner that is loaded then, and what changes the run writes a version, as the command does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dicgrl.ask.explain import Explanation
from dicgrl.ask.exports import DEFAULT
from dicgrl.ask.given import Answers, ManyAnswers
from dicgrl.ask.lines import among_given, many_answers, read_lines
from dicgrl.common.html import html_table
from dicgrl.errors import UserError
from dicgrl.graph.frames import frame_rows
from dicgrl.graph.labelled import Triples
from dicgrl.intake import Facts
from dicgrl.jobs.change import (
    forget_facts,
    merge_labels,
    pairs_in,
    rename_labels,
    replace_facts,
    retrain_run,
    revise_nodes,
)
from dicgrl.jobs.changing import ChangeOptions
from dicgrl.jobs.export import export_run
from dicgrl.jobs.learn import learn_facts
from dicgrl.jobs.maps import make_maps, write_places
from dicgrl.jobs.versions import compacted, difference, verified
from dicgrl.learner import Learner
from dicgrl.nights.job import NightOptions, nightly
from dicgrl.readers import NetworkFacts, Reading
from dicgrl.relabel import Pair
from dicgrl.report import told
from dicgrl.report.night_table import night_summary
from dicgrl.store.run_folder import RunFolder

Version = int | str


class Run:
    """A run in a folder, with a method for every command about it.

    Args:
        folder: The run folder.
        device: auto, cpu or cuda.

    Example:
        >>> import tempfile
        >>> place = tempfile.mkdtemp() + "/run"
        >>> learner = Learner("transe", "lower", dim=8, epochs=2, device="cpu")
        >>> _ = learner.learn([("Alien", "genre", "horror"), ("Brazil", "genre", "satire")])
        >>> learner.save(place)
        >>> run = Run(place, device="cpu")
        >>> run.learn([("Aliens", "genre", "horror")])["parts"][-1]["arrived"]["entities"]
        1
        >>> [version["version"] for version in run.log()]
        [1, 2]
    """

    def __init__(self, folder: str | Path, *, device: str = "auto") -> None:
        self.folder = Path(folder)
        self.device = device

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def learner(self, at: Version | None = None) -> Learner:
        """Load the learner of a version, by default of the newest."""
        return Learner.load(self.folder, at=at, device=self.device)

    def learn(
        self,
        facts: Facts,
        *,
        evaluate: str = "sample",
        message: str = "",
        reading: Reading | None = None,
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Learn facts in any form as the next part, and return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait, reading)
        return told.learned(learn_facts(self.folder, facts, options))

    def forget(
        self,
        facts: Facts,
        *,
        evaluate: str = "sample",
        message: str = "",
        reading: Reading | None = None,
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Take facts back, and return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait, reading)
        return told.changed(forget_facts(self.folder, facts, options))

    def replace(
        self,
        old: Facts,
        new: Facts,
        *,
        evaluate: str = "sample",
        message: str = "",
        reading: Reading | None = None,
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Take facts back and learn others in their place; return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait, reading)
        return told.changed(replace_facts(self.folder, old, new, options))

    def rename(
        self,
        old: str | None = None,
        new: str | None = None,
        *,
        file: str | Path | Iterable[Pair] | None = None,
        of: str | None = None,
        message: str = "",
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Rename one label, or all pairs in a file or a list; return the results."""
        options = ChangeOptions(self.device, keep, "none", message, wait)
        return told.changed(rename_labels(self.folder, _pairs(old, new, file), of, options))

    def merge(
        self,
        kept: str | None = None,
        gone: str | None = None,
        *,
        file: str | Path | Iterable[Pair] | None = None,
        of: str | None = None,
        evaluate: str = "sample",
        message: str = "",
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Merge two labels, or all pairs in a file or a list; return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait)
        return told.changed(merge_labels(self.folder, _pairs(kept, gone, file), of, options))

    def nightly(
        self,
        facts: Facts,
        *,
        fail_if: str | Sequence[str] = (),
        keep_anyway: bool = False,
        test: float = 0.0,
        evaluate: str = "sample",
        message: str = "",
        reading: Reading | None = None,
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Test new facts, learn them, check the model and report; return the outcome."""
        options = NightOptions(
            fail_if=fail_if,
            keep_anyway=keep_anyway,
            test=test,
            device=self.device,
            keep=keep,
            evaluate=evaluate,
            message=message,
            wait=wait,
            reading=reading,
        )
        return told.night_told(nightly(self.folder, facts, options).night)

    def revise(
        self,
        nodes: str | Path | NetworkFacts,
        *,
        evaluate: str = "sample",
        message: str = "",
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Change classes or features of known nodes, and return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait)
        return told.changed(revise_nodes(self.folder, nodes, options))

    def retrain(
        self,
        *,
        evaluate: str = "sample",
        message: str = "",
        keep: str | None = None,
        wait: float = 0.0,
    ) -> dict[str, Any]:
        """Train a new model on everything that the run knows, and return the results."""
        options = ChangeOptions(self.device, keep, evaluate, message, wait)
        return told.changed(retrain_run(self.folder, options))

    def predict(
        self,
        *given: str | None,
        k: int = 10,
        new: bool = False,
        among: str | Path | Iterable[str] | None = None,
        file: str | Path | Iterable[Any] | None = None,
        reading: Reading | None = None,
        skip_unknown: bool = False,
        at: Version | None = None,
        **about: str | None,
    ) -> Answers | ManyAnswers:
        """Answer one question, as `Learner.predict` does, or those of a file, a list or a frame.

        `among` may be a file of labels, too.
        """
        learner = self.learner(at)
        if file is None:
            if among is not None:
                among = among_given(learner.ask.for_links("among"), among, skip=skip_unknown)
            return learner.predict(*given, k=k, new=new, among=among, **about)
        if given or about:
            raise UserError("file holds the questions; leave out the others")
        return many_answers(
            learner.ask, file, k, new=new, among=among, reading=reading, skip=skip_unknown
        )

    def similar(
        self,
        entity: str,
        *,
        k: int = 10,
        component: int | None = None,
        at: Version | None = None,
    ) -> Answers:
        """Find the entities or nodes with the most similar vectors."""
        return self.learner(at).similar(entity, k=k, component=component)

    def score(
        self,
        file: str | Path | Triples,
        *,
        probability: bool = False,
        reading: Reading | None = None,
        skip_unknown: bool = False,
        at: Version | None = None,
    ) -> list[tuple[Any, ...]]:
        """Score triples of a file, a list or a frame: head, relation, tail, score, probability."""
        asking = self.learner(at).ask.for_links("score")
        lines = read_lines(asking, file, skip=skip_unknown, reading=reading)
        found = [asking.score_rows(lines.ids)]
        found += [asking.probability_rows(lines.ids)] if probability else []
        return [(*row, *values) for row, *values in zip(lines.fields, *found, strict=True)]

    def evaluate(
        self,
        file: str | Path | Triples | None = None,
        *,
        by_relation: bool = False,
        reading: Reading | None = None,
        skip_unknown: bool = False,
        protocol: str = "seen",
        at: Version | None = None,
    ) -> dict[str, Any]:
        """Measure how well the model finds the triples of a file, a list or a frame.

        Without triples, the test sets of the run's parts are measured, with this protocol.
        """
        if file is None and (by_relation or skip_unknown):
            raise UserError("by_relation and skip_unknown are about triples: give some")
        if file is not None and protocol != "seen":
            raise UserError("protocol is about the test sets of parts: leave out the triples")
        learner = self.learner(at)
        if file is None:
            return told.tested(str(self.folder), learner, protocol)
        asking = learner.ask.for_links("evaluate")
        lines = read_lines(asking, file, skip=skip_unknown, reading=reading)
        values = asking.measure_rows(lines.ids, by_relation=by_relation)
        return told.measured(lines.label, values | {"unknown": lines.unknown})

    def map(
        self,
        to: str | Path | None = None,
        *,
        afresh: bool = False,
        at: Version | None = None,
        wait: float = 0.0,
    ) -> list[dict[str, Any]]:
        """Draw the maps that are missing, and return them; see `dicgrl.jobs.maps`."""
        made = list(make_maps(self.folder, at, afresh=afresh, wait=wait))
        if to is not None:
            write_places(self.folder, Path(to), at)
        return [{"version": each.version, **each.about} for each in made]

    def export(
        self,
        to: str | Path,
        *,
        format: str | Sequence[str] = DEFAULT,  # noqa: A002
        index: str | None = None,
        since: Version | None = None,
        neighbours: int | None = None,
        license: str = "",  # noqa: A002
        at: Version | None = None,
    ) -> list[str]:
        """Write vectors and labels, or a vector index; see `dicgrl.jobs.export.export_run`."""
        return export_run(
            self.folder,
            Path(to),
            format=format,
            index=index,
            since=since,
            at=at,
            neighbours=neighbours,
            license=license,
        )

    def explain(
        self, triple: tuple[str, str, str], *, k: int = 10, at: Version | None = None
    ) -> Explanation:
        """Explain why a triple is likely."""
        if not isinstance(triple, tuple | list) or len(triple) != 3:
            raise UserError(f"{triple!r}: expected (head, relation, tail)")
        return self.learner(at).explain(*triple, k=k)

    def info(self, *, at: Version | None = None) -> dict[str, Any]:
        """Describe the run: what each part added, what it cost, and how good the model was."""
        nights = self._store.nights() if at is None else []
        found = self._store.overview(at) | {"nights": list(map(night_summary, nights))}
        return told.described(found, nights)

    def log(self) -> list[dict[str, Any]]:
        """List the versions, the newest last."""
        return self._store.log()

    def diff(self, before: Version, after: Version, *, k: int = 10) -> dict[str, Any]:
        """Say what changed between two versions."""
        return told.compared(difference(self.folder, before, after, k=k))

    def tag(
        self,
        name: str,
        *,
        at: Version | None = None,
        delete: bool = False,
        wait: float = 0.0,
    ) -> int:
        """Name a version, or remove a name; return the version's number."""
        if delete and at is not None:
            raise UserError("delete removes a tag from whichever version has it; leave out at")
        return self._store.untag(name, wait) if delete else self._store.tag(name, at, wait)

    def restore(self, version: Version, *, message: str = "", wait: float = 0.0) -> int:
        """Make a new version with the content of an earlier one; return its number."""
        return self._store.restore(version, message, wait)

    def verify(self) -> dict[str, Any]:
        """Check everything, and return what was found."""
        return told.Told(verified(self.folder).as_dict())

    def compact(self, *, keep: str | None = None, wait: float = 0.0) -> dict[str, int]:
        """Write the newest model as one file, delete models not needed; return sizes in bytes."""
        return told.Told(compacted(self.folder, keep, wait))

    def backup(self, to: str | Path) -> int:
        """Copy the run to a new folder; return the newest version of the copy."""
        return self._store.backup(Path(to))

    @property
    def _store(self) -> RunFolder:
        return RunFolder(self.folder)

    def _repr_html_(self) -> str:
        rows = [(each["version"], each["kind"], each.get("message", "")) for each in self.log()]
        return html_table(str(self.folder), ("version", "", "message"), rows)


def _pairs(
    first: str | None, second: str | None, file: str | Path | Iterable[Pair] | None
) -> Iterable[Pair]:
    if file is not None and first is None and second is None:
        return pairs_in(Path(file)) if isinstance(file, str | Path) else frame_rows(file, 2)
    if file is not None or first is None or second is None:
        raise UserError("give two labels, or file with pairs of them")
    return [(first, second)]
