"""`dicgrl nightly`: facts are tested, learned, checked, committed and reported."""

from __future__ import annotations

from typing import Annotated

import typer

from dicgrl.cli.console import complain, interruptible, show, show_json
from dicgrl.cli.options import (
    Device,
    Evaluate,
    Json,
    Keep,
    Message,
    RunFolder,
    Wait,
)
from dicgrl.cli.reading import AS_IT_IS, reads_facts
from dicgrl.readers import Reading
from dicgrl.readers.remote import short_name


@reads_facts
def nightly(
    folder: RunFolder,
    facts: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The new facts: any source that learn accepts; - for standard input.",
        ),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE",
            help="Refuse tonight's version (exit code 1) if this holds: 'mrr-drop 5%', "
            "'hits@10 < 40%', doubts, ... (docs/nightly.md); may be repeated.",
        ),
    ] = None,
    keep_anyway: Annotated[
        bool,
        typer.Option("--keep-anyway", help="Commit even if a gate fails; still exit code 1."),
    ] = False,
    test: Annotated[
        float, typer.Option(help="Share of tonight's facts to hold out for testing.")
    ] = 0.0,
    evaluate: Evaluate = "sample",
    message: Message = "",
    reading: Reading = AS_IT_IS,
    keep: Keep = None,
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Test the model on new facts, learn them, check the result, commit and report."""
    from dicgrl.jobs.learn import task_of
    from dicgrl.nights.job import NightOptions
    from dicgrl.nights.job import nightly as do_night
    from dicgrl.report.night_table import night_table
    from dicgrl.report.progress_bars import parts_bar, units

    bar = parts_bar(f"{folder} {short_name(facts)}", 1, *units(task_of(folder)))
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
            reading=reading,
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
