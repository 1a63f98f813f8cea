"""The command line: verbs only; what they do is in the package."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.text import Text

import dicgrl
from dicgrl.cli.plugins import load_plugin
from dicgrl.common.atomic import replacing_file
from dicgrl.datasets import load_stream, paper_dataset, registered
from dicgrl.datasets.fetch import fetch as fetch_dataset
from dicgrl.defaults import DEFAULT_STRATEGY, default_model
from dicgrl.errors import DataWarning, DicgrlError, UserError, shown, unknown_name
from dicgrl.graph.statistics import taught_tests
from dicgrl.readers import read_timed, write_stream
from dicgrl.report.datasets import (
    dataset_rows,
    datasets_table,
    download_bar,
    statistics_tables,
)
from dicgrl.report.terminal import counted, is_terminal

if TYPE_CHECKING:  # PyTorch is imported by the commands that need it
    from dicgrl.learner import Learner
    from dicgrl.recipes import Recipe

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
_GIVEN_UP = "Share of what a part learns from that is set aside for"
MoreValid = Annotated[
    float, typer.Option(help=f"{_GIVEN_UP} validation, besides what the graph has.")
]
MoreTest = Annotated[float, typer.Option(help=f"{_GIVEN_UP} testing, besides what the graph has.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of every random choice.")]


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 2, a failure exit code 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name the terminal has no signs for
    # Read when PyTorch is loaded: threads that wait must not burn the cores that others work on.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        with _warnings_in_one_line():
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


def _warn(message: str) -> None:
    text = Text.assemble(("warning:", "bold yellow"), f" {message}")
    Console(stderr=True, soft_wrap=True).print(text)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print what readers warn of as the commands print their own warnings."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, DataWarning):
            _warn(str(message))
        else:
            others(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        others = warnings.showwarning
        warnings.simplefilter("default", DataWarning)
        warnings.showwarning = show
        yield


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dicgrl {dicgrl.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py",
            help="Run this file first: scoring functions and strategies of your own.",
        ),
    ] = None,
) -> None:
    for path in plugin or []:
        load_plugin(path)


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
        str, typer.Option(help="arrival, time (fourth column of a file), order; networks: class.")
    ] = "arrival",
    ratios: Annotated[str, typer.Option(help="Share of each part.")] = "0.8,0.05,0.05,0.05,0.05",
    valid: MoreValid = 0.0,
    test: MoreTest = 0.0,
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


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run (--out).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
TripleFile = Annotated[
    Path, typer.Argument(help="Triples: head TAB relation TAB tail; - for standard input.")
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out lines with a label that is not known.")
]
Count = Annotated[int, typer.Option("-k", min=1, help="How many answers.")]
RecipeName = Annotated[
    str, typer.Option(help="Named settings: best, paper, or a recipe file (.toml).")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting (docs/settings.md)."),
]
Model = Annotated[str | None, typer.Option(help="transe, convkb for links; gat, sage for nodes.")]
Whole = Annotated[
    bool, typer.Option("--whole", help="All parts merged: the setting that is not continual.")
]
Disentangled = Annotated[
    bool | None,
    typer.Option(
        "--disentangled/--plain",
        help="Divide vectors into components, as dicgrl always does.",
        show_default=False,
    ),
]
Seeds = Annotated[int, typer.Option(min=1, help="How many seeds.")]
Keep = Annotated[
    str | None,
    typer.Option(
        help="Whose models stay in the folder: of all parts, or of the last (less disk).",
        show_default="all, or as the run was begun",
    ),
]


@app.command()
def run(
    source: Source,
    model: Model = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="frozen, lower, upper, ewc, emr, gem or dicgrl; several with commas between them.",
            show_default=DEFAULT_STRATEGY,
        ),
    ] = None,
    whole: Whole = False,
    disentangled: Disentangled = None,
    recipe: RecipeName = "best",
    changes: Changes = None,
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Run folder: checkpoints, results, curves.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    keep: Keep = None,
    valid: Valid = 0.0,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Learn a stream part by part and measure what is known after each."""
    stream = load_stream(source, valid=valid, test=test, seed=seed)
    taught, tests = taught_tests(stream)
    if taught:
        _warn(
            f"{taught:,} of {counted(tests, 'test triple')} are training triples, too: what is "
            "measured looks better than it is"
        )
    model = model or default_model(stream.task)
    for option, given in (("--resume", resume), ("--keep", keep)):
        if given and (out is None or whole):
            raise UserError(f"{option} is about the parts in a folder: give --out, without --whole")
    names = _strategy(strategy, whole)
    if names is None:
        chosen = _recipe(stream, source, model, recipe, disentangled, changes)
        _check_changes(changes, [chosen.settings.form], whole=True)
        _run_whole(stream, chosen, seed, device, out, as_json)
        return
    from dicgrl.report.continual import comparison_table, draw_curves, part_table
    from dicgrl.store import run_folder
    from dicgrl.strategies import Strategy

    strategies = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if out is not None:
        run_folder.RunFolder(out).check_layout(several=len(strategies) > 1)
    jobs: list[tuple[Recipe, Path | None]] = []
    for name in strategies:  # mistakes are found before the first of them runs
        if name not in Strategy.registry:
            raise unknown_name("strategy", name, Strategy.registry)
        chosen = _recipe(stream, source, model, recipe, disentangled, changes, name)
        Strategy.registry[name](chosen.settings)
        place = out / name if out is not None and len(strategies) > 1 else out
        if place is not None:
            run_folder.RunFolder(place).check_new(resume=resume)
        jobs.append((chosen, place))
    if not resume:  # a run goes on as it was begun
        _check_changes(changes, [chosen.settings.form for chosen, _ in jobs])
    every = []
    for chosen, place in jobs:
        shown: list[dict[str, Any]] = []

        def show(results: dict[str, Any], shown: list[dict[str, Any]] = shown) -> None:
            shown.append(results)
            if not as_json:
                _console().print(part_table(results))

        with _interruptible(partial(_kept_of, place)):
            results = _run_parts(stream, chosen, seed, device, place, resume, keep, show)
        every.append(results)
        if not shown:  # the run that was to be resumed had come to its end
            show(results)
        if place is not None:
            draw_curves([results], run_folder.RunFolder(place).curves_file)
    if len(every) > 1 and out is not None:
        draw_curves(every, run_folder.RunFolder(out).curves_file)
    if as_json:
        typer.echo(json.dumps(every if len(every) > 1 else every[0]))
        return
    if len(every) > 1:
        _console().print(comparison_table(every))
    if out is None:
        _console().print("No model was kept; --out FOLDER keeps it.")
    else:
        curves = run_folder.RunFolder(out).curves_file
        _console().print(f"The curves are in {curves}", soft_wrap=True)


@app.command()
def learn(
    folder: RunFolder,
    facts: Annotated[
        Path,
        typer.Argument(
            help="New triples (head TAB relation TAB tail), or new nodes and edges of a network: "
            "a folder or .npz, see docs/data.md."
        ),
    ],
    keep: Keep = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn new facts as the next part of a run; entities, relations and nodes may be new."""
    from dicgrl.jobs.stream import learn_more
    from dicgrl.models import BACKBONES
    from dicgrl.report.continual import draw_curves, part_table
    from dicgrl.report.progress import parts_bar
    from dicgrl.store import run_folder

    config = run_folder.RunFolder(folder).config()
    if config.get("setting") == "whole" and config.get("strategy") == "lower":
        _warn(
            "a plain model of --whole is fine-tuned, and forgets; one of --whole --disentangled "
            "goes on by dicgrl"
        )
    network = config.get("model") in BACKBONES
    task = dicgrl.Task.NODE_CLASSIFICATION if network else dicgrl.Task.LINK_PREDICTION
    known: list[int] = []
    named: list[str] = []
    stale: dict[str, int] = {}
    bar = parts_bar(f"{folder} {facts.name}", 1, *_units(task))
    with _interruptible(lambda: f"{folder} is as it was before"), bar as (on_epoch, _):
        results = learn_more(
            folder,
            facts,
            device=device,
            keep=keep,
            on_epoch=on_epoch,
            on_known=known.append,
            on_named=named.extend,
            on_stale=lambda *counts: stale.update(zip(_FACTS, counts, strict=True)),
        )
    curves = run_folder.RunFolder(folder).curves_file
    if curves.exists() and not known:
        draw_curves([results], curves)
    if named:
        some = ", ".join(map(shown, named[:5])) + (", ..." if len(named) > 5 else "")
        _warn(f"{some}: learned as new, although others have these names; give labels to mean them")
    left_out = [f"{stale[kind]:,} {words}" for kind, words in _STALE.items() if stale.get(kind)]
    if as_json:
        told = {"nothing_new": True} if known else {}
        typer.echo(json.dumps(results | told | ({"facts": stale} if left_out else {})))
        return
    if known:
        why = ", ".join(left_out) or f"{known[0]:,} {_STALE['known']}"
        _console().print(f"nothing new: {counted(known[0], 'fact')}, {why}")
        return
    _console().print(part_table(results))
    if left_out:
        of = counted(stale["given"], "fact")
        _console().print(f"left out of {of}: {', '.join(left_out)}", soft_wrap=True)


_FACTS = ("given", "known", "set_aside")
_STALE = {"known": "known already", "set_aside": "set aside to measure with"}


@app.command()
def predict(
    folder: RunFolder,
    head: Annotated[str | None, typer.Option(help="Label or name of the head.")] = None,
    relation: Annotated[str | None, typer.Option(help="Label or name of the relation.")] = None,
    tail: Annotated[str | None, typer.Option(help="Label or name of the tail.")] = None,
    node: Annotated[str | None, typer.Option(help="A network's node: what class?")] = None,
    k: Count = 10,
    new: Annotated[bool, typer.Option("--new", help="Leave out facts that are known.")] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Many questions: head TAB relation TAB tail, one of them ?, or a node in each "
            "line; - for standard input. Answers are lines on standard output, with --json an "
            "object for each question."
        ),
    ] = None,
    skip_unknown: SkipUnknown = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Answer a question: leave out what you ask for, head, relation or tail."""
    from dicgrl.learner import Learner
    from dicgrl.report.continual import predictions_table

    learner = Learner.load(folder, device=device)
    if file is not None:
        if (head, relation, tail, node) != (None, None, None, None):
            raise UserError("--file holds the questions; leave out the others")
        _predict_all(learner, file, k, new, skip_unknown, as_json)
        return
    answers = learner.predict(head, relation, tail, node=node, k=k, new=new)
    if as_json:
        typer.echo(json.dumps([asdict(answer) for answer in answers]))
        return
    asked = (head, relation, tail) if node is None else (node, "class", None)
    question = " -- ".join("?" if text is None else text for text in asked)
    other = "new" if node is None else ""  # a node has one class
    of_relations = node is None and relation is None
    note = "scores of two relations need not be on one scale" if of_relations else ""
    _console().print(predictions_table(question, answers, other, note))


def _predict_all(
    learner: Learner, file: Path, k: int, new: bool, skip: bool, as_json: bool
) -> None:
    from dicgrl.ask.lines import ASKED, answered
    from dicgrl.report.continual import state_of

    unknown: list[None] = []
    on_unknown = partial(unknown.append, None) if skip else None
    for question, answers in answered(learner, file, k, new=new, on_unknown=on_unknown):
        if as_json:
            found = {"question": question, "answers": [asdict(answer) for answer in answers]}
            typer.echo(json.dumps(found))
            continue
        for answer in answers:
            fields = [answer.label if field == ASKED else field for field in question]
            fields += [answer.label] if len(question) == 1 else []
            other = "new" if len(question) > 1 else ""
            typer.echo("\t".join([*fields, f"{answer.score:.6g}", state_of(answer, other)]))
    _warn_of_unknown(len(unknown))


def _warn_of_unknown(lines: int) -> None:
    if lines:
        has, are = ("has", "is") if lines == 1 else ("have", "are")
        _warn(f"{counted(lines, 'line')} {has} an unknown label and {are} left out")


@app.command()
def similar(
    folder: RunFolder,
    entity: Annotated[str, typer.Argument(help="Label or name of an entity, or of a node.")],
    k: Count = 10,
    component: Annotated[
        int | None, typer.Option(min=0, help="Compare this component alone, from 0.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """What has a similar vector: the cosine of the angle between the two."""
    from dicgrl.learner import Learner
    from dicgrl.report.continual import predictions_table

    found = Learner.load(folder, device=device).similar(entity, k=k, component=component)
    if as_json:
        shown = [{"label": each.label, "name": each.name, "cosine": each.score} for each in found]
        typer.echo(json.dumps(shown))
        return
    _console().print(predictions_table(f"similar to {entity}", found, ""))


@app.command()
def score(
    folder: RunFolder,
    file: TripleFile,
    skip_unknown: SkipUnknown = False,
    device: Device = "auto",
) -> None:
    """Score labelled triples: the same lines with a score, to standard output."""
    from dicgrl.ask.lines import read_lines, scored
    from dicgrl.learner import Learner

    learner = Learner.load(folder, device=device)
    lines = read_lines(learner, file, skip=skip_unknown)
    _warn_of_unknown(lines.unknown)
    for line in scored(learner, lines):
        typer.echo(line)


@app.command()
def evaluate(
    folder: RunFolder,
    file: TripleFile,
    by_relation: Annotated[
        bool, typer.Option("--by-relation", help="Each relation and side on its own, too.")
    ] = False,
    skip_unknown: SkipUnknown = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Measure how well a run finds the answers of triples of your own; nothing is learned."""
    from dicgrl.ask.lines import read_lines
    from dicgrl.learner import Learner
    from dicgrl.report.tables import measured_table

    learner = Learner.load(folder, device=device)
    lines = read_lines(learner, file, skip=skip_unknown)
    found = learner.measure_rows(lines.ids, by_relation=by_relation) | {"unknown": lines.unknown}
    if as_json:
        typer.echo(json.dumps(found))
        return
    _console().print(measured_table(str(file), found))


@app.command()
def export(
    folder: RunFolder,
    to: Annotated[Path, typer.Option(help="Folder to write.")],
) -> None:
    """Write the vectors as safetensors and NumPy arrays, the labels as TSV."""
    from dicgrl.learner import Learner

    names = Learner.load(folder, device="cpu").export(to)
    _console().print(f"{to}: {', '.join(names)}", soft_wrap=True)


@app.command()
def explain(
    folder: RunFolder,
    triple: Annotated[
        tuple[str, str, str], typer.Option(metavar="HEAD RELATION TAIL", help="The triple.")
    ],
    k: Count = 10,
    as_json: Json = False,
) -> None:
    """The components that a triple uses, and the old triples that it would activate and why."""
    from dicgrl.learner import Learner
    from dicgrl.report.explain import explanation_tables

    found = Learner.load(folder, device="cpu").explain(*triple, k=k)
    if as_json:
        typer.echo(json.dumps(asdict(found)))
        return
    for table in explanation_tables(found):
        _console().print(table)


@app.command()
def info(folder: RunFolder, as_json: Json = False) -> None:
    """What a run is, and what each of its parts brought, cost and led to."""
    from dicgrl.report.summary import summary_table
    from dicgrl.store import run_folder

    found = run_folder.RunFolder(folder).overview()
    if as_json:
        typer.echo(json.dumps(found))
    else:
        _console().print(summary_table(found))


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path(
        "comparison.png"
    ),
    as_json: Json = False,
) -> None:
    """One table and one figure over several runs of one graph."""
    from dicgrl.report.continual import comparison_table, draw_curves
    from dicgrl.research.comparable import check_comparable
    from dicgrl.store import run_folder

    if out.suffix not in (".png", ".svg", ".pdf"):
        raise UserError(f"--out {out}: expected a name that ends with .png, .svg or .pdf")
    runs = [run_folder.RunFolder(folder).results() for folder in folders]
    if len({run["task"] for run in runs}) > 1:
        raise UserError("these runs are of different tasks; compare those of one task")
    for warning in check_comparable(folders):
        _warn(warning)
    draw_curves(runs, out)
    if as_json:
        typer.echo(json.dumps(runs))
        return
    _console().print(comparison_table(runs))
    _console().print(f"The curves are in {out}", soft_wrap=True)


@app.command()
def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table1 to table4, stats, curves, sensitivity, time, case, all, or films."
        ),
    ],
    recipe: RecipeName = "best",
    seeds: Seeds = 3,
    device: Device = "auto",
    out: Annotated[Path, typer.Option(help="Folder of finished runs and reports.")] = Path(
        "reproduced"
    ),
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time: 1 on a CPU, 3 on a GPU.", show_default=False),
    ] = None,
    changes: Changes = None,
    only: Annotated[
        str, typer.Option(help="Run only what has this in its name, such as 'cora gat'.")
    ] = "",
) -> None:
    """Measure the paper's tables and figures again; what is finished is not run again."""
    from dicgrl.report.progress import runs_bar
    from dicgrl.research.job import reproduce as run_targets
    from dicgrl.research.target import Options
    from dicgrl.research.targets import targets

    options = Options(recipe, seeds, tuple(changes or ()))
    with _interruptible(lambda: f"finished runs are in {out}; the same command goes on"):
        outcome, reports = run_targets(
            targets(target), options, out, only=only, device=device, jobs=jobs, watch=runs_bar
        )
    console = _console()
    for report, content in reports:
        for table in content.tables:
            console.print(table.rich())
        for note in content.notes:
            console.print(note, soft_wrap=True)
        console.print(f"Written to {out / report['name']}.md and .json", soft_wrap=True)
    if outcome.failed:
        for cell, reason in outcome.failed.items():
            _complain(f"{cell}: {reason}")
        raise typer.Exit(1)


@app.command()
def sweep(
    source: Source,
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=V1,V2",
            help="A setting and the values to try; 'KEY=V1;V2' where values have commas.",
        ),
    ],
    model: Model = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="frozen, lower, upper, ewc, emr, gem or dicgrl.", show_default=DEFAULT_STRATEGY
        ),
    ] = None,
    whole: Whole = False,
    disentangled: Disentangled = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, help="Try so many of the combinations, drawn at random; else all."),
    ] = None,
    seeds: Seeds = 1,
    recipe: RecipeName = "best",
    changes: Changes = None,
    study: Annotated[
        Path | None, typer.Option(help="SQLite file: resumes, and processes can share it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Recipe file (.toml) to write.")] = None,
    device: Device = "auto",
    valid: Valid = 0.0,
    test: Test = 0.0,
    as_json: Json = False,
) -> None:
    """Search for settings on validation data alone; the test sets are not read."""
    from dicgrl.jobs.sweep import forms, parse_grid, recipe_text, run_sweep
    from dicgrl.report.sweep import trials_table

    if out is not None and out.suffix != ".toml":
        raise UserError(f"--out {out}: expected a name that ends with .toml")
    strategy = _strategy(strategy, whole)
    stream = load_stream(source, valid=valid, test=test)
    model = model or default_model(stream.task)
    chosen = _recipe(stream, source, model, recipe, disentangled, changes, strategy)
    values = parse_grid(grid)
    _check_changes(changes, forms(chosen.settings, values))
    kept = "" if study is None else f"finished trials are in {study}; the same command goes on"
    with _interruptible(lambda: kept):
        found = run_sweep(
            stream,
            chosen,
            values,
            whole=whole,
            trials=trials,
            seeds=seeds,
            device=device,
            study=study,
        )
    if out is not None:
        with replacing_file(out) as temporary:
            temporary.write_text(recipe_text(found), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
        return
    _console().print(trials_table(found))
    if out is not None:
        _console().print(f"The best settings are in {out}", soft_wrap=True)


def _strategy(given: str | None, whole: bool) -> str | None:
    """What was asked for, or the default; None where all parts are merged."""
    if not whole:
        return DEFAULT_STRATEGY if given is None else given
    if given is not None:
        raise UserError(
            f"--strategy {given} says how later parts are learned; with --whole there are none: "
            "leave out one of the two"
        )
    return None


def _recipe(
    stream: dicgrl.Stream,
    source: str,
    model: str,
    name: str,
    disentangled: bool | None,
    changes: list[str] | None,
    strategy: str | None = None,
) -> Recipe:
    from dicgrl.models import BACKBONES, Scorer
    from dicgrl.recipes import Recipe, load_recipe
    from dicgrl.settings import NodeSettings
    from dicgrl.strategies import divides

    divided = divides(strategy) if disentangled is None else disentangled
    chosen = load_recipe(name, registered(source), model, disentangled=divided, strategy=strategy)
    settings = chosen.settings.parsed(changes or [])
    for key in ("model", "strategy"):
        if getattr(settings, key) != getattr(chosen.settings, key):
            raise UserError(f"--set {key}: use --{key} {getattr(settings, key)}")
    is_network = isinstance(stream, dicgrl.NetworkStream)
    if isinstance(settings, NodeSettings) != is_network:
        raise UserError(
            f"{model} predicts links, but {stream.name} is a network: use {' or '.join(BACKBONES)}"
            if is_network
            else f"{model} classifies nodes, but {stream.name} is a knowledge graph: use "
            + " or ".join(sorted(Scorer.registry))
        )
    return Recipe(chosen.name, settings, chosen.published)


def _check_changes(
    changes: list[str] | None, every: list[tuple[str, bool]], *, whole: bool = False
) -> None:
    """Refuse what was given by --set and none of the runs has a use for.

    What is learned after a run on the `whole` may well use the settings of later parts.
    """
    from dicgrl.settings import LATER, check_use

    names = [text.partition("=")[0].strip() for text in changes or []]
    check_use([name for name in names if not (whole and name in LATER)], every)


def _run_whole(
    stream: dicgrl.Stream,
    recipe: Recipe,
    seed: int,
    device: str,
    out: Path | None,
    as_json: bool,
) -> None:
    from dicgrl.jobs.merged import run_whole
    from dicgrl.report.progress import training_bar
    from dicgrl.report.tables import whole_table
    from dicgrl.store import run_folder

    if out is not None:
        run_folder.RunFolder(out).check_new()
    title = f"{stream.name} {recipe.settings.model}"
    with training_bar(title, recipe.settings.epochs, *_units(stream.task)) as monitor:
        results = run_whole(stream, recipe, seed=seed, device=device, out=out, monitor=monitor)
    if as_json:
        typer.echo(json.dumps(results))
    else:
        _console().print(whole_table(results))


def _run_parts(
    stream: dicgrl.Stream,
    recipe: Recipe,
    seed: int,
    device: str,
    out: Path | None,
    resume: bool,
    keep: str | None,
    show: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    from dicgrl.jobs.stream import run_stream
    from dicgrl.report.progress import parts_bar

    title = f"{stream.name} {recipe.settings.model} {recipe.settings.strategy}"
    with parts_bar(title, len(stream), *_units(stream.task)) as (on_epoch, pause):

        def on_part(results: dict[str, Any]) -> None:
            with pause():
                show(results)

        return run_stream(
            stream,
            recipe,
            seed=seed,
            device=device,
            out=out,
            resume=resume,
            keep=keep,
            on_part=on_part,
            on_epoch=on_epoch,
        )


@contextmanager
def _interruptible(kept: Callable[[], str]) -> Iterator[None]:
    """Say what is kept, should someone interrupt the work."""
    try:
        yield
    except KeyboardInterrupt:
        _complain("; ".join(filter(None, ["interrupted", kept()])))
        raise


def _kept_of(place: Path | None) -> str:
    """What an interrupted run leaves."""
    if place is None:
        return ""
    from dicgrl.store import run_folder

    if not run_folder.RunFolder(place).exists():
        return "no part was finished yet, and nothing is kept"
    return f"finished parts are in {place}; --resume goes on"


def _units(task: dicgrl.Task) -> tuple[str, str]:
    """Name of the validation metric, and what is counted per second."""
    links = task is dicgrl.Task.LINK_PREDICTION
    return ("MRR", "triples") if links else ("-loss", "nodes")


def _console() -> Console:
    # A pipe gets whole lines, whatever the width of the terminal behind it. Names and paths are
    # printed as they are: brackets and colons in them are no markup.
    width = None if is_terminal(sys.stdout) else 200
    return Console(width=width, markup=False, emoji=False, highlight=False)
