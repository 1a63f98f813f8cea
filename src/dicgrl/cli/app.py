"""The command `dicgrl`: its commands in the order of its help, and how it ends."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import dicgrl
from dicgrl.cli import processes
from dicgrl.cli.ask import evaluate, explain, export, predict, score, similar
from dicgrl.cli.change import forget, merge, rename, replace, retrain, revise
from dicgrl.cli.console import complain, warnings_in_one_line, what_ran_out
from dicgrl.cli.datasets import datasets_app
from dicgrl.cli.inspect import compare, info
from dicgrl.cli.learn import learn
from dicgrl.cli.loudness import loud, speak
from dicgrl.cli.map import map_
from dicgrl.cli.nightly import nightly
from dicgrl.cli.plan import plan
from dicgrl.cli.plugins import load_plugin
from dicgrl.cli.research import reproduce
from dicgrl.cli.run import run
from dicgrl.cli.serve import learn_waiting, mcp, serve
from dicgrl.cli.sweep import sweep
from dicgrl.cli.versions import backup, compact, diff, log, restore, tag, verify
from dicgrl.errors import BusyError, DicgrlError, UserError, shown

app = typer.Typer(
    name="dicgrl",
    help="Graph embeddings that keep learning while the graph grows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(datasets_app, name="datasets")
app.command()(loud(run))
app.command()(loud(learn))
app.command()(loud(nightly))
app.command()(loud(forget))
app.command()(loud(replace))
app.command()(rename)
app.command()(loud(merge))
app.command()(loud(revise))
app.command()(loud(retrain))
app.command()(predict)
app.command()(similar)
app.command()(loud(score))
app.command()(loud(evaluate))
app.command()(loud(export))
app.command()(explain)
app.command()(serve)
app.command()(mcp)
app.command(hidden=True)(learn_waiting)
app.command()(info)
app.command("map")(loud(map_))
app.command()(log)
app.command()(diff)
app.command()(tag)
app.command()(restore)
app.command()(verify)
app.command()(compact)
app.command()(backup)
app.command()(compare)
app.command()(plan)
app.command()(loud(reproduce))
app.command()(loud(sweep))


def main() -> None:
    """Run the command line; a mistake is one line and exit code 2, a failure 1, a busy folder 3."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name the terminal has no signs for
    # Read when PyTorch is loaded: threads that wait must not burn the cores that others work on.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    speak()
    try:
        with warnings_in_one_line(), processes.as_one():
            app()
    except DicgrlError as error:
        if processes.may_complain():
            complain(str(error))
        sys.exit(_code_of(error))
    except OSError as error:  # a full disk, a folder that cannot be written
        named = error.filename and shown(str(error.filename), limit=300)[1:-1]
        if processes.may_complain():
            complain(f"{named}: {error.strerror}" if named else str(error))
        sys.exit(2 if error.errno == errno.ENAMETOOLONG else 1)
    except (MemoryError, RecursionError, OverflowError, RuntimeError) as error:
        said = processes.what_is_lost(error) or what_ran_out(error)
        if processes.may_complain():
            if said is None:
                raise
            complain(said)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _code_of(error: DicgrlError) -> int:
    if isinstance(error, BusyError):
        return 3
    return 2 if isinstance(error, UserError) else 1


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dicgrl {dicgrl.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py",
            help="Load decoders, strategies or tasks of your own from this file.",
        ),
    ] = None,
) -> None:
    processes.check_command(context.invoked_subcommand)
    for path in plugin or []:
        load_plugin(path)
