"""The map of a run: `dicgrl map`."""

from __future__ import annotations

from typing import Annotated

import typer

from dicgrl.cli.console import show, show_json
from dicgrl.cli.options import At, Json, RunFolder, Wait


def map_(
    folder: RunFolder,
    at: At = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Make all maps anew: points lose their places.")
    ] = False,
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Lay the vectors out in two dimensions, for versions that have no map: old points stay."""
    from dicgrl.jobs.maps import make_maps
    from dicgrl.report.maps_table import maps_table

    made = list(make_maps(folder, at, afresh=afresh, wait=wait))
    if as_json:
        show_json([{"version": each.version, **each.about} for each in made])
    elif made:
        show(maps_table(str(folder), made))
    else:
        show(f"{folder}: all versions that it keeps have a map (--afresh makes them anew)")
