"""Limits the unpacked size of a file, so that a small compressed file cannot fill the memory.

The bytes that are read are counted; sizes that a file declares are not trusted.
"""

from __future__ import annotations

import io
import math
import os
from typing import BinaryIO

from typing_extensions import override

from dicgrl.common.memory import free_on_host
from dicgrl.errors import DataError, UserError, shown

UNPACKED_VARIABLE = "DICGRL_MAX_UNPACKED"
_BLOCK = 1 << 20  # most bytes to read at a time


def most_unpacked() -> int:
    """Bytes that a compressed file, an archive or a file of arrays may unpack to.

    They are `DICGRL_MAX_UNPACKED`, in GB, or a quarter of the free memory: the ids of a triple of
    three letters take four times the memory of its text.

    Raises:
        UserError: The variable says no number.
    """
    chosen = os.environ.get(UNPACKED_VARIABLE)
    if chosen:
        try:
            number = float(chosen)
        except ValueError:
            number = math.nan
        if not 0 < number <= 1e9:
            raise UserError(
                f"{UNPACKED_VARIABLE} is {shown(chosen)}; expected a number of GB, such as 8"
            )
        return int(number * 1e9)
    free = free_on_host()
    return 1 << 62 if free is None else free // 4


def too_large(label: str, most: int) -> DataError:
    """The error for a file that unpacks to more than it may."""
    return DataError(
        label,
        f"holds more than {most / 1e9:,.3g} GB; {UNPACKED_VARIABLE} (in GB, a quarter of the "
        "free memory unless set) allows more",
    )


class BoundedStream(io.RawIOBase):
    """A stream that refuses to be longer than a bound.

    Args:
        stream: The stream to read from.
        label: Name of the file in messages.
        most: How many bytes it may have.

    Example:
        >>> BoundedStream(io.BytesIO(b"four"), "x.gz", most=4).read(10**18)
        b'four'
        >>> try:
        ...     BoundedStream(io.BytesIO(b"fives"), "x.gz", most=4).read()
        ... except DataError as error:
        ...     print(error.source)
        x.gz
    """

    def __init__(self, stream: BinaryIO, label: str, most: int) -> None:
        self._stream, self._label, self._most = stream, label, most
        self._position = 0

    @override
    def read(self, size: int | None = -1) -> bytes:
        left = math.inf if size is None or size < 0 else size
        blocks = []
        while left and (block := self._stream.read(int(min(left, _BLOCK)))):
            self._move_to(self._position + len(block))
            blocks.append(block)
            left -= len(block)
        return b"".join(blocks)

    @override
    def readline(self, size: int | None = -1) -> bytes:
        line = self._stream.readline(-1 if size is None else size)
        self._move_to(self._position + len(line))
        return line

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        assert whence == os.SEEK_SET
        self._move_to(offset)  # fails before anything is unpacked
        self._position = self._stream.seek(offset)
        return self._position

    @override
    def tell(self) -> int:
        return self._position

    def _move_to(self, position: int) -> None:
        if position > self._most:
            raise too_large(self._label, self._most)
        self._position = position
