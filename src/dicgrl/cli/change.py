"""`dicgrl forget`, `replace`, `rename`, `merge`, `revise`, `retrain`: what was learned changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_changes
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicgrl.cli.console import interruptible, show, show_json, warn
from dicgrl.cli.options import (
    Device,
    Evaluate,
    Json,
    Keep,
    Message,
    RunFolder,
    Wait,
)
from dicgrl.cli.reading import AS_IT_IS, reads_facts
from dicgrl.errors import UserError
from dicgrl.readers import Reading
from dicgrl.readers.remote import short_name
from dicgrl.report.terminal import counted

if TYPE_CHECKING:  # PyTorch is imported by the commands that need it
    from dicgrl.jobs.change import ChangeOutcome
    from dicgrl.jobs.changing import ChangeOptions

_FACTS = (
    "Triples (head TAB relation TAB tail); for a network, two columns: an edge, or a node and its "
    "class. Or data in any layout of docs/data.md; - for standard input."
)
Of = Annotated[
    str | None,
    typer.Option(
        help="What the labels are of: entities, relations, nodes or classes.",
        show_default="found by label",
    ),
]
PairFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Pairs of labels, one per line, separated by TAB; - for standard input.",
    ),
]


@reads_facts
def forget(
    folder: RunFolder,
    facts: Annotated[str, typer.Argument(help=_FACTS)],
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    message: Message = "",
    reading: Reading = AS_IT_IS,
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Take facts back and unlearn them."""
    from dicgrl.jobs.change import forget_facts
    from dicgrl.jobs.changing import ChangeOptions

    def change(options: ChangeOptions) -> ChangeOutcome:
        return forget_facts(folder, facts, options)

    options = ChangeOptions(device, keep, evaluate, message, wait, reading)
    _made(folder, f"forget {short_name(facts)}", change, options, as_json)


@reads_facts
def replace(
    folder: RunFolder,
    old: Annotated[str, typer.Argument(help=f"Facts to forget. {_FACTS}")],
    new: Annotated[str, typer.Argument(help="Facts to learn in their place, as for learn.")],
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    message: Message = "",
    reading: Reading = AS_IT_IS,
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Take facts back and learn others in their place, as one change."""
    from dicgrl.jobs.change import replace_facts
    from dicgrl.jobs.changing import ChangeOptions

    if str(old) == str(new) == "-":
        raise UserError("standard input cannot hold both the old and the new facts")

    def change(options: ChangeOptions) -> ChangeOutcome:
        return replace_facts(folder, old, new, options)

    options = ChangeOptions(device, keep, evaluate, message, wait, reading)
    _made(folder, f"replace {short_name(old)}", change, options, as_json)


def rename(
    folder: RunFolder,
    old: Annotated[str | None, typer.Argument(help="Label or name.")] = None,
    new: Annotated[str | None, typer.Argument(help="The new label.")] = None,
    file: PairFile = None,
    of: Of = None,
    keep: Keep = None,
    message: Message = "",
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Rename entities, relations, nodes or classes."""
    from dicgrl.jobs.change import rename_labels
    from dicgrl.jobs.changing import ChangeOptions

    pairs = _pairs(old, new, file)

    def change(options: ChangeOptions) -> ChangeOutcome:
        return rename_labels(folder, pairs, of, options)

    options = ChangeOptions("cpu", keep, "none", message, wait)
    _made(folder, "rename", change, options, as_json)


def merge(
    folder: RunFolder,
    kept: Annotated[str | None, typer.Argument(help="Label or name of the one to keep.")] = None,
    gone: Annotated[
        str | None, typer.Argument(help="Label or name of the one to merge into it.")
    ] = None,
    file: PairFile = None,
    of: Of = None,
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    message: Message = "",
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Merge two entities, relations, nodes or classes into one."""
    from dicgrl.jobs.change import merge_labels
    from dicgrl.jobs.changing import ChangeOptions

    pairs = _pairs(kept, gone, file)

    def change(options: ChangeOptions) -> ChangeOutcome:
        return merge_labels(folder, pairs, of, options)

    options = ChangeOptions(device, keep, evaluate, message, wait)
    _made(folder, "merge", change, options, as_json)


def revise(
    folder: RunFolder,
    nodes: Annotated[
        Path,
        typer.Argument(
            help="Lines with a node and its class, or a table like nodes.csv: node, class, "
            "features; - for standard input."
        ),
    ],
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    message: Message = "",
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Change classes or features of known nodes of a network."""
    from dicgrl.jobs.change import revise_nodes
    from dicgrl.jobs.changing import ChangeOptions

    def change(options: ChangeOptions) -> ChangeOutcome:
        return revise_nodes(folder, nodes, options)

    options = ChangeOptions(device, keep, evaluate, message, wait)
    _made(folder, f"revise {nodes.name}", change, options, as_json)


def retrain(
    folder: RunFolder,
    evaluate: Evaluate = "sample",
    keep: Keep = None,
    message: Message = "",
    wait: Wait = 0.0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train a new model on everything a run knows; facts, ids, tags and versions stay."""
    from dicgrl.jobs.change import retrain_run
    from dicgrl.jobs.changing import ChangeOptions

    def change(options: ChangeOptions) -> ChangeOutcome:
        return retrain_run(folder, options)

    options = ChangeOptions(device, keep, evaluate, message, wait)
    _made(folder, "retrain", change, options, as_json)


def _pairs(first: str | None, second: str | None, file: Path | None) -> list[tuple[str, str]]:
    from dicgrl.jobs.change import pairs_in

    if file is not None and first is None:
        return pairs_in(file)
    if file is not None or first is None or second is None:
        raise UserError("give two labels, or --file with a pair of them in each line")
    return [(first, second)]


def _made(
    folder: Path,
    title: str,
    change: Callable[[ChangeOptions], ChangeOutcome],
    options: ChangeOptions,
    as_json: bool,
) -> None:
    """Make a change behind a progress bar, and say what it did."""
    from dicgrl.jobs.learn import task_of
    from dicgrl.report.progress_bars import parts_bar, units

    bar = parts_bar(f"{folder} {title}", 1, *units(task_of(folder)))
    with interruptible(lambda: f"{folder} is as it was before"), bar as (on_epoch, _):
        outcome = change(with_changes(options, on_epoch=on_epoch))
    details = outcome.report.details
    if unknown := details.get("unknown"):
        warn(f"{counted(unknown, 'fact')} not known, and skipped")
    if as_json:
        show_json(outcome.results)
        return
    from dicgrl.report.outcome_tables import changed_table

    show(changed_table(outcome))
