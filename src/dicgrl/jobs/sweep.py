"""The paper's grid search: settings are chosen on validation data alone.

Test sets are taken out of the stream before anything is learned: they are neither measured nor
used to filter ranks. `dicgrl.jobs.sweep_study` keeps the trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicgrl.common.devices import pick_device
from dicgrl.errors import FailureError, UserError, unknown_name
from dicgrl.graph import Stream
from dicgrl.jobs.choose import Changes, check_changes, chosen_recipe, chosen_strategies
from dicgrl.jobs.sweep_grid import Grid, forms, parse_grid
from dicgrl.jobs.sweep_study import Trial, ended_trials, import_optuna, open_study
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.settings import Settings, check_use
from dicgrl.store.content import fingerprint
from dicgrl.training import DivergedError

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that was run.

    Attributes:
        dataset: Name of the stream.
        metric: What was maximised: the mean over the parts' validation sets after the last part.
        merged: Whether all parts were merged.
        seeds: How many seeds each trial was the mean of.
        trials: The trials, best first.
        settings: The settings of the best one.
    """

    dataset: str
    metric: str
    merged: bool
    seeds: int
    trials: list[Trial]
    settings: Settings

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "whole": self.merged,
            "seeds": self.seeds,
            "trials": [asdict(trial) for trial in self.trials],
            "settings": self.settings.as_dict(),
        }


def without_test(stream: Stream) -> Stream:
    """The stream with empty test sets; what is in them is not looked at.

    Example:
        >>> from dicgrl.datasets import load_stream
        >>> len(without_test(load_stream("films"))[0].test)
        0
    """
    return stream.without_test()


def validation_value(
    stream: Stream,
    settings: Settings,
    *,
    merged: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> float:
    """Learn a stream; the metric on each part's validation set after the last part, on average.

    Args:
        stream: The stream; give it through `without_test`.
        settings: The settings.
        merged: Merge all parts first.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
    """
    if merged:  # one part, which all strategies learn alike, whatever model they need for others
        settings = settings.changed({"strategy": "lower"})
    learner = Learner(settings=settings, seed=seed, device=device)
    for part in stream.merged() if merged else stream:
        learner.learn(part)
    trainer = learner.trainer
    measured = [
        trainer.measure(trainer.examples("valid", part, part + 1))[trainer.metric]
        for part in range(trainer.num_parts)
        if trainer.count("valid", part, part + 1)
    ]
    if not measured:
        raise _nothing_to_choose_by(stream)
    return statistics.fmean(measured)


def _nothing_to_choose_by(stream: Stream) -> UserError:
    return UserError(f"{stream.name}: no validation data to choose settings by; see --valid")


def run_sweep(
    stream: Stream,
    recipe: Recipe,
    grid: Grid,
    *,
    merged: bool = False,
    trials: int | None = None,
    seeds: int = 1,
    device: str = "auto",
    study: Path | None = None,
) -> Sweep:
    """Try combinations of settings.

    Args:
        stream: The stream; its test sets are not read.
        recipe: The settings that are not in the grid.
        grid: Settings and their values.
        merged: Merge all parts first.
        trials: How many combinations, drawn at random without repeats; None for all.
        seeds: How many seeds each is the mean of.
        device: auto, cpu or cuda.
        study: SQLite file of the trials. One that is there is continued; processes that are
            given the same file share the work.

    Raises:
        UserError: There is no validation data, or no such setting or value.
        FailureError: No combination could be trained.
    """
    engine = import_optuna()
    if not any(len(part.valid) for part in stream):
        raise _nothing_to_choose_by(stream)
    _check_grid(recipe, grid)
    pick_device(device)
    hidden = without_test(stream)
    about = {
        "format": 2,  # without: `dim` of divided models was the whole length of their vectors
        "dataset": stream.name,
        "data": fingerprint(hidden),
        "whole": merged,
        "seeds": seeds,
        "grid": {key: list(values) for key, values in grid.items()},
        "settings": recipe.settings.as_dict(),
    }
    kept = open_study(engine, study, about)
    objective = _objective(engine, hidden, recipe, grid, merged=merged, seeds=seeds, device=device)
    combinations = math.prod(len(values) for values in grid.values())
    wanted = combinations if trials is None else min(trials, combinations)
    while len(ended_trials(kept)) < wanted:
        kept.optimize(objective, n_trials=1)
    return _summed_up(ended_trials(kept), stream, recipe, merged, seeds)


def _check_grid(recipe: Recipe, grid: Grid) -> None:
    """Find what is no setting, no value or of no use before anything is tried."""
    for key in grid:
        recipe.settings.check_effect(key)
        if key not in recipe.settings.names():
            raise unknown_name("setting", key, recipe.settings.names())
        for value in grid[key]:  # what is no value is found before others are tried
            recipe.settings.check_value(key, value)
    check_use(grid, recipe.settings.task, forms(recipe.settings, grid))


def _objective(
    engine: Any,
    stream: Stream,
    recipe: Recipe,
    grid: Grid,
    *,
    merged: bool,
    seeds: int,
    device: str,
) -> Callable[[optuna.Trial], float]:
    """What Optuna maximises: a combination's mean validation value over the seeds."""

    def objective(trial: optuna.Trial) -> float:
        values = {key: trial.suggest_categorical(key, list(grid[key])) for key in grid}
        try:
            settings = recipe.settings.parsed(f"{k}={v}" for k, v in values.items())
            return statistics.fmean(
                validation_value(stream, settings, merged=merged, seed=seed, device=device)
                for seed in range(seeds)
            )
        except UserError as error:  # such as 8 of 4 components, or more memory than there is
            trial.set_user_attr("state", "impossible")
            trial.set_user_attr("reason", str(error))
            raise engine.TrialPruned from error
        except DivergedError as error:
            trial.set_user_attr("state", "diverged")
            trial.set_user_attr("reason", str(error))
            raise engine.TrialPruned from error

    return objective


def _summed_up(
    ended: Mapping[tuple[str, ...], Trial],
    stream: Stream,
    recipe: Recipe,
    merged: bool,
    seeds: int,
) -> Sweep:
    ranked = sorted(
        ended.values(), key=lambda t: -math.inf if t.value is None else t.value, reverse=True
    )
    if not ranked or ranked[0].value is None:
        why = f", the last because: {ranked[-1].reason}" if ranked and ranked[-1].reason else ""
        raise FailureError(
            f"{stream.name}: none of {len(ranked)} combinations could be trained{why}"
        )
    settings = recipe.settings.parsed(f"{k}={v}" for k, v in ranked[0].values.items())
    return Sweep(stream.name, settings.task.metric, merged, seeds, ranked, settings)


def plan_sweep(
    stream: Stream,
    source: str,
    grid: Sequence[str],
    *,
    model: str | None = None,
    strategy: str | None = None,
    recipe: str = "best",
    disentangled: bool | None = None,
    changes: Changes = (),
    merged: bool = False,
) -> tuple[Recipe, dict[str, list[str]]]:
    """What `run_sweep` tries, from what was asked for on a command line.

    Args:
        stream: The stream.
        source: Where it comes from; the recipe is that of the dataset of this name, if it is one.
        grid: Settings and their values, as `parse_grid` takes them.
        model: Name of the model; the task's default unless given.
        strategy: How later parts are learned; fresh unless given.
        recipe: best, paper, released or the path of a recipe file.
        disentangled: Whether vectors are divided into components; as the strategy needs it unless
            given.
        changes: Settings that differ from the recipe.
        merged: Merge all parts first.

    Returns:
        The settings that are not in the grid, and the grid.
    """
    names = chosen_strategies(None if strategy is None else [strategy], merged=merged)
    chosen = chosen_recipe(
        stream,
        source,
        model=model,
        recipe=recipe,
        disentangled=disentangled,
        changes=changes,
        strategy=None if merged else names[0],
    )
    values = parse_grid(grid)
    check_changes(changes, chosen.settings.task, forms(chosen.settings, values))
    return chosen, values
