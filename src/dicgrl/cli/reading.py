"""What commands say of how files of facts are read, in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from dicgrl.readers import Reading

Columns = Annotated[
    str,
    typer.Option(
        metavar="HEAD,RELATION,TAIL",
        help="Columns of a table, by name or number; optionally followed by those of times and of "
        "weights (which are not read).",
        show_default="from the header",
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--sep", metavar="SIGN", help="Separator of fields.", show_default="TAB; .csv: comma"
    ),
]
FormatName = Annotated[
    str,
    typer.Option(
        "--format",
        help="csv, tsv, jsonl, parquet, arrow, nt, nq, ttl, rdf, ... (docs/data.md).",
        show_default="by the ending",
    ),
]
Query = Annotated[
    str,
    typer.Option(
        metavar="QUERY",
        help="Query for the facts: SQL for a database, SPARQL for an endpoint.",
        show_default=False,
    ),
]
Literals = Annotated[str, typer.Option(help="RDF literals: drop, or keep as entities.")]
TimeFormat = Annotated[
    str,
    typer.Option(help="Format of times, such as %d.%m.%Y; or unit of numbers: s, ms, us, ns."),
]
AS_IT_IS = Reading()
_OPTIONS: dict[str, tuple[Any, str]] = {
    "columns": (Columns, ""),
    "sep": (Separator, ""),
    "file_format": (FormatName, ""),
    "query": (Query, ""),
    "literals": (Literals, "drop"),
    "time_format": (TimeFormat, ""),
}


def reads_facts(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that make a `Reading`, in the place of its argument `reading`."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        said = {name: given.pop(name) for name in _OPTIONS}
        reading = Reading(format=said.pop("file_format"), **said)
        command(reading=reading, **given)

    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name != "reading":
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        for name, (annotation, default) in _OPTIONS.items():
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called
