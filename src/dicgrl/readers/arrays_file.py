"""Reads NumPy's files, `.npy` and `.npz`, without unpickling and without trusting their headers.

NumPy itself allocates as much memory as a header asks for. Here an array is never larger than what
the file really holds.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from typing import Any, BinaryIO, Literal, cast

import numpy as np
import numpy.typing as npt

from dicgrl.errors import DataError, shown
from dicgrl.readers.bounds import most_unpacked, too_large
from dicgrl.readers.sources import SourceFile

_BLOCK = 1 << 20
_MAPPED = 1 << 26  # bytes of a file from which on it is mapped
_WORDS = 200  # most characters of a reason in a message
_PLAIN = "biufcmMSU"  # kinds of numbers, times and texts
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_UNREADABLE = (  # what NumPy and zipfile raise for damaged files and headers of no sense
    ValueError,
    TypeError,
    SyntaxError,
    ArithmeticError,
    LookupError,
    AttributeError,
    EOFError,
    OSError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_arrays(file: SourceFile) -> Any:
    """The array of an NPY file or the arrays of an NPZ file by name; never a pickled object.

    Raises:
        DataError: It is neither, is damaged, or unpacks to too much.
    """
    try:
        mapped = _mapped(file)
    except _UNREADABLE:
        mapped = None  # then it is looked at again, and what is wrong is said
    if mapped is not None:
        return mapped
    content = io.BytesIO(file.read())
    try:
        if zipfile.is_zipfile(content):
            return _arrays_of(content, file.label)
        content.seek(0)
        return _array(content)
    except _UNREADABLE as error:
        why = str(error)[:_WORDS]  # which may show what it found, all of it
        raise DataError(file.label, f"not a NumPy file of plain arrays ({why})") from error


def _arrays_of(content: BinaryIO, label: str) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {}
    with zipfile.ZipFile(content) as archive:
        members = archive.infolist()
        most = most_unpacked()
        if sum(member.file_size for member in members) > most:  # no more than that is ever read
            raise too_large(label, most)
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename or name in arrays:
                raise ValueError(f"{shown(member.filename)} is not an array, or occurs twice")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{shown(member.filename)} is compressed by an unsupported method")
            with archive.open(member) as stream:
                arrays[name] = _array(cast(BinaryIO, stream))
    return arrays


def _mapped(file: SourceFile) -> npt.NDArray[Any] | None:
    """A large NPY file as a memory-mapped array, which is only read when used."""
    if file.path is None or file.ending != ".npy" or file.label.lower().endswith(".gz"):
        return None
    size = file.path.stat().st_size
    if size < _MAPPED:
        return None
    with file.open() as stream:
        shape, by_column, kind = _header(stream)
        begin = stream.tell()
    if size - begin != math.prod(shape) * kind.itemsize:
        return None
    order: Literal["F", "C"] = "F" if by_column else "C"
    return np.memmap(file.path, kind, "r", begin, shape, order).view(np.ndarray)


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran order, and type."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"format {version}")
    shape, by_column, kind = _HEADERS[version](stream)
    if kind.kind not in _PLAIN or min(shape, default=0) < 0:
        raise ValueError(f"an array of {kind.kind!r}, which is neither numbers nor text")
    return shape, by_column, kind


def _array(stream: BinaryIO) -> npt.NDArray[Any]:
    shape, by_column, kind = _header(stream)
    count = math.prod(shape)
    wanted = count * kind.itemsize
    found = bytearray()
    while len(found) <= wanted and (block := stream.read(min(_BLOCK, wanted + 1 - len(found)))):
        found += block
    if len(found) != wanted or bool(count) > bool(wanted):
        said = f"an array {list(shape)} of {kind} takes {wanted:,} bytes"
        raise ValueError(f"{said}, and there are {'more' if len(found) > wanted else len(found)}")
    if not count:
        return np.empty(shape, kind)
    return np.frombuffer(found, kind, count).reshape(shape, order="F" if by_column else "C")
