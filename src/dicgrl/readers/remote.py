"""Chooses how to read facts from a URL: a SPARQL endpoint, or a database by ADBC or SQLAlchemy.

Each is a `Format` that reads from a server instead of a file: see `endpoint.py`, `adbc.py` and
`database.py` in `readers/formats`.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from dicgrl.errors import UserError, shown
from dicgrl.readers.formats.adbc import PREFIX, Adbc
from dicgrl.readers.formats.database import Database
from dicgrl.readers.formats.endpoint import Endpoint
from dicgrl.readers.reading import Reading, as_reading
from dicgrl.readers.sources import SourceFile

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET = re.compile(r"(//[^:/@]*):[^@/]*@")
_COMMENTS = re.compile(r"<[^>]*>|\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")
_FORM = re.compile(r"\b(select|construct|describe|ask)\b", re.IGNORECASE)


def is_url(place: object) -> bool:
    """Whether a text is a URL rather than a path.

    Example:
        >>> is_url("https://query.wikidata.org/sparql"), is_url("facts.tsv")
        (True, False)
    """
    return _URL.match(str(place)) is not None


def short_name(place: str | Path) -> str:
    """What a path or a URL is called in a line, without a password.

    Example:
        >>> short_name("data/facts.tsv"), short_name("postgresql://me:secret@host/facts")
        ('facts.tsv', 'postgresql://me:***@host/facts')
    """
    text = str(place)
    return _SECRET.sub(r"\1:***@", text) if is_url(text) else Path(text).name


def remote_file(url: str, reading: Reading | None = None) -> SourceFile:
    """What a URL gives, as a file to read.

    Raises:
        UserError: The URL is of nothing that is read, or there is no query for it.
    """
    reading = as_reading(reading)
    scheme = url.partition(":")[0].lower()
    label = short_name(url)
    if scheme in ("http", "https"):
        return _endpoint(url, label, reading)
    if scheme in ("file", "ftp", "s3", "gs"):
        raise UserError(f"{label}: expected a path, an http or https address, or a database's URL")
    if scheme == "sqlite":  # the standard library reads it, and cannot write to it
        path = Path(url.split("://", 1)[1].removeprefix("/"))
        if not path.is_file():
            raise UserError(f"{path}: no such file")
        return SourceFile.on_disk(path, replace(reading, format="sqlite"))
    reader = Adbc(url) if url.lower().startswith(PREFIX) else Database(url)
    return SourceFile(label, io.BytesIO, reading, reader)


def _endpoint(url: str, label: str, reading: Reading) -> SourceFile:
    if not reading.query:
        raise UserError(
            f"{label}: say what to ask the endpoint, as in --query "
            "'SELECT ?head ?relation ?tail WHERE { ?head ?relation ?tail }'"
        )
    bare = _COMMENTS.sub(" ", reading.query)
    form = _FORM.search(bare)
    if form is None or form[1].lower() == "ask":
        raise UserError(f"--query {shown(reading.query)}: expected SELECT or CONSTRUCT")
    reader = Endpoint(url, is_table=form[1].lower() == "select")
    return SourceFile(label, io.BytesIO, reading, reader)
