"""What a server may send instead of a published file, and what becomes of it: one message."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicgrl.datasets import published_dataset
from dicgrl.datasets.fetch import fetch
from dicgrl.datasets.growth import LKGE_DATASETS
from dicgrl.datasets.locate import cache_folder, find_dataset
from dicgrl.datasets.paper import PAPER_DATASETS, PaperDataset
from dicgrl.datasets.pins import Pin, digest_of, pins_of
from dicgrl.errors import FailureError
from dicgrl.readers.sources import open_folder
from tests.datasets.test_fetch import FILES, LARGE, TINY, at
from tests.local_server import LocalServer, serving

PINS = {file: Pin(digest_of(io.BytesIO(content)), len(content)) for file, content in FILES.items()}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """Has the files of a dataset that are pinned."""
    monkeypatch.setattr("dicgrl.datasets.fetch._PAUSE", 0)
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(PaperDataset, "pins", property(lambda _: PINS))
    with serving({at(file): content for file, content in FILES.items()}) as server:
        monkeypatch.setenv("DICGRL_SOURCE", server.address)
        yield server


def on_disk() -> int:
    return sum(path.stat().st_size for path in cache_folder().rglob("*") if path.is_file())


def refused() -> str:
    with pytest.raises(FailureError) as error:
        fetch(TINY, timeout=10)
    assert find_dataset("tiny") is None
    assert "\n" not in str(error.value) and len(str(error.value)) < 500
    return str(error.value)


def test_what_was_pinned_is_taken(server: LocalServer) -> None:
    server.files[at("1/test.txt")] = FILES["1/test.txt"].replace(b"\n", b"\r\n")  # the same fields
    assert fetch(TINY) == find_dataset("tiny")


@pytest.mark.parametrize("file", [LARGE, "1/valid.txt"])
def test_another_content_with_the_right_counts_is_refused(server: LocalServer, file: str) -> None:
    rows = FILES[file].splitlines(keepends=True)
    head, relation, tail = rows[-1].split()
    server.files[at(file)] = b"".join(rows[:-1]) + b"\t".join([tail, relation, head]) + b"\n"
    said = refused()
    assert f"removed: {file} has the right counts but different content" in said
    assert on_disk() == 0


@pytest.mark.parametrize("length", ["abc", "-5", "1e3", "", "9" * 400, "\u0663", "12, 12"])
def test_a_length_that_is_none(server: LocalServer, length: str) -> None:
    server.faults[at(LARGE)] = [f"length {length.encode().decode('latin-1')}"] * 3
    assert "as the length of the file, 3 times" in refused()
    assert fetch(TINY)  # by the next run, from what was kept


@pytest.mark.parametrize(
    "said", ["bytes x-y/z", "", "bytes " + "9" * 5_000 + "-1/2", "bytes 0--1/5", "items 0-4/5"]
)
def test_a_range_that_is_none(server: LocalServer, said: str) -> None:
    server.faults[at(LARGE)] = ["cut", f"range {said}"]
    assert fetch(TINY)  # it is asked for from its beginning
    asked = [wanted for path, wanted in server.requests if path == at(LARGE)]
    assert asked == [None, asked[1], None] and asked[1]


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "http://[bad",
        "http://127.0.0.1:abc/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:-1/",
        "data:text/plain,x",
        f"http://{'a' * 80}.invalid/",
        "http://127.0.0.1:1/",
        "http://127.0.0.1/\x1b[2J",
    ],
)
def test_an_address_that_leads_nowhere(server: LocalServer, address: str) -> None:
    server.faults[at(LARGE)] = [f"redirect {address}"] * 3
    assert LARGE in refused()
    server.faults.clear()
    assert fetch(TINY)


def test_an_address_that_leads_in_a_circle(server: LocalServer) -> None:
    server.faults[at(LARGE)] = [f"redirect {at(LARGE)}"] * 100
    assert "302" in refused()
    assert len(server.requests) < 50


def test_a_redirect_is_followed(server: LocalServer) -> None:
    server.files["/elsewhere"] = FILES[LARGE]
    server.faults[at(LARGE)] = ["redirect /elsewhere"]
    assert fetch(TINY)


@pytest.mark.parametrize("fault", ["endless", f"length {1 << 40}"])
def test_an_endless_body_does_not_fill_the_disk(server: LocalServer, fault: str) -> None:
    server.faults[at(LARGE)] = [fault] * 3
    most = PINS[LARGE].most
    assert f"more than {most:,} bytes, which the file cannot have" in refused()
    assert on_disk() <= sum(pin.most for pin in PINS.values())
    assert [path for path, _ in server.requests].count(at(LARGE)) == 1
    server.faults.clear()
    assert fetch(TINY)


@given(st.lists(st.lists(st.text("ab", min_size=1), min_size=1)), st.sampled_from(["\n", "\r\n"]))
def test_a_digest_is_of_the_fields(rows: list[list[str]], end: str) -> None:
    plain = "\n".join("\t".join(row) for row in rows)
    other = end.join("  ".join(row) + " " for row in rows) + end * 3
    digest = digest_of(io.BytesIO(plain.encode()))
    assert digest_of(io.BytesIO(other.encode())) == digest
    changed = [*rows, ["c"]]
    text = "\n".join("\t".join(row) for row in changed)
    assert digest_of(io.BytesIO(text.encode())) != digest


@pytest.mark.parametrize("name", [*PAPER_DATASETS, *LKGE_DATASETS])
def test_every_file_is_pinned(name: str) -> None:
    assert list(pins_of(name)) == published_dataset(name).files
    assert all(re.fullmatch("[0-9a-f]{64}", pin.digest) for pin in pins_of(name).values())


@pytest.mark.parametrize("name", ["cora", "WN18RR", "HYBRID"])
def test_pins_are_those_of_the_published_files(name: str, paper_data: Path) -> None:
    place = find_dataset(name)
    if place is None:
        pytest.skip(f"{name} is not in {paper_data}")
    folder = open_folder(place)
    for path, pin in pins_of(name).items():
        *above, file = path.split("/")
        inner = folder.folder(above[0]) if above else folder
        found = inner.file(file) if inner else None
        assert found is not None
        assert Pin(digest_of(io.BytesIO(found.read())), len(found.read())) == pin
