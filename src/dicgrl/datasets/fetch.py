"""Downloads published datasets into the cache: resumable, verified, published in one step.

Files are collected in a hidden staging folder beside their final place. A file that is complete
there is not asked for again, a partial one is continued, and none grows beyond the size of what is
published. Only when the whole dataset reads well, its counts are those published and its files
hold what was pinned (`datasets/pins.py`) does the folder get its name.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from typing_extensions import override

from dicgrl.common.atomic import publish_folder
from dicgrl.common.locks import locked
from dicgrl.datasets.locate import cache_folder
from dicgrl.datasets.pins import digest_of
from dicgrl.datasets.published import Published
from dicgrl.errors import FailureError, UserError, shown
from dicgrl.graph import describe
from dicgrl.readers import read_stream

SOURCE_VARIABLE = "DICGRL_SOURCE"
Progress = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all if known
_ATTEMPTS = 3
_PAUSE = 0.5  # seconds before the second attempt, doubled before each further one
_CHUNK = 1 << 16
_MOST = 1 << 30  # bytes of a file whose size is not pinned
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", re.ASCII)  # of Content-Range


class _IncompleteError(Exception):
    """A transfer ended early; what came is kept and can be continued."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to web addresses alone; Python would also go on by FTP."""

    @override
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not _is_web_address(newurl):
            raise FailureError(f"{req.full_url}: the server redirects to {shown(newurl)}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(dataset: Published, progress: Progress | None = None, *, timeout: float = 30.0) -> Path:
    """Bring a dataset into the cache and return its folder; nothing is done if it is there.

    Args:
        dataset: What to download.
        progress: Called while bytes arrive.
        timeout: Seconds without an answer after which an attempt is given up.

    Raises:
        FailureError: The source does not answer, does not have a file, or sends something else.
        BusyError: Another process is fetching it.
    """
    target = cache_folder() / dataset.name
    if target.exists():
        return target
    staging = target.with_name(f".{dataset.name}.partial")
    base = source_address(dataset).rstrip("/")
    # Not the staging folder itself: it is renamed while it is locked, which Windows refuses.
    with locked(target.with_name(f".{dataset.name}.lock")):
        if target.exists():  # another process was faster
            return target
        for file in dataset.files:
            place = staging / file
            if not place.exists():
                pin = dataset.pins.get(file)
                most = pin.most if pin else _MOST
                address = f"{base}/{dataset.folder}/{file}"
                _download(address, place, file, most, progress, timeout)
        try:
            _verify(dataset, staging)
        except FailureError:
            shutil.rmtree(staging)  # complete but wrong: continuing from it would never end well
            raise
        publish_folder(staging, target)
    return target


def source_address(dataset: Published) -> str:
    """Where files come from: `DICGRL_SOURCE` (a mirror), or the authors' repository."""
    address = os.environ.get(SOURCE_VARIABLE) or dataset.address
    if not _is_web_address(address):
        raise UserError(f"{SOURCE_VARIABLE} is {shown(address)}; expected an http or https address")
    return address


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        # A port that is none is found when it is asked for.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _verify(dataset: Published, staging: Path) -> None:
    try:
        found = dataset.differences(describe(read_stream(staging, name=dataset.name)))
    except UserError as error:
        raise FailureError(
            f"what was downloaded for {dataset.name} is damaged and was removed: {error}"
        ) from error
    if found:
        raise FailureError(
            f"what was downloaded for {dataset.name} is not the published dataset and was removed: "
            f"{found[0]}" + (f" (and {len(found) - 1} more differences)" if found[1:] else "")
        )
    for file, pin in dataset.pins.items():
        with (staging / file).open("rb") as content:
            if digest_of(content) != pin.digest:
                raise FailureError(
                    f"what was downloaded for {dataset.name} is not the published dataset and was "
                    f"removed: {file} has the right counts but different content"
                )


def _download(
    address: str, place: Path, file: str, most: int, progress: Progress | None, timeout: float
) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.part")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _transfer(address, partial, file, most, progress, timeout)
            partial.rename(place)
            return
        except FailureError:  # of no use to ask for again, and of none to continue
            partial.unlink(missing_ok=True)
            raise
        except urllib.error.HTTPError as error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                partial.unlink(missing_ok=True)  # longer than the file itself: start again
                reason = "the partial file does not fit"
            elif error.code < 500 and error.code != http.client.TOO_MANY_REQUESTS:
                raise FailureError(f"{address}: the server answered {error.code}") from error
            else:
                reason = f"the server answered {error.code}"
        # Values and ports of no sense: of an address to which a server leads.
        except (
            _IncompleteError, OSError, http.client.HTTPException, ValueError, OverflowError
        ) as error:  # fmt: skip
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt < _ATTEMPTS:
            time.sleep(_PAUSE * 2 ** (attempt - 1))
    raise FailureError(
        f"{address}: {reason}, {_ATTEMPTS} times; what has arrived is kept, run the command again"
    )


def _transfer(
    address: str, partial: Path, file: str, most: int, progress: Progress | None, timeout: float
) -> None:
    done = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(address, headers={"User-Agent": "dicgrl"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    opener = urllib.request.build_opener(_Redirects)
    with opener.open(request, timeout=timeout) as response:
        whole = None
        if response.status == http.client.PARTIAL_CONTENT:
            sent = _RANGE.match(response.headers.get("Content-Range", ""))
            if sent is None or int(sent[1]) != done:
                partial.unlink(missing_ok=True)
                raise _IncompleteError("the server sent another range than it was asked for")
            whole = None if sent[2] == "*" else int(sent[2])
        else:
            done = 0  # all of the file, even where a range was asked for
        length = response.headers.get("Content-Length")
        if length is not None and not _LENGTH.fullmatch(length):
            raise _IncompleteError(f"the server sent {shown(length)} as the length of the file")
        total = whole or (done + int(length) if length else None)
        _check_size(address, max(done, total or 0), most)
        with partial.open("ab" if done else "wb") as out:
            while chunk := response.read(_CHUNK):
                done += len(chunk)
                _check_size(address, done, most)
                out.write(chunk)
                if progress:
                    progress(file, done, total)
    if total is not None and done != total:
        raise _IncompleteError(f"the transfer ended after {done:,} of {total:,} bytes")


def _check_size(address: str, size: int, most: int) -> None:
    if size > most:
        raise FailureError(
            f"{address}: the server sends more than {most:,} bytes, which the file cannot have"
        )
