"""`dicgrl reproduce`: the paper's tables and figures, and some of our own, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import complain, interruptible, show, show_json
from dicgrl.cli.options import Changes, Device, Json, Protocol, RecipeName, Seeds


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table1 to table4, stats, curves, sensitivity, time, case, all; or films, "
            "decoders, growth, growth-effort, ckge, ablation, forgetting, which are not in the "
            "paper."
        ),
    ],
    recipe: RecipeName = "best",
    seeds: Seeds = 3,
    device: Device = "auto",
    out: Annotated[Path, typer.Option(help="Folder for finished runs and reports.")] = Path(
        "reproduced"
    ),
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time: 1 on a CPU, 3 on a GPU.", show_default=False),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Start no further run after this many minutes; run the command again to continue.",
        ),
    ] = None,
    changes: Changes = None,
    only: Annotated[
        str, typer.Option(help="Run only what has this text in its name, such as 'cora gat'.")
    ] = "",
    protocol: Protocol = "seen",
    as_json: Json = False,
) -> None:
    """Reproduce tables and figures of the paper; finished runs are not repeated."""
    from dicgrl.report.progress_bars import runs_bar
    from dicgrl.research.job import reproduce as run_targets
    from dicgrl.research.target import Options
    from dicgrl.research.targets import targets

    options = Options(recipe, seeds, tuple(changes or ()), protocol)
    with interruptible(lambda: f"finished runs are in {out}; run the command again to continue"):
        outcome, reports = run_targets(
            targets(target),
            options,
            out,
            only=only,
            device=device,
            jobs=jobs,
            minutes=minutes,
            watch=runs_bar,
        )
    if as_json:
        show_json({"reports": [report for report, _ in reports]})
    for report, content in [] if as_json else reports:
        for table in content.tables:
            show(table.rich())
        for note in content.notes:
            show(note)
        show(f"Written to {out / report['name']}.md and .json")
    if outcome.left and not as_json:
        show(f"{len(outcome.left)} runs are left; run the command again to continue")
    if outcome.failed:
        for cell, reason in outcome.failed.items():
            complain(f"{cell}: {reason}")
        raise typer.Exit(1)
