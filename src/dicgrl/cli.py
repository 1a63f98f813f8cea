"""The command line: verbs only; what they do is in the package."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import dicgrl
from dicgrl.datasets import load_stream, paper_dataset
from dicgrl.datasets.fetch import fetch as fetch_dataset
from dicgrl.errors import DicgrlError, UserError
from dicgrl.readers import read_timed, write_stream
from dicgrl.report.datasets import (
    dataset_rows,
    datasets_table,
    download_bar,
    statistics_tables,
)
from dicgrl.report.terminal import is_terminal

app = typer.Typer(
    name="dicgrl",
    help="Graph embeddings that keep learning while the graph grows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
datasets_app = typer.Typer(help="Datasets: list, show, fetch, split.")
app.add_typer(datasets_app, name="datasets")

Source = Annotated[str, typer.Argument(help="A dataset's name, or the path of your own data.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Valid = Annotated[float, typer.Option(help="Share set aside for validation, where there is none.")]
Test = Annotated[float, typer.Option(help="Share set aside for testing, where there is none.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 2, a failure exit code 1."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a name the terminal has no signs for
    # Read when PyTorch is loaded: threads that wait must not burn the cores that others work on.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except DicgrlError as error:
        _complain(str(error))
        sys.exit(2 if isinstance(error, UserError) else 1)
    except OSError as error:  # a full disk, a folder that cannot be written
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _complain(message: str) -> None:
    text = Text.assemble(("error:", "bold red"), f" {message}")
    Console(stderr=True, soft_wrap=True).print(text)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dicgrl {dicgrl.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@datasets_app.callback(invoke_without_command=True)
def _list(context: typer.Context, as_json: Json = False) -> None:
    """What is known, where it is, its task, parts and size."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise UserError(f"--json comes after {context.invoked_subcommand}, not before it")
        return
    rows = dataset_rows()
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        _console().print(datasets_table(rows))


@datasets_app.command()
def show(
    source: Source,
    as_json: Json = False,
    valid: Valid = 0.0,
    test: Test = 0.0,
    seed: Seed = 0,
) -> None:
    """The statistics of a stream, part by part, as in the paper's appendix C."""
    description = dicgrl.describe(load_stream(source, valid=valid, test=test, seed=seed))
    if as_json:
        typer.echo(json.dumps(description))
        return
    for table in statistics_tables(description):
        _console().print(table)


@datasets_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="FB15k-237, WN18RR, cora, citeseer or pubmed.")],
) -> None:
    """Download one of the paper's datasets from the authors' public repository."""
    dataset = paper_dataset(name)
    with download_bar(name, len(dataset.files)) as update:
        place = fetch_dataset(dataset, update)
    _console().print(f"{name} is in {place}; its counts are those of the paper.", soft_wrap=True)


@datasets_app.command()
def split(
    source: Source,
    out: Annotated[Path, typer.Option(help="Folder to write (knowledge graph) or .npz (network).")],
    by: Annotated[
        str, typer.Option(help="arrival, time (fourth column of a file) or order.")
    ] = "arrival",
    ratios: Annotated[str, typer.Option(help="Share of each part.")] = "0.8,0.05,0.05,0.05,0.05",
    valid: Valid = 0.0,
    test: Test = 0.0,
    seed: Seed = 0,
) -> None:
    """Make a stream of several parts out of a static graph."""
    try:
        shares = [float(share) for share in ratios.split(",")]
    except ValueError:
        raise UserError(f"--ratios {ratios!r}: expected numbers such as 0.8,0.1,0.1") from None
    stream, times = read_timed(source) if by == "time" else (load_stream(source), None)
    parts = stream.split(by, shares, times=times, valid=valid, test=test, seed=seed)
    write_stream(parts, out)
    _console().print(f"{out}: {len(parts)} parts. Next: dicgrl datasets show {out}", soft_wrap=True)


@app.command()
def run(
    source: Source,
    whole: Annotated[
        bool, typer.Option("--whole", help="All parts merged: the setting that is not continual.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="transe, convkb for links; gat, sage for nodes.")
    ] = None,
    disentangled: Annotated[
        bool, typer.Option("--disentangled/--plain", help="Divide vectors into components.")
    ] = False,
    recipe: Annotated[str, typer.Option(help="Named settings: best or paper.")] = "best",
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")
    ] = None,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for the model and the results.")] = None,
    valid: Valid = 0.0,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Learn a stream and measure what was learned."""
    from dicgrl.recipes import Recipe, load_recipe  # PyTorch is imported only when it is needed
    from dicgrl.report.progress import training_bar
    from dicgrl.report.tables import whole_table
    from dicgrl.whole import run_whole

    if not whole:
        raise UserError("learning part by part is not there yet; use --whole")
    stream = load_stream(source, valid=valid, test=test, seed=seed)
    links = isinstance(stream, dicgrl.KnowledgeStream)
    model = model or ("transe" if links else "gat")
    chosen = load_recipe(recipe, stream.name, model, disentangled=disentangled)
    settings = chosen.settings.parsed(changes or [])
    chosen = Recipe(chosen.name, settings, chosen.published)
    unit, metric = ("triples", "MRR") if links else ("nodes", "-loss")
    with training_bar(f"{stream.name} {model}", settings.epochs, metric, unit) as monitor:
        results = run_whole(stream, chosen, seed=seed, device=device, out=out, monitor=monitor)
    if as_json:
        typer.echo(json.dumps(results))
    else:
        _console().print(whole_table(results))


def _console() -> Console:
    # A pipe gets whole lines, whatever the width of the terminal behind it. Names and paths are
    # printed as they are: brackets and colons in them are no markup.
    width = None if is_terminal(sys.stdout) else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)
