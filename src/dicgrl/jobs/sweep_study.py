"""Trials of a sweep, kept by Optuna in memory or in an SQLite file.

Optuna is optional: `pip install 'dicgrl[sweep]'`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicgrl.common.optional import needed
from dicgrl.errors import UserError

if TYPE_CHECKING:
    import optuna

_STUDY = "dicgrl sweep"


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


def import_optuna() -> Any:
    """The optional package, quiet.

    Raises:
        UserError: It is not installed.
    """
    engine = needed("optuna", "sweep", "a sweep")
    engine.logging.set_verbosity(engine.logging.ERROR)
    return engine


def open_study(engine: Any, study: Path | None, about: dict[str, Any]) -> optuna.Study:
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
        raise UserError(f"{study}: not the study of a sweep, or not writable ({why})") from error
    _check_about(kept, study, about)
    _try_again(engine, kept, about["grid"])
    return kept


def _check_about(kept: optuna.Study, study: Path | None, about: dict[str, Any]) -> None:
    """Refuse to go on with the sweep of something else; a new study is told what it is of."""
    told = json.loads(json.dumps(about))
    found = kept.user_attrs.get("about", told)
    for key, value in told.items():
        if found.get(key) != value:
            raise UserError(
                f"{study}: the sweep there has another {key}; continue it as it was started, or "
                "choose another file"
            )
    kept.set_user_attr("about", told)


def _try_again(engine: Any, kept: optuna.Study, grid: Mapping[str, Sequence[str]]) -> None:
    """Queue combinations whose trial was interrupted."""
    # The sampler counts an interrupted trial, which Optuna calls failed, as visited.
    again = {t.system_attrs["grid_id"] for t in kept.trials if t.state.name == "FAIL"}
    again -= {t.system_attrs["grid_id"] for t in kept.trials if t.state.name != "FAIL"}
    for number in sorted(again):
        attributes = {"grid_id": number, "search_space": grid, "fixed_params": {}}
        kept.add_trial(
            engine.trial.create_trial(
                state=engine.trial.TrialState.WAITING, system_attrs=attributes
            )
        )


def ended_trials(kept: optuna.Study) -> dict[tuple[str, ...], Trial]:
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
