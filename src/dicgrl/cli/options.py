"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dicgrl.errors import UserError


def is_divided(disentangled: bool, plain: bool) -> bool | None:
    """What `--disentangled` and `--plain` say; None if neither is given."""
    if disentangled and plain:
        raise UserError("--disentangled and --plain: leave out one of the two")
    return disentangled if disentangled or plain else None


Source = Annotated[
    str, typer.Argument(help="A dataset's name, or the path or URL of your own data.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object for each line.")]
Valid = Annotated[
    float, typer.Option(help="Share to hold out for validation, if the data has none.")
]
Test = Annotated[float, typer.Option(help="Share to hold out for testing, if the data has none.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder (--out of run).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
TripleFile = Annotated[
    str, typer.Argument(help="Triples: head TAB relation TAB tail; - for standard input.")
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Skip lines with unknown labels.")
]
Count = Annotated[int, typer.Option("-k", min=1, help="How many answers.")]
RecipeName = Annotated[
    str,
    typer.Option(
        help="Named settings: best, paper, released (those of the authors' code), published "
        "(those of other published methods, where there are any), or a recipe file (.toml)."
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting (docs/settings.md); of one given twice, the last counts.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="rotate, transe, complex, distmult or convkb for links; gat or sage for nodes. "
        "By default rotate (transe for the known datasets), and gat for networks."
    ),
]
ModelOrRace = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="rotate, transe, complex, distmult or convkb for links, or auto, the winner of a "
        "short race; gat or sage for nodes. By default rotate (transe for the known datasets), "
        "and gat for networks.",
    ),
]
Merged = Annotated[
    bool,
    # --whole is an older spelling that scripts may use.
    typer.Option("--merged", "--whole", help="Merge all parts into one static graph."),
]
Disentangled = Annotated[
    bool,
    typer.Option("--disentangled", help="Divide vectors into components, as dicgrl does anyway."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Do not divide vectors into components.")]
Seeds = Annotated[int, typer.Option(min=1, max=10_000, help="How many seeds.")]
At = Annotated[
    str | None, typer.Option(metavar="VERSION", help="A version or tag; by default the newest.")
]
Message = Annotated[str, typer.Option("--message", "-m", help="A message for the version.")]
Wait = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long to wait for another process that is writing."
    ),
]
Evaluate = Annotated[
    str,
    typer.Option(help="What to measure afterwards: sample (of large test sets), all, or none."),
]
Protocol = Annotated[
    str,
    typer.Option(
        help="How test sets are ranked: seen (among all entities seen so far), or snapshot (in "
        "addition, among those known by the test set's own part)."
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        help="Which versions keep their model: all, last, or a number (30: the newest 30).",
        show_default="all, or as the run was started",
    ),
]
