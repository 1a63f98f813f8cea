"""The paper's grid search: settings are chosen on validation data alone, Optuna keeps the trials.

Test sets are taken out of the stream before anything is learned: they are neither measured nor
used to filter ranks. Optuna is optional: `pip install 'dicgrl[sweep]'`.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicgrl.common.devices import pick_device
from dicgrl.errors import FailureError, UserError, unknown_name
from dicgrl.graph import KnowledgeStream, Stream
from dicgrl.recipes import Recipe
from dicgrl.settings import LATER, LinkSettings, NodeSettings, check_use
from dicgrl.store.content import fingerprint
from dicgrl.strategies import strategy as make_strategy
from dicgrl.strategies.bounds import Lower
from dicgrl.tasks import LinkTrainer, NodeTrainer
from dicgrl.training import DivergedError

if TYPE_CHECKING:
    import optuna

Grid = Mapping[str, Sequence[str]]
_STUDY = "dicgrl sweep"
_DIVISION = ("components", "top", "attention", "routing", "order")


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination that was tried.

    Attributes:
        values: What was tried of each setting.
        value: The objective; None where it could not be trained.
        state: complete, diverged or impossible (settings that exclude each other).
        reason: Why it could not be trained; empty where it could.
    """

    values: dict[str, str]
    value: float | None
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that was run.

    Attributes:
        dataset: Name of the stream.
        metric: What was maximised: the mean over the parts' validation sets after the last part.
        whole: Whether all parts were merged.
        seeds: How many seeds each trial was the mean of.
        trials: The trials, best first.
        settings: The settings of the best one.
    """

    dataset: str
    metric: str
    whole: bool
    seeds: int
    trials: list[Trial]
    settings: LinkSettings | NodeSettings

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "whole": self.whole,
            "seeds": self.seeds,
            "trials": [asdict(trial) for trial in self.trials],
            "settings": self.settings.as_dict(),
        }


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """Settings and their values; with semicolons between them, values may have commas.

    Example:
        >>> parse_grid(["dim=100,200", "beta=0.1,0.3"])
        {'dim': ['100', '200'], 'beta': ['0.1', '0.3']}
        >>> parse_grid(["budget=5%,5x;10%"])
        {'budget': ['5%,5x', '10%']}
    """
    grid: dict[str, list[str]] = {}
    for text in texts:
        key, _, listed = text.partition("=")
        values = [value.strip() for value in listed.split(";" if ";" in listed else ",")]
        if not key.strip() or "" in values:
            raise UserError(
                f"--grid {text!r}: expected key=value,value, or key=value;value where values have "
                "commas"
            )
        if key.strip() in grid:
            raise UserError(f"--grid {text!r}: {key.strip()} has its values already")
        grid[key.strip()] = list(dict.fromkeys(values))
    return grid


def forms(settings: LinkSettings | NodeSettings, grid: Grid) -> list[tuple[str, bool]]:
    """The strategies that a grid tries, each with whether its model is divided.

    Example:
        >>> forms(LinkSettings(strategy="emr"), {"components": ["0", "4"]})
        [('emr', False), ('emr', True)]
    """
    strategies = grid.get("strategy", [settings.strategy])
    components = grid.get("components", [str(settings.components)])
    divided = [settings.value("components", count) > 0 for count in components]
    return [(strategy, each) for strategy in strategies for each in divided]


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
    settings: LinkSettings | NodeSettings,
    *,
    whole: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> float:
    """Learn a stream; the metric on each part's validation set after the last part, on average.

    Args:
        stream: The stream; give it through `without_test`.
        settings: The settings.
        whole: Merge all parts first.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.
    """
    kind = LinkTrainer if isinstance(stream, KnowledgeStream) else NodeTrainer
    run: LinkTrainer | NodeTrainer = kind(settings, seed, pick_device(device))
    strategy = Lower(settings) if whole else make_strategy(settings)
    for part in stream.merged() if whole else stream:
        run.take(part)
        strategy.learn(run)
    measured = [
        run.measure(run.examples("valid", part, part + 1))[run.metric]
        for part in range(run.num_parts)
        if run.count("valid", part, part + 1)
    ]
    if not measured:
        raise _nothing_to_choose_by(stream)
    return statistics.fmean(measured)


def _nothing_to_choose_by(stream: Stream) -> UserError:
    return UserError(f"{stream.name}: no validation data to choose by; see --valid")


def run_sweep(
    stream: Stream,
    recipe: Recipe,
    grid: Grid,
    *,
    whole: bool = False,
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
        whole: Merge all parts first.
        trials: How many combinations, drawn at random without repeats; None for all.
        seeds: How many seeds each is the mean of.
        device: auto, cpu or cuda.
        study: SQLite file of the trials. One that is there is gone on with; processes that are
            given the same file share the work.

    Raises:
        UserError: There is no validation data, or no such setting or value.
        FailureError: No combination could be trained.
    """
    engine = _import_optuna()
    if not any(len(part.valid) for part in stream):
        raise _nothing_to_choose_by(stream)
    for key in grid:
        recipe.settings.check_effect(key)
        if key not in recipe.settings.names():
            raise unknown_name("setting", key, recipe.settings.names())
        for value in grid[key]:
            recipe.settings.value(key, value)  # what is no number is found before others are tried
    check_use(grid, forms(recipe.settings, grid))
    pick_device(device)
    hidden = without_test(stream)

    def objective(trial: optuna.Trial) -> float:
        values = {key: trial.suggest_categorical(key, list(grid[key])) for key in grid}
        try:
            settings = recipe.settings.parsed(f"{k}={v}" for k, v in values.items())
            if not whole:
                make_strategy(settings)
            return statistics.fmean(
                validation_value(hidden, settings, whole=whole, seed=seed, device=device)
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

    about = {
        "dataset": stream.name,
        "data": fingerprint(hidden),
        "whole": whole,
        "seeds": seeds,
        "grid": {key: list(values) for key, values in grid.items()},
        "settings": recipe.settings.as_dict(),
    }
    kept = _open(engine, study, about)
    combinations = math.prod(len(values) for values in grid.values())
    wanted = combinations if trials is None else min(trials, combinations)
    while len(_ended(kept)) < wanted:
        kept.optimize(objective, n_trials=1)
    return _summed_up(_ended(kept), stream, recipe, whole, seeds)


def _open(engine: Any, study: Path | None, about: dict[str, Any]) -> optuna.Study:
    """A study, new or as it was left; trials that were interrupted wait to be tried again."""
    from sqlalchemy.exc import SQLAlchemyError  # Optuna's own store

    storage = None
    if study is not None:
        if study.is_dir() or "?" in str(study):
            raise UserError(f"{study}: expected a file for the study, without '?' in its name")
        study.parent.mkdir(parents=True, exist_ok=True)
        storage = f"sqlite:///{study}"
    try:
        kept: optuna.Study = engine.create_study(
            study_name=_STUDY,
            storage=storage,
            sampler=engine.samplers.GridSampler(about["grid"], seed=0),  # it visits them at random
            direction="maximize",
            load_if_exists=True,
        )
    except (SQLAlchemyError, engine.exceptions.OptunaError) as error:
        why = str(error.__cause__ or error).splitlines()[0]
        raise UserError(f"{study}: no study of a sweep, or it cannot be written ({why})") from error
    told = json.loads(json.dumps(about))
    found = kept.user_attrs.get("about", told)
    for key, value in told.items():
        if found.get(key) != value:
            raise UserError(
                f"{study}: the sweep there has another {key}; go on with it as it was begun, or "
                "choose another file"
            )
    kept.set_user_attr("about", told)
    # The sampler counts an interrupted trial, which Optuna calls failed, as visited.
    again = {t.system_attrs["grid_id"] for t in kept.trials if t.state.name == "FAIL"}
    again -= {t.system_attrs["grid_id"] for t in kept.trials if t.state.name != "FAIL"}
    for number in sorted(again):
        attributes = {"grid_id": number, "search_space": about["grid"], "fixed_params": {}}
        kept.add_trial(
            engine.trial.create_trial(
                state=engine.trial.TrialState.WAITING, system_attrs=attributes
            )
        )
    return kept


def _ended(kept: optuna.Study) -> dict[tuple[str, ...], Trial]:
    """The combinations that have an outcome; one that two processes tried counts once."""
    return {
        tuple(map(str, trial.params.values())): Trial(
            dict(trial.params),
            trial.value,
            trial.user_attrs.get("state", "complete"),
            trial.user_attrs.get("reason", ""),
        )
        for trial in kept.trials
        if trial.state.name in ("COMPLETE", "PRUNED")
    }


def _summed_up(
    ended: Mapping[tuple[str, ...], Trial],
    stream: Stream,
    recipe: Recipe,
    whole: bool,
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
    metric = (LinkTrainer if isinstance(stream, KnowledgeStream) else NodeTrainer).metric
    return Sweep(stream.name, metric, whole, seeds, ranked, settings)


def recipe_text(found: Sweep) -> str:
    """The best settings as a recipe file, which `dicgrl run --recipe FILE` takes."""
    settings = found.settings.as_dict()
    strategy = settings.pop("strategy")
    settings |= settings.pop("options", {})
    best = found.trials[0]
    assert best.value is not None
    tried = ", ".join(f"{key}={value}" for key, value in best.values.items())
    lines = [
        f"# {found.dataset}: {tried}, best of {len(found.trials)} combinations on validation data:",
        f"# {found.metric} {100 * best.value:.2f} per cent, mean of {found.seeds} seed(s).",
        f"model = {_toml(settings.pop('model'))}",
    ]
    continual = LATER & settings.keys()
    divided = set(_DIVISION) & settings.keys() if settings["components"] else set()
    sections = {
        "settings": settings.keys() - continual - divided,
        "disentangled": divided,
        f"strategies.{strategy}": set() if found.whole else continual,
    }
    for title, keys in sections.items():
        if keys:
            lines += ["", f"[{title}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in settings.items() if key in keys]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML; JSON writes strings, numbers and truth values alike."""
    return json.dumps(value, ensure_ascii=False)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UserError("a sweep needs Optuna: pip install 'dicgrl[sweep]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
