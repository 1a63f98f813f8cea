"""Small files that would take the whole memory are refused, by what they hold and not by what they
declare."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dicgrl import DataError, UserError, read_stream
from dicgrl.readers.bounds import UNPACKED_VARIABLE, BoundedStream, most_unpacked
from tests.readers.small_network import arrays

MIB = 1 << 20
ROOM = 300 * MIB  # beyond what a process has after its imports

_CHILD = """
import resource, sys
from pathlib import Path
from dicgrl import UserError, read_stream
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]),) * 2)
try:
    read_stream(sys.argv[1])
except UserError as error:
    print(error)
    sys.exit(2)
"""


def refused(path: Path, room: int = ROOM) -> str:
    """The message of a process that may take so much memory and no more."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), str(room)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, UNPACKED_VARIABLE: "0.026", "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (2, ""), done.stderr
    return done.stdout


def header(shape: str, kind: str = "<f8") -> bytes:
    """An NPY file that declares a shape and has no data."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def npz(path: Path, **contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return path


def saved(array: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(array), allow_pickle=False)
    return out.getvalue()


def declared_npz(folder: Path) -> Path:
    whole = {name: saved(array) for name, array in arrays().items()}
    return npz(folder / "x.npz", **whole | {"features": header("(50000000000000,)")})


def endless_gzip(folder: Path) -> Path:
    with gzip.open(folder / "x.tsv.gz", "wb", 1) as file:
        for _ in range(64):
            file.write(b"a\tb\tc\n" * (MIB // 6))
    return folder / "x.tsv.gz"


def one_line(folder: Path) -> Path:
    with gzip.open(folder / "x.tsv.gz", "wb", 1) as file:
        for _ in range(25):
            file.write(b"a" * MIB)
    return folder / "x.tsv.gz"


def one_line_of_csv(folder: Path) -> Path:
    return one_line(folder).rename(folder / "x.csv.gz")


def sparse_text(folder: Path) -> Path:
    with (folder / "x.tsv").open("wb") as file:
        file.truncate(1 << 40)
    return folder / "x.tsv"


def sparse_npz(folder: Path) -> Path:
    return sparse_text(folder).rename(folder / "x.npz")


def deflated_npz(folder: Path) -> Path:
    return npz(folder / "x.npz", features=header(f"({8 * MIB},)") + bytes(64 * MIB))


def packed_tar(folder: Path) -> Path:
    with tarfile.open(folder / "x.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("0/train.txt")
        info.size = 64 * MIB
        archive.addfile(info, io.BytesIO(b"\n" * info.size))
    return folder / "x.tar.gz"


def tar_of_nothing(folder: Path) -> Path:
    with gzip.open(folder / "x.tar.gz", "wb", 1) as file:
        block = b"".join(tarfile.TarInfo(f"{i}").tobuf() for i in range(1_000))
        for _ in range(128):
            file.write(block)
    return folder / "x.tar.gz"


def declared_tar(folder: Path) -> Path:
    """A name that says it is a terabyte long."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    (folder / "x.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT))
    return folder / "x.tar"


def sparse_tar(folder: Path) -> Path:
    """As GNU tar packs a file of a terabyte with nothing in it."""
    info = tarfile.TarInfo("0/train.txt")
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.name": "0/train.txt",
        "GNU.sparse.size": str(1 << 40),
        "GNU.sparse.map": f"0,0,{1 << 40},0",
    }
    with tarfile.open(folder / "x.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    return folder / "x.tar"


def gap_of_parts(folder: Path) -> Path:
    for name in ("0", "999999999999"):
        (folder / "x" / name).mkdir(parents=True)
        (folder / "x" / name / "train.txt").write_text("a\tb\tc\n")
    return folder / "x"


@pytest.mark.skipif(sys.platform != "linux", reason="a process is bounded by its /proc")
@pytest.mark.parametrize(
    ("bomb", "message"),
    [
        (declared_npz, "x.npz: not a NumPy file of plain arrays (an array [50000000000000] of"),
        (endless_gzip, "x.tsv.gz: holds more than 0.026 GB; DICGRL_MAX_UNPACKED (in GB,"),
        (one_line, "x.tsv.gz:1: the line is longer than 16 MiB"),
        (one_line_of_csv, "x.csv.gz:1: the line is longer than 16 MiB"),
        (sparse_text, "x.tsv:1: the line is longer than 16 MiB"),
        (sparse_npz, "x.npz: holds more than"),
        (deflated_npz, "x.npz: holds more than"),
        (packed_tar, "x.tar.gz: holds more than"),
        (tar_of_nothing, "x.tar.gz: holds more than"),
        (declared_tar, "x.tar: "),
        (sparse_tar, "x.tar: '0/train.txt' is a sparse file"),
        (gap_of_parts, "x: sub-folder 1 is missing; found 0, 999999999999"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_small_file_cannot_fill_the_memory(
    tmp_path: Path, bomb: Callable[[Path], Path], message: str
) -> None:
    assert message in refused(bomb(tmp_path))


def test_as_much_as_is_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\tc\n" * 1_000))
    monkeypatch.setenv(UNPACKED_VARIABLE, "0.000006")
    assert len(read_stream(path)[0].train) == 1_000
    monkeypatch.setenv(UNPACKED_VARIABLE, "0.000005999")
    with pytest.raises(DataError, match=r"x\.tsv\.gz: holds more than"):
        read_stream(path)
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))  # plain: in blocks
    assert len(read_stream(path.with_suffix(""))[0].train) == 1_000


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan", "inf", "1e30"])
def test_a_bound_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(UNPACKED_VARIABLE, text)
    with pytest.raises(UserError, match=f"{UNPACKED_VARIABLE} is '{text}'; expected a number of"):
        most_unpacked()


def test_the_bound_follows_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UNPACKED_VARIABLE, raising=False)
    monkeypatch.setattr("dicgrl.readers.bounds.free_on_host", lambda: 4_000)
    assert most_unpacked() == 1_000
    monkeypatch.setattr("dicgrl.readers.bounds.free_on_host", lambda: None)
    assert most_unpacked() > 1 << 60


def test_a_bounded_stream_reads_like_the_stream() -> None:
    content = b"one\ntwo\nthree"
    plain = io.BytesIO(content)
    bounded = BoundedStream(io.BytesIO(content), "x", len(content))
    for size in (2, 0, 10**18, 5):
        assert bounded.read(size) == plain.read(size)
        assert bounded.tell() == plain.tell()
    for stream in (bounded, plain):
        stream.seek(4)
    assert bounded.readline() == plain.readline() and bounded.readline(2) == plain.readline(2)
    assert bounded.read() == plain.read()
    with pytest.raises(DataError, match="x: holds more than"):
        bounded.seek(len(content) + 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_a_device_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.tsv")
    (tmp_path / "zero.tsv").symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"x\.tsv: the file is empty"):  # nobody writes to it
        read_stream(tmp_path / "x.tsv")
    for name in ("zero.tsv",):
        with pytest.raises(UserError, match=rf"{name}: is a device or a pipe; expected a file"):
            read_stream(tmp_path / name)
    (tmp_path / "0").mkdir()
    os.mkfifo(tmp_path / "0" / "train.txt")
    with pytest.raises(UserError, match=r"0/train\.txt: is a device or a pipe"):
        read_stream(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        read_stream([tmp_path / "x.tsv"])


@pytest.mark.parametrize("length", [1 << 63, -512, -1024])
def test_sizes_that_no_archive_has(tmp_path: Path, length: int) -> None:
    """Below zero they led back to the same file, again and again."""
    info = tarfile.TarInfo("0/train.txt")
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (length % (1 << 96)).to_bytes(12, "big")
    block[124] = 0o200 if length > 0 else 0o377
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    (tmp_path / "x.tar").write_bytes(bytes(block) * 3 + bytes(1_024))
    found: list[Exception] = []

    def read() -> None:
        try:
            read_stream(tmp_path / "x.tar")
        except UserError as error:
            found.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert found and "x.tar: " in str(found[0])
