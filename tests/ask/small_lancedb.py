"""As much of LanceDB as an index needs, in a file of Parquet: the package itself is large."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
from pyarrow import parquet


class Table:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "data.parquet"

    @property
    def rows(self) -> Any:
        return parquet.read_table(self._file)

    @rows.setter
    def rows(self, rows: Any) -> None:
        self._file.parent.mkdir(exist_ok=True)
        parquet.write_table(rows, self._file)

    @property
    def schema(self) -> Any:
        return self.rows.schema

    def count_rows(self) -> int:
        return int(self.rows.num_rows)

    def optimize(self) -> None:
        pass

    def delete(self, where: str) -> None:
        match = re.fullmatch(r"id IN \(([\d, ]+)\)", where)
        assert match is not None
        self._without({int(number) for number in match[1].split(",")})

    def _without(self, gone: set[int]) -> None:
        rows = self.rows
        self.rows = rows.filter(arrow.array([key not in gone for key in rows["id"].to_pylist()]))

    def merge_insert(self, on: str) -> Table:
        assert on == "id"
        return self

    def when_matched_update_all(self) -> Table:
        return self

    def when_not_matched_insert_all(self) -> Table:
        return self

    def execute(self, rows: Any) -> None:
        assert rows.schema == self.schema
        self._without(set(rows["id"].to_pylist()))
        self.rows = arrow.concat_tables([self.rows, rows])

    def search(self, vector: Any) -> Search:
        return Search(self, vector)


class Search:
    def __init__(self, table: Table, vector: Any) -> None:
        self._rows, self._vector, self._k = table.rows.to_pylist(), vector, 10

    def metric(self, name: str) -> Search:
        assert name == "cosine"
        return self

    def limit(self, k: int) -> Search:
        self._k = k
        return self

    def to_list(self) -> list[dict[str, Any]]:
        def distance(row: dict[str, Any]) -> float:
            found = np.array(row["vector"], np.float32)
            return -float(found @ self._vector / np.linalg.norm(found))

        return sorted(self._rows, key=distance)[: self._k]


class Database:
    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def create_table(self, name: str, rows: Any) -> Table:
        table = Table(self._folder / f"{name}.lance")
        table.rows = rows
        return table

    def open_table(self, name: str) -> Table:
        table = Table(self._folder / f"{name}.lance")
        try:
            assert table.schema is not None
        except OSError:
            raise ValueError(f"Table '{name}' was not found") from None
        return table


connect = Database
