"""`dicgrl datasets`: list, show, fetch, split, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.cli.console import show as print_out
from dicgrl.cli.console import show_json
from dicgrl.cli.options import (
    Json,
    Seed,
    Source,
    Test,
    Valid,
)
from dicgrl.cli.reading import AS_IT_IS, reads_facts
from dicgrl.datasets import load_stream, published_dataset
from dicgrl.datasets.fetch import fetch as fetch_dataset
from dicgrl.errors import UserError, shown_value
from dicgrl.graph import Stream, describe
from dicgrl.graph.split import PERIODS
from dicgrl.readers import Reading, read_timed, write_stream
from dicgrl.report.datasets_table import dataset_rows, datasets_table, statistics_tables
from dicgrl.report.download_bar import download_bar
from dicgrl.report.terminal import counted

datasets_app = typer.Typer(help="List, show, fetch, split or convert datasets.")

_GIVEN_UP = "Share of each part's training data to hold out for"
MoreValid = Annotated[
    float, typer.Option(help=f"{_GIVEN_UP} validation, in addition to the graph's own.")
]
MoreTest = Annotated[
    float, typer.Option(help=f"{_GIVEN_UP} testing, in addition to the graph's own.")
]


@datasets_app.callback(invoke_without_command=True)
def _list(context: typer.Context, as_json: Json = False) -> None:
    """List the known datasets: where they are, task, parts and size."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise UserError(f"--json comes after {context.invoked_subcommand}, not before it")
        return
    rows = dataset_rows()
    if as_json:
        show_json(rows)
    else:
        print_out(datasets_table(rows))


@datasets_app.command()
@reads_facts
def show(
    source: Source,
    as_json: Json = False,
    valid: Valid = 0.0,
    test: Test = 0.0,
    seed: Seed = 0,
    reading: Reading = AS_IT_IS,
) -> None:
    """Show the counts of a stream, part by part, as in the paper's appendix C."""
    stream = load_stream(source, valid=valid, test=test, seed=seed, reading=reading)
    description = describe(stream)
    if as_json:
        show_json(description)
        return
    for table in statistics_tables(description):
        print_out(table)


@datasets_app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            help="FB15k-237, WN18RR, cora, citeseer, pubmed; ENTITY, RELATION, FACT, HYBRID."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Download one of the paper's datasets, or of LKGE's, from its authors' public repository."""
    dataset = published_dataset(name)
    with download_bar(name, len(dataset.files)) as update:
        place = fetch_dataset(dataset, update)
    if as_json:
        show_json({"name": name, "folder": str(place)})
    else:
        print_out(f"{name} is in {place}; its counts and content are those published.")


@datasets_app.command()
@reads_facts
def split(
    source: Source,
    out: Annotated[Path, typer.Option(help="Folder to write (knowledge graph) or .npz (network).")],
    by: Annotated[
        str,
        typer.Option(
            help="arrival, order, nightly; time, day, week, month, year (a column of times); "
            "knowledge graphs: entities, relations, facts, hybrid; networks: class."
        ),
    ] = "arrival",
    ratios: Annotated[
        str | None,
        typer.Option(
            help="Shares of the parts.",
            show_default="0.8,0.05,0.05,0.05,0.05; nightly: 41 parts, the first of 0.75",
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Instead: the number of parts, all equal or, with --first, all but the first.",
        ),
    ] = None,
    first: Annotated[
        float | None, typer.Option(help="Share of the first part; the others are equal.")
    ] = None,
    cuts: Annotated[
        str | None,
        typer.Option(help="With --by time: when parts begin, as in 2019-01-01,2020-01-01."),
    ] = None,
    valid: MoreValid = 0.0,
    test: MoreTest = 0.0,
    seed: Seed = 0,
    reading: Reading = AS_IT_IS,
    as_json: Json = False,
) -> None:
    """Split a static graph into a stream of several parts."""
    try:
        shares = None if ratios is None else [float(share) for share in ratios.split(",")]
    except ValueError:
        raise UserError(
            f"--ratios {shown_value(ratios)}: expected numbers such as 0.8,0.1,0.1"
        ) from None
    stream, times = (
        read_timed(source, reading=reading)
        if by in ("time", *PERIODS)
        else (load_stream(source, reading=reading), None)
    )
    made = stream.split(
        by,
        shares,
        parts=parts,
        first=first,
        times=times,
        cuts=None if cuts is None else [cut.strip() for cut in cuts.split(",")],
        valid=valid,
        test=test,
        seed=seed,
    )
    write_stream(made, out)
    _say_written(made, out, as_json)


@datasets_app.command()
@reads_facts
def convert(
    source: Source,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    to: Annotated[
        str, typer.Option(help="tsv, csv, jsonl, parquet, arrow, feather, nt, nq, ttl or rdf.")
    ] = "tsv",
    reading: Reading = AS_IT_IS,
    as_json: Json = False,
) -> None:
    """Write the triples of a stream in another format, part by part."""
    stream = load_stream(source, reading=reading)
    write_stream(stream, out, format=to)
    _say_written(stream, out, as_json)


def _say_written(stream: Stream, out: Path, as_json: bool) -> None:
    if as_json:
        show_json({"out": str(out), "parts": len(stream)})
    else:
        print_out(f"{out}: {counted(len(stream), 'part')}. Next: dicgrl datasets show {out}")
