"""A cell: one training run with all its settings, and the file that keeps its results.

Cells are known by what they are (stream, settings, seed), not by the table that asks for them:
tables and figures that need the same run share it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dicgrl.common.atomic import write_json
from dicgrl.datasets import load_stream, registered
from dicgrl.errors import BusyError, UserError
from dicgrl.graph import Stream
from dicgrl.jobs.merged import run_merged
from dicgrl.jobs.resume import resumed
from dicgrl.jobs.stream import run_stream
from dicgrl.recipes import Recipe, load_recipe
from dicgrl.research.case import study_case
from dicgrl.research.forgetting import study_forgetting
from dicgrl.store.run_folder import RunFolder
from dicgrl.strategies import strategy_named

FORMAT = "dicgrl-cell-2"
_BEFORE = "dicgrl-cell-1"  # there `dim` of a divided model was the whole length of its vectors
FIRST = "first"  # folder of first parts that cells share while they are run
FORMS = ("plain", "disentangled", "disentangled-nodes", "disentangled-triple")
Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """What to run.

    Attributes:
        dataset: Name of a dataset, or the path of a stream.
        model: Name of the model.
        strategy: How parts are learned; None where all parts are merged.
        form: plain or disentangled; disentangled-nodes and disentangled-triple have the attention
            of appendix A.
        recipe: paper, released, best or the path of a recipe file.
        seed: Seed of every random choice.
        changes: Settings that differ from the recipe's, as key=value.
        case: Further arguments of the case study; empty for all other cells.
        wrong: Share of wrong facts that are learned and forgotten, in per cent; 0 for none.
        protocol: How it is measured: seen, or snapshot beside it.

    Example:
        >>> print(Cell("cora", "gat", "gem", recipe="paper", changes=("graph=part",)))
        cora gat gem paper seed 0 graph=part
    """

    dataset: str
    model: str
    strategy: str | None = None
    form: str = "plain"
    recipe: str = "best"
    seed: int = 0
    changes: tuple[str, ...] = ()
    case: tuple[str, ...] = ()
    wrong: float = 0.0
    protocol: str = "seen"

    def __str__(self) -> str:
        how = self.strategy or f"whole {self.form}"
        words = [self.stream_name, self.model, how, self.recipe, f"seed {self.seed}", *self.changes]
        words += ["case"] if self.case else []
        return " ".join([*words, *([f"wrong {self.wrong:g} %"] if self.wrong else [])])

    @property
    def stream_name(self) -> str:
        """What results call the stream."""
        return Path(self.dataset).name

    @property
    def has_parts(self) -> bool:
        """Whether it learns part by part and measures after each."""
        return self._setting == "parts"

    def settings(self) -> Recipe:
        """The recipe with the changes.

        Raises:
            UserError: There is no such recipe, or a change is not possible.
        """
        attention = self.form.removeprefix("disentangled").removeprefix("-") or "relation"
        chosen = load_recipe(
            self.recipe,
            registered(self.dataset),
            self.model,
            disentangled=self.form != "plain",
            attention="relation" if self.form == "plain" else attention,
            strategy=self.strategy,
        )
        return Recipe(chosen.name, chosen.settings.parsed(self.changes), chosen.published)

    def effective(self) -> dict[str, Any]:
        """The settings that its results depend on, as JSON would give them back."""
        settings = self.settings().settings
        later = set() if self.strategy else settings.later_names
        used = settings.names() - later
        found = {k: v for k, v in settings.as_dict().items() if k in used}
        return cast(dict[str, Any], json.loads(json.dumps(found)))

    def identity(self) -> dict[str, Any]:
        """All that its results depend on, as JSON would give it back.

        Settings with their default are left out: one that a later version adds leaves what is
        finished as it is.
        """
        settings = self.settings().settings
        usual = {name: known.default for name, known in settings.known_somewhere().items()}
        usual |= {"model": settings.task.usual_model(self.dataset), "strategy": "lower"}
        return {
            "dataset": self.stream_name,
            "recipe": self.recipe,
            "seed": self.seed,
            "setting": self._setting,
            "case": list(self.case),
            "settings": {k: v for k, v in self.effective().items() if v != usual[k]},
            **({"wrong": self.wrong} if self.wrong else {}),
            **({"protocol": self.protocol} if self.protocol != "seen" else {}),
        }

    @property
    def _setting(self) -> str:
        if self.case:
            return "case"
        if self.wrong:
            return "wrong"
        return "parts" if self.strategy else "whole"

    def key(self) -> str:
        """Its file's name: readable, and another one when any setting is another."""
        text = json.dumps(self.identity(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        how = self.strategy or f"whole-{self.form}"
        how = self._setting if self._setting in ("case", "wrong") else how
        words = (self.stream_name, self.model, how, Path(self.recipe).stem, f"seed{self.seed}")
        return "-".join([*words, digest]).lower()

    def first_key(self) -> str:
        """The same for cells that learn the first part alike, on the same data with one seed."""
        known, later = self.identity(), self.settings().settings.later_names
        known.pop("protocol", None)
        known["settings"] = {k: v for k, v in known["settings"].items() if k not in later}
        if self.strategy and not strategy_named(self.strategy).first_alike:
            known["settings"] = self.identity()["settings"]
        text = json.dumps(known, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell that was run.

    Attributes:
        results: What it measured, as `dicgrl run` writes it.
        finished: When, in UTC.
        at_once: How many cells ran at a time; their seconds are to be read with it.
    """

    results: Results
    finished: str
    at_once: int


def cell_path(folder: Path, cell: Cell) -> Path:
    """Where a cell's results lie."""
    return folder / "cells" / f"{cell.key()}.json"


def load_cell(folder: Path, cell: Cell) -> Finished | None:
    """What a finished cell measured; None where it has to be run.

    A file that is damaged or was written with other settings counts as none.
    """
    try:
        stored = json.loads(cell_path(folder, cell).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(stored, Mapping) or stored.get("format") not in (FORMAT, _BEFORE):
        return None
    if stored.get("identity") != cell.identity():
        return None
    settings, wanted = stored["results"].get("settings", {}), cell.effective()
    if stored["format"] == _BEFORE and "dim" in wanted and wanted["components"]:
        return None
    if any(settings.get(k, v) != v for k, v in wanted.items()):  # a default was another
        return None
    return Finished(stored["results"], stored["finished"], stored["at_once"])


def run_cell(folder: Path, cell: Cell, device: str = "auto", at_once: int = 1) -> None:
    """Run a cell and keep its results; parts that an interrupted run has learned are not repeated.

    Args:
        folder: Where results are kept.
        cell: What to run.
        device: auto, cpu or cuda.
        at_once: How many cells run at a time.
    """
    path = cell_path(folder, cell)
    stream, recipe = load_stream(cell.dataset), cell.settings()
    if not cell.strategy:
        results = run_merged(stream, recipe, seed=cell.seed, device=device)
    elif cell.case:
        results = study_case(stream, recipe, cell.case, seed=cell.seed, device=device)
    elif cell.wrong:
        share = cell.wrong / 100
        results = study_forgetting(stream, recipe, share, seed=cell.seed, device=device)
    else:
        results = _run_parts(stream, recipe, cell, device, path.with_suffix(".run"))
    write_json(
        path,
        {
            "format": FORMAT,
            "cell": asdict(cell),
            "identity": cell.identity(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "at_once": at_once,
            "results": results,
        },
    )
    shutil.rmtree(path.with_suffix(".run"), ignore_errors=True)


def _run_parts(stream: Stream, recipe: Recipe, cell: Cell, device: str, place: Path) -> Results:
    def learn() -> Results:
        return run_stream(
            stream,
            recipe,
            seed=cell.seed,
            device=device,
            out=place,
            resume=True,
            protocol=cell.protocol,
            keep="last",  # a stream of many parts would keep many models that nobody asks
            first=place.parents[1] / FIRST / cell.first_key(),
        )

    unfinished = place.exists()
    try:
        return learn()
    except BusyError:  # a process that outlived its command; what it writes is not damaged
        raise
    except UserError:
        if not unfinished or _goes_on(place, stream, recipe, cell):
            raise
        shutil.rmtree(place)  # what an interrupted run left is damaged or of other data
        return learn()


def _goes_on(place: Path, stream: Stream, recipe: Recipe, cell: Cell) -> bool:
    """Whether what an interrupted run left is sound, so that the mistake is another one."""
    folder = RunFolder(place)
    try:
        if folder.check_new(resume=True):
            resumed(folder, stream, recipe, cell.seed, "cpu")
    except UserError:
        return False
    return True


RunCell = Callable[[Path, Cell, str, int], None]
