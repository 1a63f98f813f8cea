"""`dicgrl serve`: a run as a service that stays fresh."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import warn
from dicgrl.cli.options import Device, Evaluate, Keep, RunFolder
from dicgrl.common.optional import needed

_LOCAL = ("127.0.0.1", "localhost", "::1")
_Facts = Annotated[int, typer.Option(min=1, help="Learn as soon as this many facts are queued.")]
_Seconds = Annotated[
    float, typer.Option(min=0, help="Longest time that a fact waits before it is learned.")
]


def serve(
    context: typer.Context,
    folder: RunFolder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name that the server answers to."),
    ] = None,
    learn_facts: _Facts = 100,
    learn_seconds: _Seconds = 30.0,
    most_bytes: Annotated[int, typer.Option(min=1, help="Most bytes per request.")] = 1 << 20,
    most_questions: Annotated[int, typer.Option(min=1, help="Most questions per request.")] = 1000,
    most_answers: Annotated[int, typer.Option(min=1, help="Most answers per question.")] = 1000,
    most_facts: Annotated[int, typer.Option(min=1, help="Most facts per request.")] = 10_000,
    most_pending: Annotated[int, typer.Option(min=1, help="Most facts in the queue.")] = 100_000,
    most_connections: Annotated[int, typer.Option(min=1, help="Most connections at a time.")] = 500,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit per request.")] = 30.0,
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    device: Device = "auto",
) -> None:
    """Serve a run over HTTP: answers, new facts, and a page to explore it."""
    for module in ("fastapi", "uvicorn", "httptools"):
        needed(module, "serve", "dicgrl serve")
    from dicgrl.jobs.changing import most_measured
    from dicgrl.serve.options import TOKEN, ServeOptions
    from dicgrl.serve.running import run_server
    from dicgrl.store.writer import check_keep

    check_keep(keep)
    most_measured(evaluate)
    options = ServeOptions(
        device=device,
        token=os.environ.get(TOKEN, "").strip(),
        most_bytes=most_bytes,
        most_questions=most_questions,
        most_answers=most_answers,
        most_facts=most_facts,
        most_pending=most_pending,
        most_connections=most_connections,
        seconds=seconds,
        learn_facts=learn_facts,
        learn_seconds=learn_seconds,
        evaluate=evaluate,
        keep=keep,
        plugins=plugins_of(context),
    )
    if host not in _LOCAL:
        warn(f"anyone who reaches {host} can query this run, unencrypted (docs/serve.md)")
    run_server(folder, host, port, options, _say_address, allow_host or ())


def mcp(
    context: typer.Context,
    folder: RunFolder,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tools that write facts.")
    ] = False,
    learn_facts: _Facts = 100,
    learn_seconds: _Seconds = 30.0,
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    device: Device = "auto",
) -> None:
    """Serve a run to agents through the Model Context Protocol."""
    needed("mcp", "serve", "dicgrl mcp")
    from dicgrl.jobs.changing import most_measured
    from dicgrl.serve.agents import run_agent_server
    from dicgrl.serve.options import ServeOptions
    from dicgrl.store.writer import check_keep

    check_keep(keep)
    most_measured(evaluate)
    options = ServeOptions(
        device=device,
        token="" if read_only else "stdio",
        learn_facts=learn_facts,
        learn_seconds=learn_seconds,
        evaluate=evaluate,
        keep=keep,
        plugins=plugins_of(context),
    )
    run_agent_server(folder, options)


def learn_waiting(
    folder: RunFolder, evaluate: Evaluate = "sample", keep: Keep = None, device: Device = "auto"
) -> None:
    """The process of a server that learns: what waits, for each line that it reads."""
    import sys

    from dicgrl.jobs.pending import PendingLearner
    from dicgrl.serve.teacher import learn_when_told

    learner = PendingLearner(folder, device=device, keep=keep, evaluate=evaluate)
    if hasattr(os, "nice"):
        os.nice(5)  # whoever asks comes first
    learn_when_told(learner, sys.stdin, lambda line: print(line, flush=True))


def plugins_of(context: typer.Context) -> list[Path]:
    """The files that `--plugin` named."""
    found = context.find_root().params.get("plugin")
    return [Path(path).resolve() for path in found or ()]


def _say_address(address: str) -> None:
    typer.echo(f"serving at {address}")
