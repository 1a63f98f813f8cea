"""What a target is: the cells that a table or figure needs, and what is made of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from dicgrl.errors import unknown_name
from dicgrl.research.cells import Cell, Finished
from dicgrl.research.tables import Table
from dicgrl.settings import check_use

if TYPE_CHECKING:  # only those who draw wait for it
    from matplotlib.figure import Figure

Found = Mapping[Cell, Finished]
_ONE_SEED = {("paper", "convkb"), ("released", "convkb")}


@dataclass(frozen=True, slots=True)
class Options:
    """What a user chooses about a reproduction.

    Attributes:
        recipe: paper, released, best or the path of a recipe file.
        seeds: How many seeds, from 0.
        changes: Changed settings as key=value; each reaches the cells that have such a setting.
        protocol: seen, or snapshot, by which runs of link prediction are measured besides.
    """

    recipe: str = "best"
    seeds: int = 3
    changes: tuple[str, ...] = ()
    protocol: str = "seen"

    def cells(self, template: Cell) -> list[Cell]:
        """A cell for every seed."""
        asked = replace(template, recipe=self.recipe)
        settings = asked.settings().settings
        if self.protocol != "seen" and asked.has_parts and settings.task.asks_entities:
            asked = replace(asked, protocol=self.protocol)
        names = settings.names()
        changes = tuple(text for text in self.changes if _key(text) in names)
        asked = replace(asked, changes=template.changes + changes)
        return [replace(asked, seed=seed) for seed in range(self.seeds_of(template.model))]

    def seeds_of(self, model: str) -> int:
        """How many seeds a model gets: ConvKB one of the recipes as published, which take hours."""
        return min(self.seeds, 1) if (self.recipe, model) in _ONE_SEED else self.seeds

    def found(self, template: Cell, found: Found) -> list[Finished]:
        """What the seeds of a cell gave, as far as they are finished."""
        return [found[cell] for cell in self.cells(template) if cell in found]

    def published(self, template: Cell) -> dict[str, float]:
        """The paper's numbers for a cell."""
        return self.cells(template)[0].settings().published

    def check(self, cells: Sequence[Cell]) -> None:
        """Refuse a changed setting that none of the cells that are to run has a use for.

        Raises:
            UserError: There is no such setting, or it would have no effect on any of them.
        """
        once = list(dict.fromkeys(replace(cell, seed=0) for cell in cells))
        every = [replace(cell, changes=()).settings().settings for cell in once]
        known = {name for settings in every for name in settings.names()}
        for key in map(_key, self.changes):
            if known and key not in known:
                for settings in every:
                    settings.check_effect(key)
                raise unknown_name("setting", key, known)
        if once:
            asked = [cell.settings().settings for cell in once]
            for task in {settings.task.name: settings.task for settings in asked}.values():
                forms = [each.form for each in asked if each.task.name == task.name]
                mine = {
                    name for each in asked if each.task.name == task.name for name in each.names()
                }
                check_use([key for key in map(_key, self.changes) if key in mine], task, forms)


def _key(change: str) -> str:
    return change.partition("=")[0].strip()


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that is drawn when the report is written.

    Attributes:
        title: What it shows.
        draw: Makes it.
        name: What tells it from other figures of its target; empty for the only one.
    """

    title: str
    draw: Callable[[], Figure]
    name: str = ""


@dataclass(slots=True)
class Content:
    """What a target made of its results.

    Attributes:
        tables: Tables.
        pictures: Figures.
        notes: Sentences that say what the numbers say.
    """

    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper.

    Attributes:
        name: What the command line calls it.
        title: What it shows.
        where: Where the paper has it.
    """

    name: str
    title: str
    where: str
    one_seed: ClassVar[bool] = False  # whether further seeds would show nothing
    keeps_runs: ClassVar[bool] = True  # whether its report has what each run measured

    def templates(self) -> list[Cell]:
        """The cells without recipe, seed and changes."""
        return []

    def templates_for(self, options: Options) -> list[Cell]:
        """Those of them that are asked for."""
        del options
        return self.templates()

    def content(self, options: Options, found: Found) -> Content:
        """Tables and figures of what is finished."""
        raise NotImplementedError

    def options(self, options: Options) -> Options:
        """The options as this target takes them."""
        return replace(options, seeds=1) if self.one_seed else options

    def cells(self, options: Options) -> list[Cell]:
        """All cells that it needs."""
        taken = self.options(options)
        return [cell for template in self.templates_for(taken) for cell in taken.cells(template)]
