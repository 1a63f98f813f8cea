"""What the files of the paper's datasets hold: a digest and a size of each, pinned here.

A digest is of the fields of a file, not of its bytes: blanks between fields and line ends may
differ, as they do after some ways of packing. `scripts/pin_datasets.py` writes the list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import BinaryIO, NamedTuple

PINS_FILE = "pins.tsv"


class Pin(NamedTuple):
    """What one file holds.

    Attributes:
        digest: SHA-256 of its fields, see `digest_of`.
        size: Its bytes in the authors' layout.
    """

    digest: str
    size: int

    @property
    def most(self) -> int:
        """Bytes that it may take, with other blanks and line ends."""
        return 2 * self.size + 4096


def digest_of(file: BinaryIO) -> str:
    r"""SHA-256 of a file's lines, fields with TAB between them; blank lines at the end left out.

    Example:
        >>> import io
        >>> digest_of(io.BytesIO(b"a  b\r\nc d\r\n\r\n")) == digest_of(io.BytesIO(b"a\tb\nc\td"))
        True
    """
    found = hashlib.sha256()
    blank = 0
    for line in file:
        fields = line.split()
        if not fields:
            blank += 1
            continue
        found.update(b"\n" * blank + b"\t".join(fields) + b"\n")
        blank = 0
    return found.hexdigest()


@cache
def pins_of(dataset: str) -> Mapping[str, Pin]:
    """The pins of a dataset's files by their paths in it; none of an unknown one.

    Example:
        >>> pins_of("cora")["0/train.txt"].size > 0
        True
    """
    text = (files("dicgrl.datasets") / PINS_FILE).read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        digest, size, path = line.split("\t")
        name, _, file = path.partition("/")
        if name == dataset:
            found[file] = Pin(digest, int(size))
    return found
