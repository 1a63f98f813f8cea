"""Tensor files. A base holds all tensors of a version, a delta only what changed since another one.

A delta holds tensors either whole, under their `NAME`, or as the rows that changed or are new:
`NAME|rows` are their ids, `NAME|values` the rows themselves. A tensor that it does not name is
unchanged. Rows count as changed if any bit differs. Files are memory-mapped, so that only what is
used is kept in memory.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dicgrl.common.atomic import replacing_file
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import DataError
from dicgrl.store.damage import is_no_damage
from dicgrl.store.database import check_regular
from dicgrl.store.sealed import checksum

Tensors = dict[str, Tensor]
ROWS, VALUES = "|rows", "|values"
_NAME = re.compile(r"[0-9]{1,12}\.(base|delta)\.[0-9a-f]{16}\.safetensors")
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_AT_ONCE = 1 << 22  # numbers that are compared at a time
_MOST = 0.5  # share of rows above which a tensor is stored whole


class TensorFile(NamedTuple):
    """A file of tensors.

    Attributes:
        name: Its name in the folder of tensors.
        version: The version that it belongs to.
        parent: The version that its rows are changes of; 0 for a base.
        bytes: Its size.
        content: SHA-256 of the file.
    """

    name: str
    version: int
    parent: int
    bytes: int
    content: str


class Delta(NamedTuple):
    """The difference between the tensors of two versions.

    Attributes:
        tensors: Changed tensors, named as in a delta's file (see above).
        removed: Names of tensors that are no longer there.
    """

    tensors: Tensors
    removed: list[str]

    @property
    def bytes(self) -> int:
        """The size of the tensors."""
        return size_of(self.tensors)


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Bytes that tensors take."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def changed_rows(before: Tensor, now: Tensor) -> Tensor:
    """Rows of `now` that differ from those of `before` in any bit, or are new; ids, sorted.

    Example:
        >>> changed_rows(torch.tensor([[0.0], [1.0]]), torch.tensor([[-0.0], [1.0], [2.0]]))
        tensor([0, 2])
    """
    old = len(before)
    step = max(1, _AT_ONCE // max(1, now[:1].numel()))
    found = []
    for first in range(0, old, step):
        mine, theirs = (_bits(rows[first : min(first + step, old)]) for rows in (before, now))
        differs = (mine != theirs).flatten(1).any(1) if mine.dim() > 1 else mine != theirs
        found.append(differs.nonzero()[:, 0] + first)
    return torch.cat([*found, torch.arange(old, len(now))])


def delta_of(before: Mapping[str, Tensor], now: Mapping[str, Tensor]) -> Delta:
    """The difference from the tensors of another version, to be stored."""
    changed: Tensors = {}
    for name, tensor in now.items():
        old = before.get(name)
        alike = old is not None and _grown_from(old, tensor)
        if old is None or not alike or not tensor.dim():
            if old is None or not alike or not torch.equal(_bits(old), _bits(tensor)):
                changed[name] = tensor
            continue
        rows = changed_rows(old, tensor)
        if len(rows) > _MOST * len(tensor):
            changed[name] = tensor
        elif len(rows):
            changed[name + ROWS], changed[name + VALUES] = rows, tensor[rows]
    return Delta(changed, sorted(before.keys() - now.keys()))


def combined(steps: Sequence[Delta]) -> Tensors:
    """The tensors of a version from its base and the deltas since, oldest first.

    Raises:
        ValueError: A delta is not one of what comes before it.
    """
    found: Tensors = {}
    later: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for tensors, removed in steps:
        for name in removed:
            found.pop(name, None)
            later.pop(name, None)
        for name, tensor in tensors.items():
            if name.endswith(ROWS):
                name = name.removesuffix(ROWS)
                if name not in found or name + VALUES not in tensors:
                    raise ValueError(f"rows of {name}, which is not there")
                later.setdefault(name, []).append((tensor, tensors[name + VALUES]))
            elif not name.endswith(VALUES):
                found[name] = tensor
                later.pop(name, None)
    return {name: _with_rows(name, tensor, later.get(name, [])) for name, tensor in found.items()}


def _with_rows(name: str, tensor: Tensor, changes: list[tuple[Tensor, Tensor]]) -> Tensor:
    length = len(tensor) if tensor.dim() else 0
    for rows, values in changes:
        length = check_rows(name, rows, values, length, tensor)
    if changes and length > len(tensor):
        grown = tensor.new_empty(length, *tensor.shape[1:])
        grown[: len(tensor)] = tensor
        tensor = grown
    for rows, values in changes:
        tensor[rows] = values
    return tensor


def check_rows(name: str, rows: Tensor, values: Tensor, length: int, like: Tensor) -> int:
    """Refuse rows that do not fit a tensor of some length; gives its length with them.

    Raises:
        ValueError: They do not.
    """
    fits = (
        rows.dtype == torch.int64
        and rows.dim() == 1
        and values.dtype == like.dtype
        and values.shape == (len(rows), *like.shape[1:])
        and bool((rows[1:] > rows[:-1]).all())
        and (not len(rows) or int(rows[0]) >= 0)
    )
    new = int((rows >= length).sum()) if fits else 0
    if not fits or (new and int(rows[-1]) != length + new - 1):  # new ones leave no gap
        raise ValueError(f"rows of {name} do not fit")
    return length + new


def _grown_from(old: Tensor, now: Tensor) -> bool:
    if old.dtype != now.dtype or old.dim() != now.dim():
        return False
    return not old.dim() or (old.shape[1:] == now.shape[1:] and len(old) <= len(now))


def _bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(_BITS[tensor.element_size()])


# Files


def write_file(folder: Path, delta: Delta, version: int, parent: int, identity: str) -> TensorFile:
    """Write a delta, or a base if there is no parent, atomically."""
    kind = "delta" if parent else "base"
    path = folder / f"{version}.{kind}.{secrets.token_hex(8)}.safetensors"
    about = {"identity": identity, "version": str(version), "parent": str(parent)}
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in delta.tensors.items()}
    with replacing_file(path) as temporary:
        write_tensors(held, temporary, about | {"removed": json.dumps(delta.removed)})
        content, size = checksum(temporary), temporary.stat().st_size
    return TensorFile(path.name, version, parent, size, content)


def read_file(folder: Path, file: TensorFile, identity: str) -> Delta:
    """Map what `write_file` wrote, once its checksum is right.

    Raises:
        DataError: It is missing, damaged or of another run.
    """
    check_name(folder, file.name)
    path = folder / file.name
    check_file(path, file)
    try:
        with safe_open(path, framework="pt") as opened:
            about = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        removed: Any = json.loads(about.pop("removed", "[]"))
    except FileNotFoundError:
        raise MissingError(path, "damaged run: this file is missing") from None
    except (SafetensorError, RuntimeError, ValueError, RecursionError) as error:
        if is_no_damage(error):
            raise
        raise DataError(path, f"damaged ({error})") from error
    expected = {"identity": identity, "version": str(file.version), "parent": str(file.parent)}
    if about != expected or not isinstance(removed, list):
        raise DataError(path, "of another run or version")
    return Delta(tensors, removed)


class MissingError(DataError):
    """A file is missing; perhaps a writer has just removed it, and reading again will succeed."""


def check_name(folder: Path, name: str) -> None:
    """Refuse a name that no file of ours has, such as one that leads elsewhere.

    Raises:
        DataError: It is such a name.
    """
    if not _NAME.fullmatch(name):
        raise DataError(folder, f"damaged run: {name!r} is no name of a file of tensors")


def check_file(path: Path, file: TensorFile) -> None:
    """Refuse a file that is not what was written.

    Raises:
        DataError: It is missing or damaged.
    """
    if not path.exists() and not path.is_symlink():
        raise MissingError(path, "damaged run: this file is missing")
    check_regular(path)
    try:
        same = path.stat().st_size == file.bytes and checksum(path) == file.content
    except FileNotFoundError:
        raise MissingError(path, "damaged run: this file is missing") from None
    if not same:
        raise DataError(path, "damaged: its checksum is not the one that was written")
