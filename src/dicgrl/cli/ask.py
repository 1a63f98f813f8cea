"""Questions to a run: predict, similar, score, evaluate, explain, export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicgrl.cli.console import show, show_json, warn_of_unknown
from dicgrl.cli.options import (
    At,
    Count,
    Device,
    Json,
    JsonLines,
    Protocol,
    RunFolder,
    SkipUnknown,
    TripleFile,
)
from dicgrl.cli.reading import AS_IT_IS, reads_facts
from dicgrl.errors import UserError, shown
from dicgrl.readers import Reading
from dicgrl.readers.remote import short_name

DEFAULT_EXPORT = "arrays"
_SCORED = ("head", "relation", "tail", "score", "probability")

if TYPE_CHECKING:  # PyTorch is imported by the commands that need it
    from dicgrl.ask.asking import Answered
    from dicgrl.learner import Learner


@reads_facts
def predict(
    folder: RunFolder,
    head: Annotated[str | None, typer.Option(help="Label or name of the head.")] = None,
    relation: Annotated[str | None, typer.Option(help="Label or name of the relation.")] = None,
    tail: Annotated[str | None, typer.Option(help="Label or name of the tail.")] = None,
    node: Annotated[
        str | None, typer.Option(help="A node of a network, to ask for its class.")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Another field of the question, for tasks of your own."
        ),
    ] = None,
    k: Count = 10,
    new: Annotated[bool, typer.Option("--new", help="Leave out known facts.")] = False,
    among: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|TYPE",
            help="Only answers among these entities: a file with one label per line; or by where "
            "they occur: seen (at the asked end of the relation), heads:RELATION or "
            "tails:RELATION.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            help="Many questions, one per line: head TAB relation TAB tail with ? for one of them "
            "(or nothing), or a node; - for standard input. Answers are lines on standard output, "
            "or with --json one object per question."
        ),
    ] = None,
    reading: Reading = AS_IT_IS,
    skip_unknown: SkipUnknown = False,
    at: At = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Answer a question: give two of head, relation and tail, and get the third."""
    from dicgrl.ask.lines import answered, choosing_among
    from dicgrl.report.answers_table import answers_table

    if among == file == "-":
        raise UserError("standard input cannot hold both the questions and the candidates")
    asking = _loaded(folder, device, at).ask
    unknown: list[None] = []
    on_unknown = partial(unknown.append, None) if skip_unknown else None
    if among is not None:
        asking = choosing_among(asking.for_links("--among"), among, on_unknown)
    question = {"head": head, "relation": relation, "tail": tail, "node": node, **_about(about)}
    if file is not None:
        if any(text is not None for text in question.values()):
            raise UserError("--file holds the questions; leave out the others")
        questions = answered(asking, file, k, new=new, reading=reading, on_unknown=on_unknown)
        _predict_all(questions, as_json)
        warn_of_unknown(len(unknown))
        return
    if reading != AS_IT_IS:
        raise UserError("--columns, --sep, --format and such say how to read --file")
    warn_of_unknown(len(unknown))
    answers = asking.predict(k=k, new=new, **question)
    if as_json:
        show_json([asdict(answer) for answer in answers])
        return
    other = "new" if asking.has_new_answers else ""
    show(answers_table(asking.describe(question), answers, other, asking.note(question)))


def _about(texts: list[str] | None) -> dict[str, str]:
    """Fields of a question from `KEY=VALUE` texts."""
    for text in texts or []:
        if "=" not in text:
            raise UserError(f"--about {shown(text)}: expected KEY=VALUE")
    return dict(text.split("=", 1) for text in texts or [])


def _predict_all(questions: Iterator[Answered], as_json: bool) -> None:
    from dicgrl.ask.links import ASKED_TEXT
    from dicgrl.report.answers_table import state_of

    for question, answers in questions:
        if as_json:
            show_json({"question": question, "answers": [asdict(answer) for answer in answers]})
            continue
        for answer in answers:
            fields = [answer.label if field == ASKED_TEXT else field for field in question]
            fields += [answer.label] if len(question) == 1 else []
            other = "new" if len(question) > 1 else ""
            said = "" if answer.probability is None else f"{answer.probability:.6g}"
            cells = [*fields, f"{answer.score:.6g}", state_of(answer, other), said]
            typer.echo("\t".join(cells))


def similar(
    folder: RunFolder,
    entity: Annotated[str, typer.Argument(help="Label or name of an entity, or of a node.")],
    k: Count = 10,
    component: Annotated[
        int | None, typer.Option(min=0, help="Compare only this component, counted from 0.")
    ] = None,
    at: At = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Find entities or nodes with similar vectors, by cosine."""
    from dicgrl.report.answers_table import answers_table

    found = _loaded(folder, device, at).similar(entity, k=k, component=component)
    if as_json:
        show_json([{"label": x.label, "name": x.name, "cosine": x.score} for x in found])
    else:
        show(answers_table(f"similar to {entity}", found, ""))


@reads_facts
def score(
    folder: RunFolder,
    file: TripleFile,
    probability: Annotated[
        bool,
        typer.Option(
            "--probability", help="Add probabilities (slower: all candidates are scored)."
        ),
    ] = False,
    reading: Reading = AS_IT_IS,
    skip_unknown: SkipUnknown = False,
    at: At = None,
    device: Device = "auto",
    as_json: JsonLines = False,
) -> None:
    """Score triples: print each line with its score."""
    from dicgrl.ask.lines import read_lines, scored
    from dicgrl.report.progress_bars import at_work

    asking = _loaded(folder, device, at).ask.for_links("score")
    with at_work(f"{folder} score {short_name(file)}"):
        lines = read_lines(asking, file, skip=skip_unknown, reading=reading)
        warn_of_unknown(lines.unknown)
        for row in scored(asking, lines, probability=probability):
            if as_json:
                show_json(dict(zip(_SCORED, row, strict=False)))
            else:
                typer.echo("\t".join([*row[:3], *(f"{value:.6g}" for value in row[3:])]))


@reads_facts
def evaluate(
    folder: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Triples: head TAB relation TAB tail; - for standard input. By default the run's "
            "test sets.",
            show_default=False,
        ),
    ] = None,
    by_relation: Annotated[
        bool, typer.Option("--by-relation", help="Also show results by relation and side.")
    ] = False,
    reading: Reading = AS_IT_IS,
    skip_unknown: SkipUnknown = False,
    protocol: Protocol = "seen",
    at: At = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Measure how well a run's model finds your own triples, or its test sets."""
    from dicgrl.ask.lines import read_lines
    from dicgrl.report.evaluation_table import evaluation_table, tests_table
    from dicgrl.report.progress_bars import at_work

    if file is None:
        if by_relation or skip_unknown:
            raise UserError("--by-relation and --skip-unknown are about triples in a file")
        measured = _loaded(folder, device, at)
        with at_work(f"{folder} evaluate"):
            evaluation = measured.evaluate(protocol=protocol)
        if as_json:
            protocols = measured.strategy.describe_protocol(measured.trainer)
            show_json(asdict(evaluation) | {"protocol": protocols})
        else:
            show(tests_table(str(folder), evaluation))
        return
    if protocol != "seen":
        raise UserError(
            f"--protocol {shown(protocol)} is about the test sets of parts: leave out {file}"
        )
    asking = _loaded(folder, device, at).ask.for_links("evaluate")
    with at_work(f"{folder} evaluate {short_name(file)}"):
        lines = read_lines(asking, file, skip=skip_unknown, reading=reading)
        found = asking.measure_rows(lines.ids, by_relation=by_relation) | {"unknown": lines.unknown}
    if as_json:
        show_json(found)
    else:
        show(evaluation_table(str(file), found))


def export(
    folder: RunFolder,
    to: Annotated[
        Path, typer.Option(help="Folder to write, or, with --index and --since, to update.")
    ],
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME,...",
            help="arrays (safetensors and .npy), safetensors (with a model card), npy, parquet, "
            "word2vec.",
        ),
    ] = DEFAULT_EXPORT,
    index: Annotated[
        str | None,
        typer.Option(metavar="usearch|faiss|lance", help="Write a vector index instead."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Only rows that changed since that version, ready to upsert; with --index they "
            "update the existing index.",
        ),
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Neighbours per row in Parquet; 0 for none.",
            show_default="10, up to 20,000 rows",
        ),
    ] = None,
    license_name: Annotated[
        str, typer.Option("--license", help="Licence in the model card, such as cc0-1.0.")
    ] = "",
    at: At = None,
    as_json: Json = False,
) -> None:
    """Write vectors and labels for other programs, or a vector index."""
    from dicgrl.jobs.export import export_run
    from dicgrl.report.progress_bars import at_work

    with at_work(f"{folder} export"):
        names = export_run(
            folder,
            to,
            format=file_format,
            index=index,
            since=since,
            at=at,
            neighbours=neighbours,
            license=license_name,
        )
    if as_json:
        show_json({"to": str(to), "files": names})
    else:
        show(f"{to}: {', '.join(names)}")


def explain(
    folder: RunFolder,
    triple: Annotated[
        tuple[str, str, str], typer.Option(metavar="HEAD RELATION TAIL", help="The triple.")
    ],
    k: Count = 10,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Explain why a triple is likely: the known facts that support it."""
    from dicgrl.report.explanation_table import explanation_tables

    found = _loaded(folder, "cpu", at).explain(*triple, k=k)
    if as_json:
        show_json(asdict(found))
        return
    for table in explanation_tables(found):
        show(table)


def _loaded(folder: Path, device: str, at: str | None) -> Learner:
    from dicgrl.learner import Learner

    return Learner.load(folder, at=at, device=device)
