"""`dicgrl sweep`: search for settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import interruptible, show, show_json
from dicgrl.cli.options import (
    Changes,
    Device,
    Disentangled,
    Json,
    Merged,
    Model,
    Plain,
    RecipeName,
    Seeds,
    Source,
    Test,
    Valid,
    is_divided,
)
from dicgrl.datasets import load_stream
from dicgrl.tasks import DEFAULT_STRATEGY


def sweep(
    source: Source,
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2",
            help="A setting and the values to try; 'KEY=V1;V2' where values have commas.",
        ),
    ],
    model: Model = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="frozen, lower, upper, warm, ewc, emr, gem, lkge, incde, fastkge, arrival, "
            "dicgrl or fresh.",
            show_default=DEFAULT_STRATEGY,
        ),
    ] = None,
    merged: Merged = False,
    disentangled: Disentangled = False,
    plain: Plain = False,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Try this many combinations, drawn at random; by default all."),
    ] = None,
    seeds: Seeds = 1,
    recipe: RecipeName = "best",
    changes: Changes = None,
    study: Annotated[
        Path | None, typer.Option(help="SQLite file, to resume and to share between processes.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Recipe file (.toml) to write.")] = None,
    device: Device = "auto",
    valid: Valid = 0.0,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Search for good settings on validation data; test sets are not used."""
    from dicgrl.jobs.sweep import plan_sweep, run_sweep
    from dicgrl.jobs.sweep_recipe import check_recipe_file, write_recipe
    from dicgrl.report.trials_table import trials_table

    check_recipe_file(out)
    stream = load_stream(source, valid=valid, test=test)
    chosen, values = plan_sweep(
        stream,
        source,
        grid,
        model=model,
        strategy=strategy,
        recipe=recipe,
        disentangled=is_divided(disentangled, plain),
        changes=changes or [],
        merged=merged,
    )
    kept = "" if study is None else f"finished trials are in {study}; run the command again"
    with interruptible(lambda: kept):
        found = run_sweep(
            stream,
            chosen,
            values,
            merged=merged,
            trials=trials,
            seeds=seeds,
            device=device,
            study=study,
        )
    if out is not None:
        write_recipe(found, out)
    if as_json:
        show_json(found.as_dict())
        return
    show(trials_table(found))
    if out is not None:
        show(f"The best settings are in {out}")
