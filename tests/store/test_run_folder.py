"""A learner's folder: nothing that is damaged or foreign is loaded, nothing is overwritten."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner
from dicgrl.errors import DataError, UserError
from dicgrl.store.database import ADDED, TABLES, opened
from dicgrl.store.records import StoredRun, digest_of, insert_content, insert_version
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.tensors import read_file
from tests.learner.helpers import assert_same
from tests.stores import change_config, edited, kept, stored
from tests.tiny import learner_of, ring, taught


def saved_by(learner: Learner, folder: Path) -> Path:
    learner.save(folder)
    return folder


@pytest.fixture(scope="module", params=["links", "nodes"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two parts, with all the files there are."""
    learner = learner_of(request.param, "ewc")
    learner.names = {"e1": "the first", "n1": "the first"}
    folder = tmp_path_factory.mktemp("saved") / "run"
    for parts in (1, 2):
        taught(learner, parts).save(folder)
    return folder


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "run"))


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def refused(folder: Path, *mentioned: object) -> None:
    """Loading fails with one message that names the place."""
    with pytest.raises(DataError) as caught:
        Learner.load(folder, device="cpu")
    message = str(caught.value)
    assert str(folder) in message and "\n" not in message
    for words in mentioned:
        assert str(words) in message


@contextmanager
def holding(path: Path, content: bytes) -> Iterator[None]:
    """The file with other content for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def test_the_folder_holds_what_the_documentation_says(saved: Path) -> None:
    assert {path.name for path in saved.iterdir()} == {"store.sqlite", "tensors"}
    assert kept(saved) == [1, 2]


def test_a_changed_byte_in_any_file_is_found_or_changes_nothing(run: Path) -> None:
    """A database has room that nobody uses, and pages that only a writer reads."""
    chance = random.Random(0)
    whole = Learner.load(run, device="cpu")
    found = 0
    for path in files_of(run):
        content = path.read_bytes()
        places = {0, len(content) - 1, *chance.sample(range(len(content)), 60)}
        for position in places:
            damaged = bytearray(content)
            damaged[position] ^= 1 << chance.randrange(8)
            with holding(path, damaged):
                try:
                    again = Learner.load(run, device="cpu")
                except DataError:
                    found += 1
                    continue
                assert path.suffix == ".sqlite"
                assert_same(whole, again)
                assert whole.names == again.names
    assert found > 60
    assert_same(whole, Learner.load(run, device="cpu"))


@pytest.mark.parametrize("table", sorted(set(TABLES) - {"tags", "trace"}))
def test_a_value_that_was_changed_in_any_column_is_found(run: Path, table: str) -> None:
    """As by somebody who opens the database and knows nothing of checksums."""
    with edited(run) as database:
        rows = list(database.rows(table))
    assert rows
    for column, value in rows[-1].items():
        copy = Path(shutil.copytree(run, run.parent / f"{table} {column}"))
        other: Any = 7
        if isinstance(value, bytes):
            other = value[:-1] + bytes([value[-1] ^ 1])
        elif isinstance(value, str):
            other = value + " "
        elif value is not None:
            other = value + 1
        with edited(copy) as database:
            last = f"rowid = (SELECT max(rowid) FROM {table})"
            query = f"UPDATE {table} SET {column} = ? WHERE {last}"
            database.connection.execute(query, (other,))
        refused(copy)


def test_a_row_that_is_missing_or_of_another_run_is_found(run: Path, tmp_path: Path) -> None:
    """The other run learned the same, with the same seed: only its identity differs."""
    kind = "nodes" if Learner.load(run, device="cpu").trainer.metric == "accuracy" else "links"
    other = saved_by(taught(learner_of(kind, "ewc"), 2), tmp_path / "other")
    for table in ("about", "versions", "arrays", "models", "files"):
        copy = Path(shutil.copytree(run, tmp_path / f"without {table}"))
        with edited(copy) as database:
            newest = f"rowid = (SELECT max(rowid) FROM {table})"
            database.connection.execute(f"DELETE FROM {table} WHERE {newest}")
        refused(copy)
        copy = Path(shutil.copytree(run, tmp_path / f"swapped {table}"))
        with edited(copy) as database:
            database.connection.execute("ATTACH ? AS other", (str(other / "store.sqlite"),))
            database.connection.execute(f"DELETE FROM {table}")
            database.connection.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
        assert not RunFolder(copy).verify().clean
        if table != "arrays":  # they say the same
            refused(copy)


def test_a_file_that_was_cut_off_or_is_missing_or_longer_is_found(run: Path) -> None:
    for path in files_of(run):
        content = path.read_bytes()
        for size in {0, 1, len(content) // 2, len(content) - 1}:
            with holding(path, content[:size]):
                refused(run)
        if path.suffix != ".sqlite":  # SQLite knows how long it is
            with holding(path, content + b"\n"):
                refused(run, path)
        path.unlink()
        with pytest.raises(DataError):
            Learner.load(run, device="cpu")
        path.write_bytes(content)
    Learner.load(run, device="cpu")


def test_files_that_changed_places_or_are_of_another_run_are_found(
    run: Path, tmp_path: Path
) -> None:
    one, *_, other = sorted((run / "tensors").iterdir())
    first, second = one.read_bytes(), other.read_bytes()
    with holding(one, second), holding(other, first):
        refused(run, "checksum")
    kind = "nodes" if Learner.load(run, device="cpu").trainer.metric == "accuracy" else "links"
    strange = saved_by(taught(learner_of(kind, "ewc"), 2), tmp_path / "other")
    for path in (strange / "tensors").iterdir():
        shutil.copy(path, run / "tensors" / path.name)
    with stored(strange) as theirs, edited(run) as database:
        database.connection.execute("DELETE FROM files")
        for file in theirs.files():
            database.insert("files", **file._asdict())
    refused(run, "of another run or version")


@pytest.mark.parametrize("name", ["../1.base.0123456789abcdef.safetensors", "/etc/passwd", "x", ""])
def test_a_name_that_leads_elsewhere_is_refused(run: Path, name: str) -> None:
    with edited(run) as database:
        row = next(database.rows("files"))
        database.connection.execute("DELETE FROM files WHERE name = ?", (row["name"],))
        database.insert("files", **(row | {"name": name}))
    refused(run, "no name of a file of tensors")


@pytest.mark.parametrize("place", ["store.sqlite", "tensors"])
def test_links_and_pipes_are_refused(run: Path, tmp_path: Path, place: str) -> None:
    path = next((run / place).iterdir()) if (run / place).is_dir() else run / place
    moved = path.rename(tmp_path / "elsewhere")
    path.symlink_to(moved)
    with pytest.raises(DataError, match="plain file"):
        Learner.load(run, device="cpu")
    path.unlink()
    os.mkfifo(path)  # who opens it waits for ever
    with pytest.raises(DataError, match="plain file"):
        Learner.load(run, device="cpu")


def test_a_store_without_the_later_tables_is_read_and_gains_them_when_written(run: Path) -> None:
    with edited(run) as database:
        for table in ADDED:
            database.connection.execute(f"DROP TABLE {table}")
    with opened(run / "store.sqlite") as database:
        assert [list(database.rows(table)) for table in ADDED] == [[]] * len(ADDED)
    assert RunFolder(run).verify().clean
    learner = Learner.load(run, device="cpu")
    RunFolder(run).tag("here")
    with opened(run / "store.sqlite") as database:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        assert set(ADDED) <= {name for (name,) in database.connection.execute(query)}
    assert_same(learner, Learner.load(run, device="cpu"))


def test_a_database_of_somebody_else_is_refused(run: Path) -> None:
    path = run / "store.sqlite"
    with edited(run) as database:
        database.connection.execute(
            "CREATE TRIGGER harm AFTER INSERT ON tags BEGIN DELETE FROM versions; END"
        )
    refused(run, "other tables")
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    refused(run, "other tables")
    for content in (b"", b"{}", b"SQLite format 3\0", os.urandom(5000)):
        path.write_bytes(content)
        refused(run)


SHAPES: list[Any] = ["[1e99]", "[[1]]", "[]", "null", "[999999999999]", "[-1]", '"x"']


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_that_declare_what_they_are_not_are_refused(run: Path, shape: str) -> None:
    """With checksums that are right, as whoever attacks would have them."""
    with edited(run) as database:
        for row in list(database.rows("arrays", "WHERE name = '*arrays'")):
            content = b'{"train": ["int64", ' + shape.encode() + b"]}"
            database.connection.execute(
                "DELETE FROM arrays WHERE version = ? AND name = '*arrays'", (row["version"],)
            )
            database.insert("arrays", **(row | {"data": content}))
    refused(run)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", 5),
        ("settings", {"model": "transe", "dim": 10**400}),
        ("seed", "zero"),
        ("model", ["transe"]),
        ("identity", None),
        ("versions", 10**6),
        ("versions", "two"),
        ("format", "dicgrl-store-9"),
    ],
)
def test_a_configuration_of_other_types_is_refused(run: Path, key: str, value: Any) -> None:
    change_config(run, lambda config: config.update({key: value}))
    refused(run)


@pytest.mark.parametrize("kind", ["entities", "relations", "classes", "nodes"])
def test_labels_without_rows_are_refused(run: Path, kind: str) -> None:
    """A part that names more than the model knows, with checksums that are right."""
    with edited(run) as database:
        store = StoredRun(database)
        version = store.versions()[-1]
        arrays, labels = store.content(version)
        if kind not in labels["part"]:
            return
        labels["part"][kind].append("ghost")
        database.connection.execute("DELETE FROM arrays WHERE version = 2")
        insert_content(database, 2, (arrays, labels))
        insert_version(database, replace(version, data=digest_of((arrays, labels))))
    refused(run, "damaged run")


@pytest.mark.parametrize("text", ["5", "[1,", '{"part": 0}', "null", '"x"'])
def test_measurements_are_read_when_somebody_asks_and_refused_then(run: Path, text: str) -> None:
    """With checksums that are right; whoever only asks for answers need not read them."""
    with edited(run) as database:
        (row,) = database.rows("versions", "WHERE number = 2")
        database.insert("versions", **(row | {"tests": text, "results": "[]"}))
    learner = Learner.load(run, device="cpu")
    with pytest.raises(DataError, match="damaged run"):
        learner.evaluation()
    with pytest.raises(DataError, match="damaged run"):
        RunFolder(run).results()
    assert "damaged run" in " ".join(RunFolder(run).verify().damage)


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no run here")
    refused(tmp_path, "no run here")
    saved_by(taught(learner_of("links"), 1), tmp_path / "lower")
    refused(tmp_path, "no run here", "the runs lower")


def test_a_learner_is_not_saved_over_another(run: Path) -> None:
    before = {path: path.read_bytes() for path in files_of(run)}
    for other in (learner_of("links"), taught(learner_of("links", "ewc"), 2)):
        with pytest.raises(UserError, match="holds another run"):
            other.save(run)
    assert before == {path: path.read_bytes() for path in files_of(run)}


def test_a_learner_is_not_mixed_with_folders_of_runs(tmp_path: Path) -> None:
    saved_by(taught(learner_of("links"), 1), tmp_path / "lower")
    learner = taught(learner_of("links"), 1)
    before = {path: path.read_bytes() for path in files_of(tmp_path)}
    with pytest.raises(UserError, match="holds the runs lower; name one of them, or a new one"):
        learner.save(tmp_path)
    assert before == {path: path.read_bytes() for path in files_of(tmp_path)}
    assert {path.name for path in tmp_path.iterdir()} == {"lower"}
    learner.save(tmp_path / "mine")


def test_a_learner_is_not_saved_among_tensors_without_a_database(run: Path) -> None:
    (run / "store.sqlite").unlink()
    before = {path: path.read_bytes() for path in files_of(run)}
    with pytest.raises(UserError, match=r"store\.sqlite is missing"):
        taught(learner_of("links"), 1).save(run)
    assert before == {path: path.read_bytes() for path in files_of(run)}


def test_two_that_went_different_ways_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = saved_by(taught(learner_of("links"), 1), tmp_path / "run")
    one, other = (Learner.load(folder, device="cpu") for _ in range(2))
    one.learn(ring()[1])
    other.learn([("somebody", "else", "came")])
    one.save(folder)
    before = {path: path.read_bytes() for path in files_of(folder)}
    with pytest.raises(UserError, match="another part 1"):
        other.save(folder)
    assert before == {path: path.read_bytes() for path in files_of(folder)}


def test_two_that_went_the_same_way_do(tmp_path: Path) -> None:
    folder = saved_by(taught(learner_of("links"), 1), tmp_path / "run")
    one, other = (taught(Learner.load(folder, device="cpu"), 2) for _ in range(2))
    one.save(folder)
    other.save(folder)
    taught(other).save(folder)
    assert_same(other, Learner.load(folder, device="cpu"))
    one.save(folder)  # it has nothing that is not there
    assert Learner.load(folder, device="cpu").version == 3


def test_files_of_earlier_versions_are_left_as_they_are(run: Path) -> None:
    learner = Learner.load(run, device="cpu")
    tensors = files_of(run / "tensors")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tensors}
    learner.save(run)
    assert tensors == files_of(run / "tensors")
    taught(learner).save(run)
    for path, content in before.items():
        assert (path.read_bytes(), path.stat().st_mtime_ns) == content


def test_a_folder_keeps_the_models_that_it_was_begun_to_keep(tmp_path: Path) -> None:
    parts, learner = ring(), learner_of("links")
    learner.learn(parts[0])
    learner.save(tmp_path / "last", keep="last")
    learner.save(tmp_path / "all")
    learner.save(tmp_path / "two", keep="2")
    learner.learn(parts[1])
    for name in ("last", "all", "two"):
        learner.save(tmp_path / name)
    assert kept(tmp_path / "last") == [2]
    assert kept(tmp_path / "all") == kept(tmp_path / "two") == [1, 2]
    loaded = Learner.load(tmp_path / "last", device="cpu")
    loaded.learn([("e1", "plus 1", "someone new")])
    for name in ("last", "two"):
        loaded.save(tmp_path / name)
    assert kept(tmp_path / "last") == [3] and kept(tmp_path / "two") == [2, 3]
    with pytest.raises(UserError, match="the model of version 1 was not kept"):
        Learner.load(tmp_path / "two", at=1, device="cpu")
    learner.save(tmp_path / "all", keep="last")  # what is asked for counts
    assert kept(tmp_path / "all") == [2]
    for wrong in ("0", "lst", "-1", "1.5"):
        with pytest.raises(UserError, match="unknown keep"):
            learner.save(tmp_path / "all", keep=wrong)


def test_a_run_is_read_again_where_its_model_is_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a service does that loads a run while a nightly job goes on with it."""
    writer = taught(learner_of("links", "upper"), 1)  # whose models have no row in common
    writer.save(tmp_path / "run", keep="last")
    asked: list[str] = []

    def read(folder: Path, file: Any, identity: str) -> Any:
        asked.append(file.name)
        if len(asked) == 1:
            writer.learn(ring()[1])
            writer.save(tmp_path / "run", keep="last")
        return read_file(folder, file, identity)

    monkeypatch.setattr("dicgrl.store.records.read_file", read)
    assert Learner.load(tmp_path / "run", device="cpu").num_parts == 2
    assert len(set(asked)) > 1


def test_a_model_that_is_lost_is_no_other_error(tmp_path: Path) -> None:
    taught(learner_of("links"), 1).save(tmp_path / "run")
    next((tmp_path / "run" / "tensors").iterdir()).unlink()
    with pytest.raises(DataError, match=r"safetensors: damaged run: this file is missing"):
        Learner.load(tmp_path / "run", device="cpu")
