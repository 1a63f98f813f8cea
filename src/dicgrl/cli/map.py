"""The map of a run: `dicgrl map`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import show, show_json
from dicgrl.cli.options import At, Json, RunFolder, Wait


def map_(
    folder: RunFolder,
    at: At = None,
    afresh: Annotated[
        bool,
        typer.Option("--afresh", help="Make all maps again from scratch; every point may move."),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE.tsv", help="Also write label, name, x and y of the version."),
    ] = None,
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Draw maps of the vectors for versions that have none; old points stay in place."""
    from dicgrl.jobs.maps import make_maps, write_places
    from dicgrl.report.maps_table import maps_table
    from dicgrl.report.progress_bars import at_work

    with at_work(f"{folder} map"):
        made = list(make_maps(folder, at, afresh=afresh, wait=wait))
    if to is not None:
        count = write_places(folder, to, at)
    if as_json:
        show_json([{"version": each.version, **each.about} for each in made])
    elif made:
        show(maps_table(str(folder), made))
    else:
        asked = "the newest version" if at is None else f"version {at}"
        show(f"{folder}: {asked} and those it was made from have maps (--afresh makes new ones)")
    if to is not None and not as_json:
        show(f"{to}: where {count:,} of them are")
