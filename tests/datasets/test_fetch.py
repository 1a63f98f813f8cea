"""Downloads from a real local server that also misbehaves: all or nothing, and resumable."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dicgrl.datasets.fetch import fetch
from dicgrl.datasets.locate import cache_folder, find_dataset
from dicgrl.datasets.paper import PAPER_DATASETS, REPOSITORY, REVISION, PaperDataset
from dicgrl.errors import FailureError, UserError
from tests.local_server import PATIENCE, LocalServer, serving

LARGE = "0/train.txt"  # of several network blocks, so that a transfer has a middle


def lines(*rows: str) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def knowledge_files() -> dict[str, bytes]:
    """Two parts: 100 entities and one more, 8,000 training triples and two more."""
    entities = [f"entity-number-{i:05d}" for i in range(101)]
    rows = [f"{entities[i // 100]}\trelation\t{entities[i % 100]}" for i in range(8_000)]
    return {
        "0/entity2id.txt": lines(*(f"{label}\t{i}" for i, label in enumerate(entities[:100]))),
        "0/relation2id.txt": lines("relation\t0"),
        LARGE: lines(*rows),
        "0/valid.txt": lines(f"{entities[90]}\trelation\t{entities[1]}"),
        "0/test.txt": lines(f"{entities[91]}\trelation\t{entities[1]}"),
        "1/entity2id.txt": lines(*(f"{label}\t{i}" for i, label in enumerate(entities))),
        "1/relation2id.txt": lines("relation\t0"),
        "1/train.txt": lines(
            f"{entities[100]}\trelation\t{entities[0]}", f"{entities[1]}\trelation\t{entities[100]}"
        ),
        "1/valid.txt": lines(f"{entities[100]}\trelation\t{entities[2]}"),
        "1/test.txt": lines(f"{entities[100]}\trelation\t{entities[3]}"),
    }


FILES = knowledge_files()
COUNTS = {
    "entities": (100, 1),
    "relations": (1, 1),
    "train": (8_000, 2),
    "valid": (1, 1),
    "test": (1, 1),
    "accumulated_entities": (100, 101),
}
TINY = PaperDataset("tiny", "link-prediction", "data/tiny", COUNTS)

NETWORK_FILES = {
    "features.txt": lines("a 1 0", "b 0 1", "c 1 1", "d 0 1", "e 0 0", "f 0 1"),
    "labels.txt": lines("a 0", "b 1", "c 0", "d 1", "e 0", "f 1"),
    "0/train.txt": lines("a 0"),
    "0/valid.txt": lines("b 1"),
    "0/test.txt": lines("c 0"),
    "0/edgelist.txt": lines("a b", "b c"),
    "1/train.txt": lines("d 1"),
    "1/valid.txt": lines("e 0"),
    "1/test.txt": lines("f 1"),
    "1/edgelist.txt": lines("d a"),
}
NETWORK_COUNTS = {
    "nodes": (3, 3),
    "edges": (2, 1),
    "train": (1, 1),
    "valid": (1, 1),
    "test": (1, 1),
}
NETWORK = PaperDataset("net", "node-classification", "net", NETWORK_COUNTS, classes=2)


def at(file: str) -> str:
    return f"/data/tiny/{file}"


@pytest.fixture(autouse=True)
def _no_waiting_and_no_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dicgrl.datasets.fetch._PAUSE", 0)
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    with serving({at(file): content for file, content in FILES.items()}) as server:
        monkeypatch.setenv("DICGRL_SOURCE", server.address)
        yield server


def contents(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def nothing_is_here() -> bool:
    cache = cache_folder()
    visible = [entry for entry in cache.iterdir() if not entry.name.startswith(".")]
    return find_dataset("tiny") is None and visible == []


def refused(timeout: float = PATIENCE) -> str:
    """The message of a fetch that fails; what it leaves does not look like a dataset."""
    with pytest.raises(FailureError) as error:
        fetch(TINY, timeout=timeout)
    assert nothing_is_here()
    return str(error.value)


def succeeds() -> None:
    """A fetch brings the exact files and leaves nothing else in the cache."""
    place = fetch(TINY)
    assert place == find_dataset("tiny") == cache_folder() / "tiny"
    assert contents(place) == FILES
    assert list(cache_folder().iterdir()) == [place]


def asked(server: LocalServer) -> list[str]:
    return [path.removeprefix(at("")) for path, _ in server.requests]


def test_brings_the_exact_files_asking_once_for_each(server: LocalServer) -> None:
    succeeds()
    assert sorted(asked(server)) == sorted(FILES)
    assert {wanted for _, wanted in server.requests} == {None}


def test_brings_a_network(server: LocalServer) -> None:
    server.files = {f"/net/{file}": content for file, content in NETWORK_FILES.items()}
    assert contents(fetch(NETWORK)) == NETWORK_FILES


def test_counts_of_a_network_include_its_classes(server: LocalServer) -> None:
    server.files = {f"/net/{file}": content for file, content in NETWORK_FILES.items()}
    with pytest.raises(FailureError, match="2 classes; published: 3"):
        fetch(replace(NETWORK, classes=3))
    assert find_dataset("net") is None


def test_what_is_there_is_not_asked_for_again(server: LocalServer) -> None:
    succeeds()
    server.requests.clear()
    succeeds()
    assert server.requests == []


def test_the_dataset_appears_only_when_everything_has_arrived(server: LocalServer) -> None:
    seen = {}

    def look(file: str, done: int, total: int | None) -> None:
        seen[file] = find_dataset("tiny")

    fetch(TINY, look)
    assert seen == dict.fromkeys(FILES)


def test_progress_grows_to_the_size_of_each_file(server: LocalServer) -> None:
    steps: dict[str, list[int]] = {}
    totals: dict[str, set[int | None]] = {}

    def note(file: str, done: int, total: int | None) -> None:
        steps.setdefault(file, []).append(done)
        totals.setdefault(file, set()).add(total)

    fetch(TINY, note)
    assert {file: done[-1] for file, done in steps.items()} == {f: len(c) for f, c in FILES.items()}
    assert totals == {file: {len(content)} for file, content in FILES.items()}
    assert len(steps[LARGE]) > 1 and all(done == sorted(done) for done in steps.values())


def test_a_missing_file_is_named_and_asked_for_once(server: LocalServer) -> None:
    missing = server.files.pop(at("1/test.txt"))
    message = refused()
    assert server.address + at("1/test.txt") in message and "404" in message
    assert asked(server).count("1/test.txt") == 1

    server.files[at("1/test.txt")] = missing
    server.requests.clear()
    succeeds()
    assert asked(server) == ["1/test.txt"]  # all others were complete


@pytest.mark.parametrize("code", ["500", "503", "429"])
def test_a_passing_failure_is_tried_again(server: LocalServer, code: str) -> None:
    server.faults[at(LARGE)] = [code]
    succeeds()
    assert asked(server).count(LARGE) == 2


def test_a_lasting_failure_is_given_up(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["500"] * 9
    message = refused()
    assert server.address + at(LARGE) in message and "500" in message
    assert asked(server).count(LARGE) == 3


def test_a_cut_transfer_is_continued_in_the_same_run(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut"]
    succeeds()
    half = len(FILES[LARGE]) // 2
    assert [wanted for path, wanted in server.requests if path == at(LARGE)] == [
        None,
        f"bytes={half}-",
    ]


def test_a_transfer_cut_for_good_is_continued_by_the_next_run(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut"] * 3
    message = refused()
    assert "run the command again" in message and f"of {len(FILES[LARGE]):,} bytes" in message
    before = asked(server)[:-3]
    [partial] = cache_folder().rglob("*.part")
    arrived = partial.read_bytes()
    assert FILES[LARGE].startswith(arrived)

    server.requests.clear()
    succeeds()
    assert server.requests[0] == (at(LARGE), f"bytes={len(arrived)}-")
    assert not set(asked(server)) & set(before)


def test_a_server_that_knows_no_ranges_starts_the_file_again(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut", "no range"]
    succeeds()
    assert asked(server).count(LARGE) == 2


def test_an_answer_to_another_range_is_not_taken(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut", "other range"]
    succeeds()
    ranges = [wanted for path, wanted in server.requests if path == at(LARGE)]
    assert len(ranges) == 3 and ranges[2] is None


def test_a_range_that_ends_early_is_continued(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut", "short range"]
    succeeds()
    half, rest = len(FILES[LARGE]) // 2, len(FILES[LARGE]) - len(FILES[LARGE]) // 2
    assert server.requests[asked(server).index(LARGE) + 2][1] == f"bytes={half + rest // 2}-"


def test_a_partial_file_that_is_too_long_is_dropped(server: LocalServer) -> None:
    server.files[at(LARGE)] = FILES[LARGE] * 4
    server.faults[at(LARGE)] = ["cut"] * 3
    refused()
    server.files[at(LARGE)] = FILES[LARGE]
    server.requests.clear()
    succeeds()  # the range is answered by 416
    assert [wanted is None for _, wanted in server.requests[:2]] == [False, True]


def test_a_partial_file_that_is_whole_already_is_no_obstacle(server: LocalServer) -> None:
    """A process that dies after the last byte and before the renaming leaves this."""
    server.faults[at("1/test.txt")] = ["404"]
    refused()
    [whole] = cache_folder().rglob("0/train.txt")
    whole.rename(whole.with_name("train.txt.part"))
    succeeds()


@pytest.mark.parametrize("fault", ["silent", "hang"])
def test_a_server_that_hangs_is_given_up(server: LocalServer, fault: str) -> None:
    server.faults[at(LARGE)] = [fault] * 3
    message = refused(timeout=0.2)
    assert "timed out" in message and at(LARGE) in message
    assert asked(server).count(LARGE) == 3
    succeeds()


def test_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("DICGRL_SOURCE", f"http://127.0.0.1:{port}")
    message = refused()
    assert f"127.0.0.1:{port}" in message and "refused" in message.lower()


@pytest.mark.parametrize("file", ["0/entity2id.txt", LARGE, "1/valid.txt"])
def test_a_page_instead_of_a_file(server: LocalServer, file: str) -> None:
    server.faults[at(file)] = ["html"]
    message = refused()
    assert "tiny is damaged" in message and f"{file}:1" in message and "DOCTYPE" in message
    assert list(cache_folder().iterdir()) == []  # the next run starts from nothing
    succeeds()


def test_a_page_instead_of_the_features(server: LocalServer) -> None:
    server.files = {f"/net/{file}": content for file, content in NETWORK_FILES.items()}
    server.faults["/net/features.txt"] = ["html"]
    with pytest.raises(FailureError, match=r"features\.txt:1"):
        fetch(NETWORK)
    assert find_dataset("net") is None


@pytest.mark.parametrize(
    ("file", "content", "difference"),
    [
        ("1/test.txt", FILES["1/train.txt"], "part 1: 2 test; published: 1"),
        ("1/train.txt", FILES["1/test.txt"], "part 1: 1 train; published: 2"),
        (LARGE, FILES[LARGE][: FILES[LARGE].index(b"\n") + 1], "part 0: 1 train; published: 8000"),
        ("0/entity2id.txt", FILES["1/entity2id.txt"], "part 0: 101 entities; published: 100"),
    ],
    ids=["more", "fewer", "one line", "entities"],
)
def test_a_well_formed_file_of_another_dataset(
    server: LocalServer, file: str, content: bytes, difference: str
) -> None:
    server.files[at(file)] = content
    assert difference in refused()
    assert list(cache_folder().iterdir()) == []
    server.files[at(file)] = FILES[file]
    succeeds()


def test_a_cut_that_no_length_gives_away_is_found_by_the_counts(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["cut, no length"]
    message = refused()
    assert "train" in message
    succeeds()


def test_a_file_that_changed_between_two_runs_is_not_published_mixed(server: LocalServer) -> None:
    server.files[at(LARGE)] = FILES[LARGE].replace(b"relation", b"other-relation")
    server.faults[at(LARGE)] = ["cut"] * 3
    refused()
    server.files[at(LARGE)] = FILES[LARGE]
    refused()
    succeeds()


def test_an_interruption_leaves_something_to_continue(server: LocalServer) -> None:
    def interrupt(file: str, done: int, total: int | None) -> None:
        if file == LARGE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(TINY, interrupt)
    assert nothing_is_here()
    server.requests.clear()
    succeeds()
    path, wanted = server.requests[0]
    assert path == at(LARGE) and wanted is not None


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_process_leaves_nothing_that_looks_like_a_dataset(server: LocalServer) -> None:
    server.faults[at(LARGE)] = ["hang"]
    script = (
        "from dicgrl.datasets.fetch import fetch\n"
        "from dicgrl.datasets.paper import PaperDataset\n"
        f"fetch(PaperDataset('tiny', 'link-prediction', 'data/tiny', {COUNTS!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + PATIENCE
        while not any(part.stat().st_size for part in cache_folder().rglob("train.txt.part")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait(PATIENCE)
    assert nothing_is_here()
    server.requests.clear()
    succeeds()
    path, wanted = server.requests[0]
    assert path == at(LARGE) and wanted is not None


@pytest.mark.parametrize("address", ["ftp://127.0.0.1", "mirror", "http://", "http://[bad"])
def test_a_source_that_is_no_web_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("DICGRL_SOURCE", address)
    with pytest.raises(UserError, match="DICGRL_SOURCE"):
        fetch(TINY)
    assert list(cache_folder().iterdir()) == []


def test_the_source_may_end_in_a_slash(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files = {f"/mirror{path}": content for path, content in server.files.items()}
    monkeypatch.setenv("DICGRL_SOURCE", f"{server.address}/mirror/")
    succeeds()


def test_the_authors_repository_is_pinned_to_a_commit() -> None:
    assert REPOSITORY.startswith("https://")
    assert len(REVISION) == 40 and int(REVISION, 16)
    folders = {name: dataset.folder for name, dataset in PAPER_DATASETS.items()}
    assert folders == {
        "FB15k-237": "data/FB15k-237",
        "WN18RR": "data/WN18RR",
        "cora": "NE/data/cora",
        "citeseer": "NE/data/citeseer",
        "pubmed": "NE/data/pubmed",
    }
