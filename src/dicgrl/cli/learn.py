"""`dicgrl learn`: new facts become the next part of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from dicgrl.cli import processes
from dicgrl.cli.console import interruptible, show, show_json, warn
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
from dicgrl.errors import shown
from dicgrl.readers import Reading
from dicgrl.readers.remote import short_name


@reads_facts
def learn(
    folder: RunFolder,
    facts: Annotated[
        str,
        typer.Argument(
            help="New triples (head TAB relation TAB tail), or new nodes and edges of a network: "
            "a folder or .npz, see docs/data.md; - for triples or edges from standard input."
        ),
    ],
    evaluate: Evaluate = "sample",
    message: Message = "",
    reading: Reading = AS_IT_IS,
    keep: Keep = None,
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn new facts as the next part of a run; entities, relations and nodes may be new."""
    if facts == "-":
        processes.refuse("-", "give a file")
    from dicgrl.jobs.changing import ChangeOptions
    from dicgrl.jobs.learn import learn_facts, task_of, would_fine_tune
    from dicgrl.report.curves import draw_curves
    from dicgrl.report.outcome_tables import learned_table
    from dicgrl.report.progress_bars import parts_bar, units
    from dicgrl.report.reliability_picture import draw_reliability
    from dicgrl.store.run_folder import RunFolder as Folder

    if would_fine_tune(folder):
        warn(
            "this plain --merged model was made by an older version: it is fine-tuned, and "
            "forgets; models made now are continued with fresh"
        )
    bar = parts_bar(f"{folder} {short_name(facts)}", 1, *units(task_of(folder)))
    with interruptible(lambda: f"{folder} is as it was before"), bar as (on_epoch, _):
        options = ChangeOptions(device, keep, evaluate, message, wait, reading, on_epoch)
        outcome = learn_facts(folder, facts, options)
    if not processes.writes():
        return
    changed = outcome.caught_up or not outcome.intake.is_empty
    if Folder(folder).curves_file.exists() and changed:
        draw_curves([outcome.results], Folder(folder).curves_file)
        draw_reliability(outcome.results, Folder(folder).reliability_file)
    if named := outcome.intake.named_alike:
        some = ", ".join(map(shown, named[:5])) + (", ..." if len(named) > 5 else "")
        warn(f"{some}: learned as new; others have these names (use their labels to refer to them)")
    if as_json:
        show_json(outcome.told)
    else:
        show(learned_table(outcome))
