"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    str, typer.Argument(help="A dataset's name, or the path or URL of your own data.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Valid = Annotated[float, typer.Option(help="Share set aside for validation, where there is none.")]
Test = Annotated[float, typer.Option(help="Share set aside for testing, where there is none.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of every random choice.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run (--out).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
TripleFile = Annotated[
    str, typer.Argument(help="Triples: head TAB relation TAB tail; - for standard input.")
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out lines with a label that is not known.")
]
Count = Annotated[int, typer.Option("-k", min=1, help="How many answers.")]
RecipeName = Annotated[
    str,
    typer.Option(
        help="Named settings: best, paper, released (as the authors' code), published (what rivals "
        "of LKGE's streams have), or a recipe file (.toml)."
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting (docs/settings.md)."),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="rotate, transe, complex, distmult, convkb for links; gat, sage for nodes. Known "
        "graphs are learned by transe, yours by rotate, networks by gat unless given."
    ),
]
ModelOrRace = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="rotate, transe, complex, distmult, convkb for links, or auto: the winner of a short "
        "race; gat, sage for nodes. Known graphs are learned by transe, yours by rotate, networks "
        "by gat unless given.",
    ),
]
Merged = Annotated[
    bool,
    # --whole is an older spelling that scripts may use.
    typer.Option(
        "--merged", "--whole", help="All parts merged: the setting that is not continual."
    ),
]
Disentangled = Annotated[
    bool | None,
    typer.Option(
        "--disentangled/--plain",
        help="Divide vectors into components, as dicgrl always does.",
        show_default=False,
    ),
]
Seeds = Annotated[int, typer.Option(min=1, max=10_000, help="How many seeds.")]
At = Annotated[
    str | None, typer.Option(metavar="VERSION", help="A version or tag; the newest unless given.")
]
Message = Annotated[str, typer.Option("--message", "-m", help="What to say of the version.")]
Wait = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Wait for another process that writes.")
]
Evaluate = Annotated[
    str,
    typer.Option(
        help="What to measure then: a sample of the test sets where they are large, all, or none."
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        help="How test sets are ranked: seen (among all entities seen so far), or snapshot beside "
        "it (also among those of the test set's own part)."
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        help="Whose models stay in the folder: of all versions, of the last, or of so many.",
        show_default="all, or as the run was begun",
    ),
]
