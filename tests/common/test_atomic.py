from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dicgrl.common.atomic import new_folder, publish_folder, replacing_file


def test_file_appears_at_the_end_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "new" / "note.txt"
    with replacing_file(target) as temporary:
        temporary.write_text("first")
        assert not target.exists()
        assert temporary.parent == target.parent  # the same file system, so renaming is one step
    assert target.read_text() == "first"
    with replacing_file(target) as temporary:
        temporary.write_text("second")
        assert target.read_text() == "first"
    assert target.read_text() == "second"
    assert os.listdir(target.parent) == ["note.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "note.txt"
    target.write_text("old")
    with contextlib.suppress(RuntimeError), replacing_file(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["note.txt"]


def test_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "data"
    with contextlib.suppress(KeyboardInterrupt), new_folder(target) as temporary:
        (temporary / "a.txt").write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(target.parent) == []
    with new_folder(target) as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "a.txt").write_text("whole")
        assert not target.exists()
    assert (target / "inner" / "a.txt").read_text() == "whole"
    assert os.listdir(target.parent) == ["data"]


@pytest.mark.parametrize(
    ("writing", "step"),
    [
        (replacing_file, "touch"),
        (replacing_file, "write_text"),
        (replacing_file, "replace"),
        (new_folder, "mkdir"),
        (new_folder, "write_text"),
        (new_folder, "rename"),
    ],
)
def test_errors_name_what_is_written_and_no_temporary_name(
    writing: Callable[[Path], AbstractContextManager[Path]],
    step: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = getattr(Path, step)

    def refuse(path: Path, *given: object, **named: object) -> object:
        if path.parent == tmp_path.parent:
            return real(path, *given, **named)
        raise PermissionError(errno.EACCES, "Permission denied", str(path), None, "another")

    monkeypatch.setattr(Path, step, refuse)
    target = tmp_path / "out"
    inside = target / "a.txt" if (writing, step) == (new_folder, "write_text") else target
    with pytest.raises(PermissionError) as raised, writing(target) as temporary:
        (temporary / "a.txt" if temporary.is_dir() else temporary).write_text("whole")
    assert (raised.value.filename, raised.value.filename2) == (str(inside), None)
    assert not os.listdir(tmp_path)


def test_errors_about_other_files_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised, new_folder(tmp_path / "out"):
        (tmp_path / "other").read_text()
    assert raised.value.filename == str(tmp_path / "other")


def test_a_folder_with_content_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(OSError), new_folder(target) as temporary:
        (temporary / "other.txt").write_text("other")
    assert os.listdir(tmp_path) == ["data"] and os.listdir(target) == ["mine.txt"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").touch()
    (tmp_path / "plain").mkdir()
    with replacing_file(tmp_path / "file.txt") as temporary:
        temporary.write_text("x")
    with new_folder(tmp_path / "folder"):
        pass
    mode = {entry.name: entry.stat().st_mode for entry in tmp_path.iterdir()}
    assert mode["file.txt"] == mode["plain.txt"]
    assert mode["folder"] == mode["plain"]


def test_publish_moves_a_staged_folder(tmp_path: Path) -> None:
    staged = tmp_path / ".staged"
    (staged / "0").mkdir(parents=True)
    (staged / "0" / "a.txt").write_text("x")
    publish_folder(staged, tmp_path / "final")
    assert os.listdir(tmp_path) == ["final"]
    assert (tmp_path / "final" / "0" / "a.txt").read_text() == "x"


def test_what_a_killed_process_left_of_a_folder_goes_with_the_next_one(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f".vectors.{ended.pid:08x}{'0' * 8}"
    mine = tmp_path / f".vectors.{os.getpid():08x}{'0' * 8}"
    other = tmp_path / f".others.{ended.pid:08x}{'0' * 8}"
    for place in (left, mine, other):
        place.mkdir()
        (place / "half").write_text("half")
    with new_folder(tmp_path / "vectors") as temporary:
        (temporary / "whole").write_text("whole")
    assert not left.exists() and mine.exists() and other.exists()  # that is still at work; no name


def test_new_folders_are_synced_with_all_that_is_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr("dicgrl.common.atomic.sync", lambda path: synced.append(path.name))
    with new_folder(tmp_path / "a" / "b" / "c") as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "file").write_text("content")
    assert {tmp_path.name, "a", "b", "inner", "file", temporary.name} <= set(synced)
