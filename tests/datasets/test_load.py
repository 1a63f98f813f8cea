"""Streams by name and by path."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest

from dicgrl import (
    DataError,
    DataWarning,
    KnowledgeStream,
    NetworkStream,
    Stream,
    UserError,
    load_stream,
    read_stream,
)
from dicgrl.datasets import datasets, published_dataset
from dicgrl.datasets.locate import cache_folder

PAPER = ["FB15k-237", "WN18RR", "cora", "citeseer", "pubmed"]
GROWTH = ["ENTITY", "RELATION", "FACT", "HYBRID", "FB15k-237-nightly"]


@pytest.fixture(autouse=True)
def _only_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def write(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def facts(path: Path, count: int = 200) -> Path:
    """Triples over 20 entities, so that most of them may be set aside."""
    return write(path, *(f"e{i // 20}\tr\te{i % 20}" for i in range(count)))


def sizes(stream: Stream) -> list[tuple[int, int, int]]:
    return [(len(part.train), len(part.valid), len(part.test)) for part in stream]


def test_built_in_by_name() -> None:
    films, genres = load_stream("films"), load_stream("film-genres")
    assert isinstance(films, KnowledgeStream) and films.name == "films" and len(films) == 5
    assert isinstance(genres, NetworkStream) and genres.name == "film-genres" and len(genres) == 5


def test_list_of_datasets() -> None:
    known = {dataset.name: dataset for dataset in datasets()}
    assert list(known) == ["films", "film-genres", *PAPER, *GROWTH]
    for name in ("films", "film-genres"):
        place = known[name].place
        assert known[name].built_in and place is not None and place.exists()
        assert load_stream(name).task == known[name].task
    assert {known[name].place for name in (*PAPER, *GROWTH)} == {None}
    assert {known[name].task for name in GROWTH} == {"link-prediction"}
    links, nodes = "link-prediction", "node-classification"
    assert [known[name].task for name in PAPER] == [links, links, nodes, nodes, nodes]


def test_list_says_where_a_dataset_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache_folder() / "cora").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pubmed.tar.gz").touch()
    monkeypatch.setenv("DICGRL_DATA", str(tmp_path / "data"))
    places = {dataset.name: dataset.place for dataset in datasets()}
    assert places["cora"] == cache_folder() / "cora"
    assert places["pubmed"] == tmp_path / "data" / "pubmed.tar.gz"
    assert places["citeseer"] is None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("film", "films"), ("Films", "films"), ("fb15k-237", "FB15k-237"), ("wn18", "WN18RR")],
)
def test_an_unknown_name_suggests_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(UserError, match=f"unknown dataset '{wrong}'; did you mean '{right}'"):
        load_stream(wrong)


@pytest.mark.parametrize("wrong", ["xyzzy", ""])
def test_an_unknown_name_lists_all(wrong: str) -> None:
    with pytest.raises(UserError, match=f"unknown dataset '{wrong}'") as error:
        load_stream(wrong)
    assert "did you mean" not in str(error.value)
    assert all(name in str(error.value) for name in ["films", "film-genres", *PAPER, *GROWTH])


@pytest.mark.parametrize("path", ["./films", "some/where", "facts.tsv", "..\\up"])
def test_a_missing_path_is_not_called_a_dataset(path: str) -> None:
    with pytest.raises(UserError, match="no such file or folder") as error:
        load_stream(path)
    assert str(error.value).startswith(path)


def test_a_missing_path_object_is_not_called_a_dataset() -> None:
    with pytest.raises(UserError, match="xyzzy: no such file or folder"):
        load_stream(Path("xyzzy"))


def test_a_name_counts_before_a_folder_unless_it_is_a_path(tmp_path: Path) -> None:
    facts(tmp_path / "films" / "0.tsv")
    assert len(load_stream("films")) == 5
    for path in ("./films", tmp_path / "films", str(tmp_path / "films"), Path("films")):
        stream = load_stream(path)
        assert sizes(stream) == [(200, 0, 0)] and stream.name == "films"


def test_a_path_needs_no_sign_of_a_path(tmp_path: Path) -> None:
    facts(tmp_path / "mine" / "0.tsv")
    assert sizes(load_stream("mine")) == [(200, 0, 0)]


@pytest.mark.parametrize("name", PAPER)
def test_a_dataset_that_is_not_here_says_how_to_get_it(name: str) -> None:
    with pytest.raises(UserError) as error:
        load_stream(name)
    message = str(error.value)
    assert f"dicgrl datasets fetch {name}" in message
    assert "DICGRL_DATA" in message and str(cache_folder()) in message


def test_a_dataset_of_the_cache_is_loaded() -> None:
    write(cache_folder() / "WN18RR" / "0" / "train.txt", "a\tr\tb")
    stream = load_stream("WN18RR")
    assert stream.name == "WN18RR" and sizes(stream) == [(1, 0, 0)]


def test_the_data_folder_counts_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cache_folder() / "WN18RR" / "0" / "train.txt", "a\tr\tb")
    write(tmp_path / "made" / "WN18RR" / "0" / "train.txt", "a\tr\tb", "b\tr\tc")
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("DICGRL_DATA", str(data))
    assert sizes(load_stream("WN18RR")) == [(1, 0, 0)]
    with tarfile.open(data / "WN18RR.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "made" / "WN18RR", "WN18RR")
    stream = load_stream("WN18RR")
    assert stream.name == "WN18RR" and sizes(stream) == [(2, 0, 0)]


def test_names_of_a_paper_dataset_lie_beside_it() -> None:
    write(cache_folder() / "WN18RR" / "0" / "train.txt", "a\tr\tb")
    with gzip.open(cache_folder() / "WN18RR-labels.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("a\tApple\nb\tBär\n")
    assert load_stream("WN18RR").names == {"a": "Apple", "b": "Bär"}


def test_names_option_counts_before_what_lies_beside(tmp_path: Path) -> None:
    facts(tmp_path / "mine" / "0" / "train.txt")
    write(tmp_path / "mine" / "labels.tsv", "e0\tbeside")
    assert load_stream("mine").names == {"e0": "beside"}
    chosen = write(tmp_path / "chosen.tsv", "e0\tzero", "e1\tone")
    assert load_stream("mine", labels=chosen).names == {"e0": "zero", "e1": "one"}
    assert load_stream("films", labels=str(chosen)).names == {"e0": "zero", "e1": "one"}

    write(cache_folder() / "WN18RR" / "0" / "train.txt", "a\tr\tb")
    write(cache_folder() / "WN18RR-labels.tsv", "a\tcache")
    assert load_stream("WN18RR", labels=chosen).names == {"e0": "zero", "e1": "one"}


def test_a_list_of_files(tmp_path: Path) -> None:
    files = [facts(tmp_path / "may.tsv"), str(facts(tmp_path / "april.tsv", 40))]
    stream = load_stream(files, valid=0.1)
    assert sizes(stream) == sizes(read_stream(files, valid=0.1))
    assert sizes(stream)[0] == (180, 20, 0) and len(stream) == 2
    assert load_stream(files).names == {}
    write(tmp_path / "labels.tsv", "e0\tzero")
    assert load_stream(files).names == {"e0": "zero"}
    with pytest.raises(UserError, match=r"gone\.tsv: no such file"):
        load_stream(["gone.tsv"])


def test_names_change_nothing_else(tmp_path: Path) -> None:
    chosen = write(tmp_path / "chosen.tsv", "Alien\tthe film")
    plain, named = load_stream("films"), load_stream("films", labels=chosen)
    assert type(named) is type(plain) and named.name == "films" and sizes(named) == sizes(plain)


def test_a_missing_file_of_names(tmp_path: Path) -> None:
    for missing in (tmp_path / "no.tsv", tmp_path):
        with pytest.raises(UserError, match="no such file of readable names") as error:
            load_stream("films", labels=missing)
        assert str(missing) in str(error.value)


def test_a_bad_file_of_names_is_told_by_line(tmp_path: Path) -> None:
    chosen = write(tmp_path / "chosen.tsv", "a\tApple", "b")
    with pytest.raises(DataError, match=r"chosen\.tsv:2: expected 2 fields"):
        load_stream("films", labels=chosen)


def test_shares_are_set_aside(tmp_path: Path) -> None:
    path = facts(tmp_path / "facts.tsv")
    assert sizes(load_stream(path)) == [(200, 0, 0)]
    stream = load_stream(path, valid=0.1, test=0.2)
    assert sizes(stream) == [(140, 20, 40)]
    assert isinstance(stream, KnowledgeStream)
    part = stream[0]
    rows = np.concatenate([part.train, part.valid, part.test])
    assert len(np.unique(rows, axis=0)) == 200


def test_shares_follow_the_seed(tmp_path: Path) -> None:
    path = facts(tmp_path / "facts.tsv")

    one, again, two = (load_stream(path, valid=0.1, seed=seed)[0].valid for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, two)


def test_parts_that_bring_their_sets_keep_them(tmp_path: Path) -> None:
    for name in ("films", "film-genres"):
        with pytest.warns(DataWarning, match="valid=0.3 and test=0.3 set nothing aside"):
            stream = load_stream(name, valid=0.3, test=0.3)
        assert sizes(stream) == sizes(load_stream(name))
    facts(tmp_path / "mine" / "0" / "train.txt")
    write(tmp_path / "mine" / "0" / "test.txt", "e0\tr\tnew")
    assert sizes(load_stream("mine", valid=0.1)) == [(180, 20, 1)]


@pytest.mark.parametrize(("valid", "test"), [(2, 0), (-0.1, 0), (0, 1), (0.5, 0.5), (np.nan, 0)])
@pytest.mark.parametrize("source", ["films", "film-genres", "facts.tsv"])
def test_shares_out_of_range_are_refused_everywhere(
    tmp_path: Path, source: str, valid: float, test: float
) -> None:
    facts(tmp_path / "facts.tsv")
    with pytest.raises(UserError, match=f"valid={valid}"):
        load_stream(source, valid=valid, test=test)


def test_what_can_be_fetched() -> None:
    assert [published_dataset(name).name for name in PAPER] == PAPER
    with pytest.raises(UserError, match="films comes with the package"):
        published_dataset("films")
    with pytest.raises(UserError, match="unknown dataset 'Cora'; did you mean 'cora'"):
        published_dataset("Cora")
