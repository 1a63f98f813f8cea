"""`dicgrl nightly`: facts are tested, learned, checked, committed and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import complain, interruptible, show, show_json
from dicgrl.cli.options import (
    Columns,
    Device,
    Evaluate,
    FormatName,
    Json,
    Keep,
    Literals,
    Message,
    Query,
    RunFolder,
    Separator,
    Wait,
)
from dicgrl.readers import Reading


def nightly(
    folder: RunFolder,
    facts: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="What arrived: whatever learn takes; - too.")
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE",
            help="Refuse the night, exit code 1: 'mrr-drop 5%', 'hits@10 < 40%', doubts, ... "
            "(docs/nightly.md); several times.",
        ),
    ] = None,
    keep_anyway: Annotated[
        bool, typer.Option("--keep-anyway", help="Keep a night whose gates fail; exit code 1.")
    ] = False,
    test: Annotated[
        float, typer.Option(help="Share of tonight's facts to hold out, so that it is measured.")
    ] = 0.0,
    evaluate: Evaluate = "sample",
    message: Message = "",
    columns: Columns = "",
    sep: Separator = "",
    file_format: FormatName = "",
    query: Query = "",
    literals: Literals = "drop",
    keep: Keep = None,
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Test what arrived, learn it, check the model, commit one version and report."""
    from dicgrl.jobs.learn import task_of
    from dicgrl.nights.job import NightOptions
    from dicgrl.nights.job import nightly as do_night
    from dicgrl.report.night_table import night_table
    from dicgrl.report.progress_bars import parts_bar, units

    bar = parts_bar(f"{folder} {facts.name}", 1, *units(task_of(folder)))
    with interruptible(lambda: f"{folder} is as it was before"), bar as (on_epoch, _):
        options = NightOptions(
            fail_if=fail_if or [],
            keep_anyway=keep_anyway,
            test=test,
            device=device,
            keep=keep,
            evaluate=evaluate,
            message=message,
            wait=wait,
            reading=Reading(columns, sep, file_format, query, literals),
            on_epoch=on_epoch,
        )
        outcome = do_night(folder, facts, options)
    if as_json:
        show_json(outcome.night)
    else:
        show(night_table(outcome.night))
        show(f"The page is {outcome.page}")
    for gate in outcome.failed:
        complain(f"gate failed: {gate}")
    if outcome.failed:
        raise typer.Exit(1)
