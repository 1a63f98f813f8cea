"""`dicgrl serve`: a run as a service that stays fresh."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from dicgrl.cli.options import Device, RunFolder
from dicgrl.common.optional import needed


def serve(
    folder: RunFolder,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    device: Device = "auto",
) -> None:
    """Serve a run: questions and new facts over HTTP, and a page to look at it."""
    for module in ("fastapi", "uvicorn"):
        needed(module, "serve", "dicgrl serve")
    from dicgrl.serve.options import TOKEN, ServeOptions
    from dicgrl.serve.running import run_server

    options = ServeOptions(device=device, token=os.environ.get(TOKEN, ""))
    run_server(folder, host, port, options, lambda address: typer.echo(f"serving at {address}"))
