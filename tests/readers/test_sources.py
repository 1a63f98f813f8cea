from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from pathlib import Path

import pytest

from dicgrl import DataError, UserError
from dicgrl.readers.sources import (
    ArchiveFolder,
    DiskFolder,
    Folder,
    SourceFile,
    numbered,
    open_folder,
)

FILES = {"a.txt": b"alpha", "0/train.txt": b"x\ty\tz\n", "0/deep/b.txt": b"beta"}


def write_tar(path: Path, members: dict[str, bytes], mode: str) -> None:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


@pytest.fixture(params=["disk", "tar.gz", "tgz", "tar.xz", "tar", "inner", "dotted"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    kind = request.param
    files = {**FILES, "packed.txt.gz": gzip.compress(b"gamma")}
    if kind == "disk":
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        return open_folder(tmp_path)
    prefix = {"inner": "data/", "dotted": "./data/"}.get(kind, "")
    ending, mode = {"tar.xz": ("tar.xz", "w:xz"), "tar": ("tar", "w")}.get(kind, ("tar.gz", "w:gz"))
    path = tmp_path / f"data.{'tgz' if kind == 'tgz' else ending}"
    write_tar(path, {prefix + name: content for name, content in files.items()}, mode)
    return open_folder(path)


def test_every_kind_of_folder_looks_the_same(folder: Folder) -> None:
    assert folder.names() == ["0", "a.txt", "packed.txt.gz"]
    plain = folder.file("a.txt")
    assert plain is not None and plain.read() == b"alpha"
    for name in ("packed.txt", "packed.txt.gz"):
        packed = folder.file(name)
        assert packed is not None
        assert packed.read() == b"gamma" and packed.ending == ".txt"
    assert folder.file("0") is None and folder.file("none.txt") is None
    assert folder.folder("a.txt") is None and folder.folder("1") is None
    inner = folder.folder("0")
    assert inner is not None and inner.names() == ["deep", "train.txt"]
    deep = inner.folder("deep")
    assert deep is not None
    file = deep.file("b.txt")
    assert file is not None and file.read() == b"beta"
    assert file.label.endswith("0/deep/b.txt")


def test_the_only_folder_of_an_archive_is_the_folder(tmp_path: Path) -> None:
    write_tar(tmp_path / "d.tar", {"d/0/x.txt": b"1", "d/1/x.txt": b"2"}, "w")
    assert ArchiveFolder.open(tmp_path / "d.tar").names() == ["0", "1"]
    write_tar(tmp_path / "e.tar", {"x.txt": b"1"}, "w")
    assert ArchiveFolder.open(tmp_path / "e.tar").names() == ["x.txt"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_truncated_archive_is_never_read_as_a_shorter_one(tmp_path: Path, mode: str) -> None:
    whole = tmp_path / "whole.tar"
    write_tar(whole, {f"{i}/train.txt": bytes([65 + i]) * 700 for i in range(3)}, mode)
    content = whole.read_bytes()
    names = open_folder(whole).names()
    assert names == ["0", "1", "2"]
    path = tmp_path / "cut.tar"
    for cut in [*range(0, len(content), max(len(content) // 50, 1)), 512, 1536, 2048, 3584, 4096]:
        path.write_bytes(content[:cut])
        found = None
        with contextlib.suppress(DataError):
            found = open_folder(path).names()
        # Read whole, where only the padding after the archive's end is gone, or not at all.
        assert found in (None, names)
        if cut < len(content) // 2:
            assert found is None


def test_a_changed_byte_in_a_compressed_archive_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.tar.gz"
    write_tar(path, {"0/train.txt": b"a\tb\tc\n" * 50}, "w:gz")
    content = path.read_bytes()
    for at in range(len(content) - 8, len(content)):  # checksum and length at the end
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(DataError, match="damaged archive"):
            open_folder(path)


def test_something_else_with_the_ending_of_an_archive(tmp_path: Path) -> None:
    for name in ("d.tar.gz", "d.tar"):
        (tmp_path / name).write_bytes(b"this is not an archive")
        with pytest.raises(DataError, match=rf"{name}: damaged archive"):
            open_folder(tmp_path / name)


def test_damaged_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(range(256)) * 40)
    changed = packed[:-8] + b"\0\0\0\0" + packed[-4:]  # the checksum
    for content in (packed[:-1], packed[: len(packed) // 2], changed, b"plain text", packed[:3]):
        path = tmp_path / "x.txt.gz"
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"x\.txt\.gz: damaged compressed file \("):
            SourceFile.on_disk(path).read()


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt: cannot be read \(No such file"):
        SourceFile.on_disk(tmp_path / "gone.txt").read()


def test_no_such_folder(tmp_path: Path) -> None:
    for name in ("none", "none.tar.gz"):
        with pytest.raises(UserError, match=rf"{name}: no such file, folder or archive"):
            open_folder(tmp_path / name)


def test_numbered(tmp_path: Path) -> None:
    folder = DiskFolder(tmp_path)
    assert numbered(folder, {1: "1.tsv", 0: "0.tsv", 2: "2.csv"}, "file") == [
        "0.tsv",
        "1.tsv",
        "2.csv",
    ]
    with pytest.raises(DataError, match=r"file 1 is missing; found 0.tsv, 2.tsv \(counted from 0"):
        numbered(folder, {0: "0.tsv", 2: "2.tsv"}, "file")
    with pytest.raises(DataError, match="sub-folder 0 is missing; found 1"):
        numbered(folder, {1: "1"}, "sub-folder")


@pytest.mark.parametrize(
    ("name", "ending"),
    [("a/b.c/x.TSV", ".tsv"), ("x.csv.gz", ".csv"), ("x.npz", ".npz"), ("x", ""), ("x.gz", "")],
)
def test_ending(name: str, ending: str) -> None:
    assert SourceFile(name, io.BytesIO).ending == ending
