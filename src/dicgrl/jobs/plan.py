"""Runs that are planned before the first of them begins, so that mistakes cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicgrl.common.devices import pick_device
from dicgrl.datasets import load_stream, registered
from dicgrl.errors import UserError
from dicgrl.graph import Stream
from dicgrl.graph.labelled import Triples
from dicgrl.jobs.changing import OnEpoch
from dicgrl.jobs.choose import Changes, check_changes, chosen_recipe, chosen_strategies
from dicgrl.jobs.merged import run_merged
from dicgrl.jobs.race import AUTO, begun_with, race
from dicgrl.jobs.stream import OnPart, run_stream
from dicgrl.readers import Reading
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.writer import check_keep
from dicgrl.strategies import strategy_named
from dicgrl.trainers.snapshots import check_protocol


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run that can begin.

    Attributes:
        stream: The stream.
        recipe: The settings.
        merged: Whether all parts are merged and learned at once.
        out: Run folder; nothing is written without one.
        resume: Whether to go on with the run in the folder.
        keep: Whose models stay in the folder; as for `run_stream`.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        protocol: How it is measured, as for `Learner.evaluate`.
    """

    stream: Stream
    recipe: Recipe
    merged: bool = False
    out: Path | None = None
    resume: bool = False
    keep: str | None = None
    seed: int = 0
    device: str = "auto"
    protocol: str = "seen"

    @property
    def title(self) -> str:
        """What is learned, and how."""
        settings = self.recipe.settings
        title = f"{self.stream.name} {settings.model}"
        return title if self.merged else f"{title} {settings.strategy}"

    def execute(
        self, *, on_part: OnPart | None = None, on_epoch: OnEpoch | None = None
    ) -> dict[str, Any]:
        """Learn, measure and write to the folder.

        Args:
            on_part: Told the results so far after every part.
            on_epoch: Told the part and the report of every epoch.

        Returns:
            The results, as written to `results.json`.
        """
        if not self.merged:
            return run_stream(
                self.stream,
                self.recipe,
                seed=self.seed,
                device=self.device,
                out=self.out,
                resume=self.resume,
                keep=self.keep,
                protocol=self.protocol,
                on_part=on_part,
                on_epoch=on_epoch,
            )
        results = run_merged(
            self.stream,
            self.recipe,
            seed=self.seed,
            device=self.device,
            out=self.out,
            monitor=None if on_epoch is None else lambda report: on_epoch(0, report),
        )
        if on_part:
            on_part(results)
        return results

    def what_is_kept(self) -> str:
        """What the run leaves when it is interrupted; empty where it has no folder."""
        if self.out is None or self.merged:
            return ""
        if not RunFolder(self.out).exists():
            return "no part was finished yet, and nothing is kept"
        return f"finished parts are in {self.out}; --resume continues from there"


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs of one stream, one per strategy.

    Attributes:
        runs: The runs, in the order in which they are executed.
        out: Folder of the run, or of one folder for each where there are several.
    """

    runs: tuple[PlannedRun, ...]
    out: Path | None = None

    def execute(
        self, *, on_part: OnPart | None = None, on_epoch: OnEpoch | None = None
    ) -> list[dict[str, Any]]:
        """Execute all runs; for the arguments see `PlannedRun.execute`.

        Returns:
            The results of each.
        """
        return [run.execute(on_part=on_part, on_epoch=on_epoch) for run in self.runs]


def plan_runs(
    stream: Stream,
    source: str = "",
    *,
    model: str | None = None,
    strategies: Sequence[str] | None = None,
    recipe: str = "best",
    disentangled: bool | None = None,
    changes: Changes = (),
    merged: bool = False,
    out: Path | None = None,
    resume: bool = False,
    keep: str | None = None,
    seed: int = 0,
    device: str = "auto",
    protocol: str = "seen",
) -> Plan:
    """Plan a run for each strategy; nothing is learned or written.

    Args:
        stream: The stream.
        source: Where it comes from; the recipe is that of the dataset of this name, if it is one.
        model: Name of the model; the task's default unless given.
        strategies: How later parts are learned; fresh unless given.
        recipe: best, paper, released or the path of a recipe file.
        disentangled: Whether vectors are divided into components; as a strategy needs it unless
            given.
        changes: Settings that differ from the recipe, as `key=value` texts or by name.
        merged: Learn all parts at once instead, without a strategy.
        out: Run folder; for several strategies the folder of theirs. Without one nothing is kept.
        resume: Go on with the runs in the folder.
        keep: Whose models stay in the folder: of all parts, or of the last.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        protocol: seen, or snapshot, which is measured beside it.

    Raises:
        UserError: A name, setting or value is unknown, or of no use to any of the runs; a folder
            holds something else; or what was asked for excludes itself.

    Example:
        >>> from dicgrl import load_stream
        >>> plan = plan_runs(load_stream("films"), "films", strategies=["lower", "emr"])
        >>> [run.title for run in plan.runs]
        ['films transe lower', 'films transe emr']
    """
    _check_together(merged, out, resume, keep, protocol)
    names = chosen_strategies(strategies, merged=merged)
    several = len(names) > 1
    if out is not None and not merged:
        RunFolder(out).check_layout(several=several)

    def planned(strategy: str | None) -> PlannedRun:
        place = out / strategy if out is not None and strategy is not None and several else out
        chosen = chosen_recipe(
            stream,
            source,
            model=model or begun_with(place, stream, resume=resume),
            recipe=recipe,
            disentangled=disentangled,
            changes=changes,
            strategy=strategy,
        )
        _check_recipe(chosen, strategy, protocol)
        if place is not None:
            RunFolder(place).check_new(resume=resume, resumable=not merged)
        return PlannedRun(stream, chosen, merged, place, resume, keep, seed, device, protocol)

    each: Sequence[str | None] = [None] if merged else names
    runs = tuple(planned(strategy) for strategy in each)
    if not resume:  # a run goes on as it was begun
        every = [run.recipe.settings for run in runs]
        check_changes(changes, every[0].task, [each.form for each in every], merged=merged)
    pick_device(device)
    return Plan(runs, out)


def _check_together(
    merged: bool, out: Path | None, resume: bool, keep: str | None, protocol: str
) -> None:
    """Refuse options that exclude each other, or do not exist."""
    for option, given in (("--resume", resume), ("--keep", keep)):
        if given and (out is None or merged):
            raise UserError(
                f"{option} is about the parts in a run folder: give --out, and leave out --merged"
            )
    check_keep(keep)
    if merged and protocol != "seen":
        raise UserError("--protocol is about parts; with --merged there is only one")


def _check_recipe(recipe: Recipe, strategy: str | None, protocol: str) -> None:
    """Refuse settings that do not go together with each other, the strategy or the protocol."""
    settings = recipe.settings
    settings.task.check(settings)
    check_protocol(protocol, settings.task.trainer_type())
    if strategy is not None:
        strategy_named(strategy).check_model(settings.form.divided, settings.model)


def run(
    source: str | Path | Stream | Triples,
    strategy: str | Sequence[str] | None = None,
    *,
    model: str | None = None,
    recipe: str = "best",
    disentangled: bool | None = None,
    merged: bool = False,
    out: str | Path | None = None,
    resume: bool = False,
    keep: str | None = None,
    seed: int = 0,
    device: str = "auto",
    protocol: str = "seen",
    valid: float = 0.0,
    test: float = 0.0,
    reading: Reading | None = None,
    on_part: OnPart | None = None,
    on_epoch: OnEpoch | None = None,
    **settings: Any,
) -> Any:
    """Learn a stream part by part and measure what is known after each, as `dicgrl run` does.

    Args:
        source: A dataset's name, the path or URL of your own data, or facts, as a list or a data
            frame; or a stream, which is learned by the default recipe.
        strategy: How later parts are learned, or a list of strategies to compare; fresh unless
            given.
        model: transe, rotate, complex, distmult or convkb for knowledge graphs, or auto for the
            winner of a short race (`dicgrl.jobs.race`); gat or sage for networks.
        recipe: Named settings: best, paper, released, or the path of a recipe file (.toml).
        disentangled: Divide vectors into components; as the strategy needs it unless given.
        merged: Learn all parts at once instead, without a strategy.
        out: Run folder; nothing is written without one.
        resume: Go on with the run in the folder.
        keep: Whose models stay in the folder: of "all" parts, or of the "last".
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
        protocol: How it is measured: seen (among all entities seen so far), or snapshot beside it
            (each test set also among the entities of its own part).
        valid: Share set aside for validation, where there is none; not for a stream.
        test: Share set aside for testing, where there is none; not for a stream.
        reading: How data of your own is to be read, where it does not say so itself.
        on_part: Told the results so far after every part.
        on_epoch: Told the part and the report of every epoch.
        **settings: Settings that differ from the recipe, such as dim=100.

    Returns:
        The results, as written to `results.json`; a list of them for a list of strategies.

    Raises:
        UserError: A mistake; it is found before anything is learned.

    Example:
        >>> import dicgrl
        >>> facts = [[("Alien", "genre", "horror")], [("Aliens", "genre", "horror")]]
        >>> stream = dicgrl.KnowledgeStream.from_labels("tiny", facts)
        >>> results = dicgrl.run(stream, "lower", dim=8, epochs=1, device="cpu")
        >>> len(results["parts"])
        2
    """
    if isinstance(source, Stream):
        if valid or test or reading:
            raise UserError(
                "valid, test and reading are for data that is read; split the stream instead"
            )
        stream, name = source, ""
    else:
        stream = load_stream(source, valid=valid, test=test, seed=seed, reading=reading)
        name = registered(source) if isinstance(source, str) else ""
    place = None if out is None else Path(out)
    if model == AUTO:
        model = begun_with(place, stream, resume=resume)
        model = (
            model
            or race(stream, name, recipe=recipe, changes=settings, seed=seed, device=device).winner
        )
    plan = plan_runs(
        stream,
        name,
        model=model,
        strategies=[strategy] if isinstance(strategy, str) else strategy,
        recipe=recipe,
        disentangled=disentangled,
        changes=settings,
        merged=merged,
        out=place,
        resume=resume,
        keep=keep,
        seed=seed,
        device=device,
        protocol=protocol,
    )
    found = plan.execute(on_part=on_part, on_epoch=on_epoch)
    return found[0] if strategy is None or isinstance(strategy, str) else found
