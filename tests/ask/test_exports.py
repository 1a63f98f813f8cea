"""Vectors for other programs: the same numbers in every format, and indexes that follow a run."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from safetensors.numpy import load_file

from dicgrl import DataError, Learner, UserError, read_stream
from dicgrl.ask.exports import Takeout, indexes, write_takeout
from dicgrl.ask.exports.index_kinds import VectorIndex, index_named
from dicgrl.ask.exports.neighbours import nearest_rows
from dicgrl.ask.exports.takeout import Row
from dicgrl.common import optional
from dicgrl.jobs.export import export_run
from tests.tiny import learner_of, taught

KINDS = ("links", "divided", "nodes")


@pytest.fixture(scope="module", params=KINDS)
def learner(request: pytest.FixtureRequest) -> Learner:
    learner = taught(learner_of(request.param), 2)
    learner.names.update({learner.ask.vectors()[0].labels([1])[0]: "Number One"})
    return learner


def parquet_rows(path: Path) -> list[dict]:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict] = parquet.read_table(path).to_pylist()
    return rows


def words_in(path: Path) -> dict[str, list[float]]:
    """As word2vec programs read it."""
    head, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    found = {}
    for line in lines:
        word, *numbers = line.split(" ")
        found[word] = list(map(float, numbers))
    assert head.split() == [str(len(lines)), str(len(numbers))] and len(found) == len(lines)
    return found


def test_all_formats_hold_the_same_vectors(learner: Learner, tmp_path: Path) -> None:
    place = tmp_path / "out"
    files = learner.export(place, format="safetensors, npy,parquet,word2vec", license="cc0-1.0")
    assert files == sorted(path.name for path in place.iterdir())
    arrays, labels = learner.ask.arrays()
    stored = load_file(place / "vectors.safetensors")
    assert stored.keys() == arrays.keys()
    for name, array in arrays.items():
        expected = array.detach().numpy()
        assert np.array_equal(stored[name], expected)
        assert np.array_equal(np.load(place / f"{name}.npy"), expected)
    for name, vocabulary in labels.items():
        flat = arrays[name].detach().flatten(1).numpy()
        rows = parquet_rows(place / f"{name}.parquet")
        assert [row["id"] for row in rows] == list(range(len(vocabulary)))
        assert [row["label"] for row in rows] == list(vocabulary)
        assert [row["name"] for row in rows] == [learner.names.of(x) for x in vocabulary]
        assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), flat)
        words = words_in(place / f"{name}.txt")
        assert list(words) == [label.replace(" ", "_") for label in vocabulary]
        assert np.array_equal(np.array(list(words.values()), np.float32), flat)


def test_the_model_card_is_what_the_hub_reads(learner: Learner, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    learner.export(tmp_path / "out", format="safetensors", license="cc0-1.0")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    _, header, card = text.split("---\n", 2)
    told = yaml.safe_load(header)
    assert told["library_name"] == "dicgrl" and told["license"] == "cc0-1.0"
    (result,) = told["model-index"][0]["results"]
    whole = learner.evaluation().whole
    assert {each["type"]: each["value"] for each in result["metrics"]} == {
        key: value for key, value in whole.items() if key in ("accuracy", "mrr") or key[-1] in "130"
        if "others" not in key
    }  # fmt: skip
    for heading in ("Data", "Protocol", "Numbers", "Licence", "Files"):
        assert f"## {heading}\n" in card
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["settings"] == learner.settings.as_dict()


@given(
    some.integers(2, 30).flatmap(
        lambda n: some.lists(
            some.lists(some.integers(-3, 3), min_size=3, max_size=3), min_size=n, max_size=n
        )
    ),
    some.integers(1, 5),
)
def test_neighbours_are_the_nearest_directions(rows: list[list[int]], k: int) -> None:
    vectors = np.array(rows, np.float32)
    found = nearest_rows(vectors, k)
    length = np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
    for at, (near, far) in enumerate(zip(found.rows, found.distances, strict=True)):
        distance = 1 - vectors @ vectors[at] / length / length[at]
        assert at not in near and len(set(near.tolist())) == len(near) == min(k, len(rows) - 1)
        assert distance[near] == pytest.approx(far, abs=1e-5)
        others = np.delete(distance, at)
        assert np.sort(others)[: len(near)] == pytest.approx(far, abs=1e-5)


def test_neighbours_and_places_are_columns_that_embedding_atlas_reads(tmp_path: Path) -> None:
    rows = {"entities": [Row(i, f"e {i}", f"e {i}") for i in range(4)]}
    vectors = torch.tensor([[1.0, 0], [0, 1], [2, 1], [5, 5]])
    takeout = Takeout(
        {"entities": vectors},
        rows,
        {"entities": np.array([True, True, True, False])},
        places=lambda name, ids: np.stack([ids, ids * 2], axis=1) if name == "entities" else None,
        neighbours=2,
    )
    write_takeout(takeout, tmp_path / "out", "parquet,word2vec")
    found = parquet_rows(tmp_path / "out" / "entities.parquet")
    assert [(row["x"], row["y"]) for row in found] == [(0, 0), (1, 2), (2, 4)]
    assert found[0]["neighbors"]["ids"] == [2, 1]  # rows of the file; the fourth is no answer
    assert found[0]["neighbors"]["distances"] == pytest.approx([1 - 2 / 5**0.5, 1])
    assert list(words_in(tmp_path / "out" / "entities.txt")) == ["e_0", "e_1", "e_2"]


def test_words_stay_apart(tmp_path: Path) -> None:
    labels = ["a b", "a_b", "a_b#1", "a  b"]
    rows = {"x": [Row(i, label, label) for i, label in enumerate(labels)]}
    takeout = Takeout({"x": torch.eye(4)}, rows, {"x": np.ones(4, bool)})
    write_takeout(takeout, tmp_path / "out", "word2vec")
    words = words_in(tmp_path / "out" / "x.txt")
    assert [words[word].index(1) for word in words] == [0, 1, 2, 3]


def test_libraries_that_are_missing_are_named(
    learner: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    for name, extra in (("parquet", "arrow"), ("parquet,npy", "arrow")):
        with pytest.raises(UserError, match=rf"pip install 'dicgrl\[{extra}\]'"):
            learner.export(tmp_path / "out", format=name)
    for kind in VectorIndex.registry:
        extra = "lance" if kind == "lance" else "index"
        with pytest.raises(UserError, match=rf"pip install 'dicgrl\[{extra}\]'"):
            index_named(kind)(3)
    with pytest.raises(UserError, match=r"pip install 'dicgrl\[frames\]'"):
        learner.similar(learner.ask.vectors()[0].labels([0])[0]).to_frame("polars")
    with pytest.raises(UserError, match=r"pip install 'dicgrl\[sql\]'"):
        read_stream("postgresql://host/x")
    with pytest.raises(UserError, match=r"pip install 'dicgrl\[adbc\]'"):
        read_stream("adbc+postgresql://host/x")
    assert not (tmp_path / "out").exists()


def test_formats_that_are_none_write_nothing(learner: Learner, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown format of vectors 'parket'; did you mean"):
        learner.export(tmp_path / "out", format="npy,parket")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose rows move, appear, lose their facts, are renamed and merged."""
    folder = tmp_path_factory.mktemp("indexed") / "run"
    learner = learner_of("links", "lower")
    learner.learn([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a"), ("d", "s", "a")])
    learner.save(folder)
    learner.learn([("e", "r", "a"), ("f", "s", "e")])
    learner.save(folder)
    learner.forget([("d", "s", "a")])
    learner.save(folder)
    learner.rename("c", "see")
    learner.save(folder)
    learner.merge("a", "b")
    learner.save(folder)
    return folder


def held(folder: Path, kind: str, learner: Learner) -> set[int]:
    """Ids in an index, each of which finds its own vector."""
    about = json.loads((folder / "index.json").read_text())
    index = index_named(kind)(about["width"])
    index.read(folder / f"entities.{kind}")
    vectors = learner.ask.vectors()[1].detach().flatten(1).numpy()
    lines = (folder / "entities.tsv").read_text().splitlines()
    told = [line.split("\t") for line in lines]
    assert [label for _, label, _ in told] == learner.ask.vectors()[0].labels(
        [int(number) for number, *_ in told]
    )
    ids = {int(number) for number, *_ in told}
    assert len(index) == len(ids) == about["rows"]
    assert about["version"] == learner.version
    assert set(index.search(vectors[0], 100)) == ids
    for number in ids:
        near = index.search(vectors[number], 1)[0]
        cosine = torch.cosine_similarity(*torch.from_numpy(vectors[[near, number]]), dim=0)
        assert float(cosine) == pytest.approx(1, abs=1e-5)
    return ids


@pytest.fixture(params=[*sorted(VectorIndex.registry), "small lance"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kind of index whose library is there; of LanceDB a small one always is."""
    name: str = request.param
    if name == "small lance":
        small = pytest.importorskip("tests.ask.small_lancedb")
        monkeypatch.setitem(sys.modules, "lancedb", small)
        return "lance"
    pytest.importorskip({"lance": "lancedb"}.get(name, name))
    return name


@pytest.mark.parametrize("begin", [1, 2, 4])
def test_an_index_that_was_told_what_changed_is_one_built_anew(
    history: Path, tmp_path: Path, kind: str, begin: int
) -> None:
    export_run(history, tmp_path / "index", index=kind, at=begin)
    newest = Learner.load(history, device="cpu")
    for version in range(begin, newest.version):
        export_run(history, tmp_path / "index", index=kind, since=version, at=version + 1)
        at = Learner.load(history, at=version + 1, device="cpu")
        held(tmp_path / "index", kind, at)
    export_run(history, tmp_path / "anew", index=kind)
    export_run(history, tmp_path / "index", index=kind, since=newest.version)  # again: nothing
    assert held(tmp_path / "index", kind, newest) == held(tmp_path / "anew", kind, newest)
    gone = newest.trainer.graph.retired("entities").tolist()
    assert gone and not held(tmp_path / "index", kind, newest) & set(gone)


def test_indexes_that_cannot_be_updated_stay_as_they_are(history: Path, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    place = tmp_path / "index"
    with pytest.raises(UserError, match="holds no index; leave out --since to build one"):
        export_run(history, place, index="usearch", since=1)
    export_run(history, place, index="usearch", at=1)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    for arguments, said in (
        ({"since": 2}, "the index is of version 1: say --since 1"),
        ({}, "holds an index of version 1; --since 1 updates it"),
        ({"since": 1, "index": "faiss"}, "the index is of usearch, not faiss"),
        ({"since": 1, "format": "npy"}, "one at a time"),
        ({"index": "usarch"}, "unknown index 'usarch'; did you mean 'usearch'"),
    ):
        with pytest.raises(UserError, match=said):
            export_run(history, place, **{"index": "usearch", **arguments})  # type: ignore[arg-type]
    other = learner_of("links", "lower", seed=1)
    other.learn([("a", "r", "b")])
    other.save(tmp_path / "other")
    with pytest.raises(UserError, match="belongs to another run"):
        export_run(tmp_path / "other", place, index="usearch", since=1)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    (place / "entities.usearch").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"not the file that index\.json speaks of"):
        export_run(history, place, index="usearch", since=1)
    (place / "index.json").write_text("{}")
    with pytest.raises(DataError, match=r"index\.json: damaged"):
        export_run(history, place, index="usearch", since=1)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_an_update_that_is_killed_can_be_repeated(
    history: Path, tmp_path: Path, kind: str, at: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "index"
    export_run(history, place, index=kind, at=2)
    whole, written = indexes.replacing_file, 0

    @contextmanager
    def killed(path: Path) -> Iterator[Path]:
        nonlocal written
        with whole(path) as temporary:
            yield temporary
        written += 1
        if written > at:
            raise KeyboardInterrupt

    monkeypatch.setattr(indexes, "replacing_file", killed)
    for _ in range(times):
        written = 0
        with contextlib.suppress(KeyboardInterrupt):
            export_run(history, place, index=kind, since=2)
        if indexes.index_version(place, kind) != 2:
            return  # it was done before it was killed
    monkeypatch.setattr(indexes, "replacing_file", whole)
    export_run(history, place, index=kind, since=2)
    held(place, kind, Learner.load(history, device="cpu"))


def test_a_damaged_table_is_one_message(history: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    export_run(history, tmp_path / "index", index="lance", at=1)
    shutil.rmtree(tmp_path / "index" / "entities.lance" / "_versions")
    with pytest.raises(
        DataError, match=r"entities\.lance: damaged.*build the index again"
    ) as raised:
        export_run(history, tmp_path / "index", index="lance", since=1)
    assert "\n" not in str(raised.value)
