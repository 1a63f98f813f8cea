"""What a graph would take on this machine: plan."""

from __future__ import annotations

from typing import Annotated

import typer

from dicgrl.cli.console import show, show_json
from dicgrl.cli.options import Changes, Device, Json


def plan(
    entities: Annotated[int, typer.Option(min=1, max=10**12, help="How many entities.")],
    triples: Annotated[int, typer.Option(min=1, max=10**13, help="How many training triples.")],
    dim: Annotated[int, typer.Option(min=1, help="Numbers per vector.")] = 200,
    model: Annotated[str, typer.Option(help="rotate, transe, complex, distmult or convkb.")] = (
        "rotate"
    ),
    part: Annotated[int, typer.Option(min=1, max=10**12, help="Facts per update.")] = 10_000,
    ranks: Annotated[
        int,
        typer.Option(min=1, max=10**6, help="Processes that learn together (torchrun)."),
    ] = 1,
    source: Annotated[
        str, typer.Option(help="What facts are read from: parquet, or text, which takes less.")
    ] = "parquet",
    changes: Changes = None,
    device: Device = "auto",
    measure: Annotated[
        bool, typer.Option(help="Measure this machine's speed for a few seconds.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Estimate the memory and time that a graph of a given size needs on this machine."""
    from dicgrl.common.devices import pick_device
    from dicgrl.jobs.capacity import Size, plan_capacity
    from dicgrl.report.capacity_table import capacity_table
    from dicgrl.settings import Settings
    from dicgrl.tasks import task_named

    place = pick_device(device)
    task_named("link-prediction").check_model(model, "what is planned")
    settings = Settings(model, "fresh", epochs=0, batch=0, lr=0.0, dim=dim).parsed(changes or [])
    found = plan_capacity(
        Size(entities, triples, part, ranks, source), settings, place, measured=measure
    )
    if as_json:
        show_json(found)
    else:
        show(capacity_table(found))
