"""What runs are and how they compare: info, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import show, show_json, warn
from dicgrl.cli.options import At, Json, RunFolder
from dicgrl.errors import UserError


def info(folder: RunFolder, at: At = None, as_json: Json = False) -> None:
    """Describe a run: what each part added, what it cost, and how good the model was."""
    from dicgrl.report.night_table import night_summary, trends_table
    from dicgrl.report.overview_table import overview_table
    from dicgrl.store.run_folder import RunFolder as Folder

    run = Folder(folder)
    found = run.overview(at)
    nights = run.nights() if at is None else []
    if as_json:
        show_json(found | {"nights": [night_summary(night) for night in nights]})
        return
    show(overview_table(found))
    if nights:
        show(trends_table(nights))


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path(
        "comparison.png"
    ),
    as_json: Json = False,
) -> None:
    """Compare runs on the same graph in a table and a figure."""
    from dicgrl.report.comparison_table import comparison_table
    from dicgrl.report.curves import check_picture, draw_curves
    from dicgrl.research.comparable import check_comparable
    from dicgrl.store.run_folder import RunFolder as Folder

    check_picture(out)
    runs = [Folder(folder).results() for folder in folders]
    if len({run["task"] for run in runs}) > 1:
        raise UserError(
            "these runs are for different tasks; only runs of the same task can be compared"
        )
    for warning in check_comparable(folders):
        warn(warning)
    draw_curves(runs, out)
    if as_json:
        show_json(runs)
        return
    show(comparison_table(runs))
    show(f"The curves are in {out}")
