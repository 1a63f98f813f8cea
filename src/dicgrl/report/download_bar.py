"""The progress bar of a download; quiet if there is no terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from dicgrl.datasets.fetch import Progress as DownloadProgress
from dicgrl.report.terminal import is_terminal


@contextlib.contextmanager
def download_bar(name: str, files: int) -> Iterator[DownloadProgress]:
    """Show a bar on the terminal while a download reports to what this yields."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        disable=not is_terminal(sys.stderr),
    ) as bar:
        task = bar.add_task(name, total=None)
        begun: list[str] = []

        def update(file: str, done: int, total: int | None) -> None:
            if file not in begun:
                begun.append(file)
            text = f"{name}/{file} ({len(begun)} of {files})"
            bar.update(task, description=text, completed=done, total=total)

        yield update
