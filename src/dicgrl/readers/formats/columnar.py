"""Reads Parquet and Arrow (Feather) files in batches.

Columns stay coded, as numbers that stand for labels, so that each distinct label is converted only
once. pyarrow is optional: `pip install 'dicgrl[arrow]'`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from typing_extensions import override

from dicgrl.common.optional import needed
from dicgrl.errors import DataError, UserError, shown
from dicgrl.graph.coded import Coded
from dicgrl.graph.labels import check_labels, time_column
from dicgrl.readers.formats import TRIPLE, Format, Triple, format_of
from dicgrl.readers.reading import Reading, find_columns
from dicgrl.readers.sources import DiskFolder, SourceFile
from dicgrl.readers.text import Rows

_BATCH = 1 << 20  # rows at a time: the larger, the fewer labels are looked at twice
_ROLES = ("head", "relation", "tail")


class _Columnar(Format):
    endings: ClassVar[tuple[str, ...]] = ()

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        with file.open() as stream, _damage(file.label):
            if file.label.lower().endswith(".gz"):  # it is read from its end
                stream = io.BytesIO(stream.read())
            names, batches = self._batches(file, stream, width)
            yield from coded_rows(file.label, names, batches, lacking=file.may_lack)

    @override
    def says_times(self, file: SourceFile) -> bool:
        if file.reading.named:
            return super().says_times(file)
        with suppress(DataError):
            for _ in self.rows(file, TRIPLE + 1, exact=False):
                return True
        return False

    def _batches(
        self, file: SourceFile, stream: BinaryIO, width: int
    ) -> tuple[list[str], Iterable[Any]]:
        """Names of the columns that are read, and the batches."""
        raise NotImplementedError


class Parquet(_Columnar):
    """Parquet: only the columns that are needed are read."""

    endings: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    @override
    def _batches(
        self, file: SourceFile, stream: BinaryIO, width: int
    ) -> tuple[list[str], Iterable[Any]]:
        parquet = needed("pyarrow.parquet", "arrow", "Parquet")
        table = parquet.ParquetFile(stream)
        names = chosen_names(file.label, table.schema_arrow.names, file.reading, width)
        return names, table.iter_batches(_BATCH, columns=names)

    @override
    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        parquet = needed("pyarrow.parquet", "arrow", "Parquet")
        with parquet.ParquetWriter(path, _schema()) as writer:
            for block in triples:
                writer.write_batch(_as_batch(block))


class Arrow(_Columnar):
    """Arrow's files and streams; Feather is such a file."""

    endings: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc")

    @override
    def _batches(
        self, file: SourceFile, stream: BinaryIO, width: int
    ) -> tuple[list[str], Iterable[Any]]:
        ipc = needed("pyarrow", "arrow", "Arrow").ipc
        magic = stream.read(6)
        stream.seek(0)
        if magic[:4] == b"FEA1":
            raise DataError(file.label, "Feather of version 1; write it as version 2 (Arrow)")
        if magic == b"ARROW1":
            table = ipc.open_file(stream)
            batches: Iterable[Any] = map(table.get_batch, range(table.num_record_batches))
        else:
            table = batches = ipc.open_stream(stream)
        return chosen_names(file.label, table.schema.names, file.reading, width), batches

    @override
    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        ipc = needed("pyarrow", "arrow", "Arrow").ipc
        with ipc.new_file(str(path), _schema()) as writer:
            for block in triples:
                writer.write_batch(_as_batch(block))


class _Book:
    """Remembers the labels of all blocks, so that each is converted from Arrow only once.

    Args:
        label: How messages call the file.
    """

    def __init__(self, label: str) -> None:
        self._arrow = needed("pyarrow", "arrow", "Arrow")
        self._compute = needed("pyarrow.compute", "arrow", "Arrow")
        self.label = label
        self._known = self._arrow.array([], self._arrow.large_string())
        self.labels: list[str] = []

    def coded(self, column: Any, name: str, first: int) -> Coded:
        """A column of a batch as labels; for whole numbers, their digits are the label.

        Args:
            column: The column.
            name: What it is called.
            first: The number of its first row.

        Raises:
            DataError: It holds something else, or a row holds nothing.
        """
        column = self._encoded(column, name, first)
        held = column.dictionary.cast(self._arrow.large_string()).fill_null("")
        codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        full = self._compute.not_equal(held, "")
        empty = np.flatnonzero(~full.to_numpy(zero_copy_only=False))
        if len(empty) and np.isin(codes, empty).any():  # else a dictionary holds it for nobody
            row = first + int(np.isin(codes, empty).argmax())
            raise DataError(self.label, f"column {shown(name)} is empty", row)
        found = self._compute.index_in(held, value_set=self._known)
        places = found.fill_null(-1).to_numpy().astype(np.int64)
        unseen = self._compute.and_(found.is_null(), full)
        arriving = held.filter(unseen)
        if len(arriving):
            new = arriving.to_pylist()
            try:
                check_labels(new)
            except UserError as error:
                raise DataError(self.label, f"column {shown(name)}: {error}") from None
            at = unseen.to_numpy(zero_copy_only=False)
            places[at] = np.arange(len(self.labels), len(self.labels) + len(new))
            self.labels.extend(new)
            self._known = self._arrow.concat_arrays([self._known, arriving])
        return Coded(self.labels, places[codes])

    def texts(self, column: Any, name: str) -> list[str]:
        """The same as texts, "" where a row holds nothing."""
        if not self._arrow.types.is_null(column.type):
            self._check_type(column, name)
        return _texts(column)

    def _check_type(self, column: Any, name: str) -> None:
        types = self._arrow.types
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        if not text and not types.is_integer(kind) and not types.is_temporal(kind):
            wrong = f"column {shown(name)} has the type {kind}; expected text or whole numbers"
            raise DataError(self.label, wrong)

    def _encoded(self, column: Any, name: str, first: int) -> Any:
        self._check_type(column, name)
        if column.null_count:
            row = first + int(self._compute.index(self._compute.is_null(column), True).as_py())
            raise DataError(self.label, f"column {shown(name)} is empty", row)
        coded = self._arrow.types.is_dictionary(column.type)
        return column if coded else column.dictionary_encode()


class Tree(Format):
    """All Parquet files below a folder, in the order of their names, read like one file.

    Args:
        folder: The folder.
    """

    endings: ClassVar = ()

    def __init__(self, folder: DiskFolder) -> None:
        self._folder = folder

    def as_file(self) -> SourceFile:
        """The tree as what is read like a file of triples."""
        folder = self._folder
        format_of(SourceFile(folder.label, io.BytesIO, replace(folder.reading, format="parquet")))
        return SourceFile(folder.label, io.BytesIO, folder.reading, self)

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        with _damage(file.label):
            tree = self._tree()
            names = chosen_names(file.label, tree.schema.names, file.reading, width)
            parts = self._parts(tree, names)
            books = _Book(file.label), _Book(file.label)
            empty = True
            for label, batches in parts:
                for rows in coded_rows(label, names, batches, none="", books=books):
                    empty = False
                    yield rows
        if empty:
            raise DataError(file.label, "the files hold no rows")

    @override
    def says_times(self, file: SourceFile) -> bool:
        if file.reading.named:
            return super().says_times(file)
        with _damage(file.label):
            names = self._tree().schema.names
        return time_column(names) is not None

    def _tree(self) -> Any:
        dataset = needed("pyarrow.dataset", "arrow", "Parquet")
        base = self._folder.path
        return dataset.dataset(
            list(map(str, tree_files(base))),
            format="parquet",
            partitioning=dataset.partitioning(flavor="hive"),
            partition_base_dir=str(base),
        )

    def _parts(self, tree: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
        """The name of each file in messages, and its batches."""
        dataset = needed("pyarrow.dataset", "arrow", "Parquet")
        for part in tree.get_fragments():
            there = [*part.physical_schema.names]
            there += dataset.get_partition_keys(part.partition_expression)
            if lacking := [name for name in names if name not in there]:
                said = f"there is no column {shown(lacking[0])}"
                raise DataError(
                    part.path, f"{said}; the columns are {', '.join(map(shown, there))}"
                )
            yield part.path, part.to_batches(tree.schema, columns=names, batch_size=_BATCH)


def tree_files(folder: Path) -> list[Path]:
    """The Parquet files below a folder, except temporary ones, which begin with a dot or `_`."""
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if path.is_file() and not any(p[0] in "._" for p in path.relative_to(folder).parts)
    )


def is_tree(path: Path) -> bool:
    """Whether there are Parquet files below a folder."""
    return path.is_dir() and bool(tree_files(path))


def coded_rows(
    label: str,
    names: list[str],
    batches: Iterable[Any],
    none: str = "the file holds no rows",
    books: tuple[_Book, _Book] | None = None,
    lacking: bool = False,
) -> Iterator[Rows]:
    """Rows of record batches.

    Args:
        label: How messages call their source.
        names: The columns that are read: head, relation, tail and, of four, the time.
        batches: The batches, which may have other columns.
        none: What to say where there are no rows; nothing is said where it is empty.
        books: The labels of entities and of relations that earlier sources brought.
        lacking: Whether a value may be missing.

    Raises:
        DataError: A value is no label, or there are no rows.
    """
    first = 1
    entities, relations = books or (_Book(label), _Book(label))
    entities.label = relations.label = label
    for batch in _gathered(batches, names, entities.labels):
        columns = [
            book.texts(batch.column(name), name)
            if lacking
            else book.coded(batch.column(name), name, first)
            for book, name in zip((entities, relations, entities), names[:TRIPLE], strict=False)
        ]
        times = [_texts(batch.column(name)) for name in names[TRIPLE:]]
        yield Rows(first, [*columns, *times])
        first += batch.num_rows
    if first == 1 and none:
        raise DataError(label, none)


def _gathered(batches: Iterable[Any], names: list[str], known: list[str]) -> Iterator[Any]:
    """Batches of rows; several become one while they have fewer rows than labels are known.

    Every look-up of labels builds a table of all known ones. So the time for a file of many
    entities follows its rows and not their square.
    """
    arrow, waiting, rows = needed("pyarrow", "arrow", "Arrow"), [], 0
    for batch in batches:
        batch.validate(full=True)  # otherwise a damaged file may point to any memory
        if batch.num_rows:
            waiting.append(batch.select(names))
            rows += batch.num_rows
        if rows >= len(known):
            yield from _as_one(arrow, waiting)
            waiting, rows = [], 0
    yield from _as_one(arrow, waiting)


def _as_one(arrow: Any, batches: list[Any]) -> list[Any]:
    """Concatenate batches into one, or a few if the text of one would be too long."""
    if len(batches) < 2:
        return batches
    made: list[Any] = arrow.Table.from_batches(batches).combine_chunks().to_batches()
    return made


def _texts(column: Any) -> list[str]:
    """A column of times, or of labels, as text; "" if there is none."""
    arrow, compute = (needed(name, "arrow", "Arrow") for name in ("pyarrow", "pyarrow.compute"))
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts: list[str] = compute.fill_null(column.cast(arrow.string()), "").to_pylist()
    return texts


def chosen_names(label: str, names: list[str], reading: Reading, width: int) -> list[str]:
    """Which columns of a table are read, in the order of their roles.

    Raises:
        DataError: The names do not tell, or two are the same.
    """
    if len(set(names)) < len(names):
        raise DataError(label, "two columns have the same name")
    return [names[at] for at in find_columns(label, names, reading, width)]


@contextmanager
def _damage(label: str) -> Iterator[None]:
    arrow = needed("pyarrow", "arrow", "this file")
    try:
        yield
    except (arrow.ArrowException, OSError, EOFError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(label, f"damaged, or not of this format ({said})") from error


def _schema() -> Any:
    arrow = needed("pyarrow", "arrow", "this format")
    return arrow.schema([(role, arrow.string()) for role in _ROLES])


def _as_batch(block: Sequence[Triple]) -> Any:
    arrow = needed("pyarrow", "arrow", "this format")
    columns = [list(column) for column in zip(*block, strict=True)] or [[], [], []]
    arrays = [arrow.array(column, arrow.string()) for column in columns]
    return arrow.record_batch(arrays, schema=_schema())
