"""Versions of a run: log, diff, tag, restore; verify, compact, backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicgrl.cli.console import complain, show, show_json
from dicgrl.cli.options import At, Json, Keep, Message, RunFolder, Wait
from dicgrl.errors import UserError
from dicgrl.report.terminal import counted

if TYPE_CHECKING:  # PyTorch is imported by the commands that need it
    from dicgrl.store.run_folder import RunFolder as Folder


def log(folder: RunFolder, as_json: Json = False) -> None:
    """List the versions of a run, the newest last."""
    from dicgrl.report.versions_table import log_table

    found = _folder(folder).log()
    if as_json:
        show_json(found)
    else:
        show(log_table(str(folder), found))


def diff(
    folder: RunFolder,
    before: Annotated[str, typer.Argument(metavar="A", help="A version or tag.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    k: Annotated[int, typer.Option("-k", min=0, help="How many facts and rows to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Show what changed between two versions: facts, labels, and how far vectors moved."""
    from dicgrl.jobs.versions import difference
    from dicgrl.report.versions_table import diff_tables

    found = difference(folder, before, after, k=k)
    if as_json:
        show_json(found)
        return
    for table in diff_tables(found):
        show(table)


def tag(
    folder: RunFolder,
    name: Annotated[str, typer.Argument(help="The tag.")],
    at: At = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the tag.")] = False,
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Name a version; its model is then kept, whatever --keep says."""
    if delete and at is not None:
        raise UserError("--delete removes a tag from whichever version has it; leave out --at")
    run = _folder(folder)
    number = run.untag(name, wait) if delete else run.tag(name, at, wait)
    if as_json:
        show_json({"version": number, "tag": name, "deleted": delete})
    else:
        show(f"{folder}: version {number} is {'no longer ' if delete else ''}{name}")


def restore(
    folder: RunFolder,
    version: Annotated[str, typer.Argument(help="A version or tag.")],
    message: Message = "",
    wait: Wait = 0.0,
    as_json: Json = False,
) -> None:
    """Make a new version with the content of an earlier one; nothing is lost."""
    number = _folder(folder).restore(version, message, wait)
    if as_json:
        show_json({"version": number, "restored": version})
    else:
        show(f"{folder}: version {number} is what {version} was")


def verify(folder: RunFolder, as_json: Json = False) -> None:
    """Check every checksum, id, count and link; exit code 1 if something is damaged."""
    from dicgrl.jobs.versions import verified

    found = verified(folder)
    if as_json:
        show_json(found.as_dict())
    else:
        state = "clean" if found.clean else "damaged"
        there = ", ".join(map(str, found.restorable)) or "none"
        show(f"{folder}: {state}; {counted(found.versions, 'version')}, with a model: {there}")
        for line in found.damage:
            complain(line)
    if not found.clean:
        raise typer.Exit(1)


def compact(folder: RunFolder, keep: Keep = None, wait: Wait = 0.0, as_json: Json = False) -> None:
    """Write the newest model as one file, and delete models that are not needed."""
    from dicgrl.jobs.versions import compacted

    found = compacted(folder, keep, wait)
    if as_json:
        show_json(found)
        return
    before, after = (f"{found[name] / 1e6:,.1f} MB" for name in ("bytes_before", "bytes"))
    show(f"{folder}: {before}, now {after}")


def backup(
    folder: RunFolder,
    to: Annotated[Path, typer.Argument(metavar="DEST", help="A new folder.")],
    as_json: Json = False,
) -> None:
    """Copy a run as it is at one moment, even while others write to it."""
    number = _folder(folder).backup(to)
    if as_json:
        show_json({"version": number, "to": str(to)})
    else:
        show(f"{to}: version {number} and those before")


def _folder(path: Path) -> Folder:
    from dicgrl.store.run_folder import RunFolder as Folder

    return Folder(path)
