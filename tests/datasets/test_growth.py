"""Streams that grow otherwise than the paper's, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl import KnowledgeStream, UserError, describe, load_stream, write_stream
from dicgrl.datasets import check_there, datasets, growth, published_dataset, registered
from dicgrl.datasets.locate import cache_folder
from dicgrl.recipes import load_recipe
from tests.growing import knowledge_stream

LKGE = ["ENTITY", "RELATION", "FACT", "HYBRID"]
NIGHTLY = "FB15k-237-nightly"


@pytest.fixture
def _nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_nothing_here")
@pytest.mark.parametrize("name", LKGE)
def test_a_stream_that_is_not_here_says_how_to_get_it(name: str) -> None:
    for ask in (load_stream, check_there):
        with pytest.raises(UserError) as error:
            ask(name)
        for part in (
            f"datasets fetch {name}",
            "DICGRL_DATA",
            f"{name}.tar.gz",
            str(cache_folder()),
        ):
            assert part in str(error.value)


@pytest.mark.parametrize("name", LKGE)
def test_they_can_be_fetched(name: str) -> None:
    known = published_dataset(name)
    assert known.address == f"{growth.REPOSITORY}/{growth.REVISION}"
    assert known.folder == f"data/{name}"
    assert known.files[:4] == ["0/train.txt", "0/valid.txt", "0/test.txt", "1/train.txt"]


@pytest.mark.usefixtures("_nothing_here")
def test_a_derived_stream_asks_for_what_it_is_made_of() -> None:
    for ask in (load_stream, check_there, published_dataset):
        with pytest.raises(UserError, match="`dicgrl datasets fetch FB15k-237`"):
            ask(NIGHTLY)


@pytest.mark.usefixtures("_nothing_here")
def test_the_name_alone_makes_no_published_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = knowledge_stream()
    write_stream(stream, cache_folder() / "FACT")
    with pytest.raises(UserError, match=r"FACT is not the published stream.*\./FACT"):
        load_stream("FACT")
    counts = {
        split: tuple(len(getattr(part, split)) for part in stream)
        for split in ("train", "valid", "test")
    }
    known = growth.LKGEDataset("FACT", "", counts)
    monkeypatch.setitem(growth.LKGE_DATASETS, "FACT", known)
    assert load_stream("FACT").name == "FACT"


@pytest.mark.usefixtures("_nothing_here")
def test_the_nightly_split_is_made_of_the_merged_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = knowledge_stream(triples=(60, 20, 20))
    write_stream(stream, cache_folder() / "FB15k-237")
    tiny = growth.DerivedDataset(NIGHTLY, "", "FB15k-237", "nightly", parts=4, first=0.7)
    monkeypatch.setitem(growth.DERIVED_DATASETS, NIGHTLY, tiny)
    made, again = load_stream(NIGHTLY), load_stream(NIGHTLY, seed=7)
    assert made.name == NIGHTLY and len(made) == 4

    def facts(of: object) -> list[set[tuple[str, ...]]]:
        assert isinstance(of, KnowledgeStream)
        names = list(of[0].entities), list(of[0].relations)
        return [
            {(names[0][h], names[1][r], names[0][t]) for h, r, t in part.train.tolist()}
            for part in of
        ]

    assert facts(made) == facts(again)  # the seed of a user is about other choices
    assert set().union(*facts(made)) == set().union(*facts(load_stream("FB15k-237")))


@pytest.mark.parametrize("name", [*LKGE, NIGHTLY])
def test_they_have_the_settings_of_a_graph_that_nobody_knows(name: str) -> None:
    assert registered(name) == name
    for strategy, divided in (("fresh", False), ("upper", False), ("dicgrl", True)):
        found = load_recipe("best", name, "transe", disentangled=divided, strategy=strategy)
        stranger = load_recipe("best", "", "transe", disentangled=divided, strategy=strategy)
        assert found.name == "default" and found.settings == stranger.settings
    with pytest.raises(UserError, match="no recipe 'paper'"):
        load_recipe("paper", name, "transe")


@pytest.mark.usefixtures("paper_data")
@pytest.mark.parametrize("name", LKGE)
def test_published_counts(name: str) -> None:
    known = growth.LKGE_DATASETS[name].counts
    parts = describe(load_stream(name))["parts"]
    assert {row: tuple(part[row] for part in parts) for row in known} == dict(known)


@pytest.mark.usefixtures("paper_data")
def test_the_nightly_stream_of_a_real_graph() -> None:
    parts = describe(load_stream(NIGHTLY))["parts"]
    listed = next(dataset for dataset in datasets() if dataset.name == NIGHTLY)
    assert len(parts) == listed.parts == 41
    total = sum(part[split] for part in parts for split in ("train", "valid", "test"))
    assert total == listed.sizes["triples"] == 310_116
    assert parts[-1]["accumulated_entities"] == listed.sizes["entities"] == 14_541
    train = [part["train"] for part in parts]
    assert train[0] == pytest.approx(0.75 * sum(train), rel=0.01)
    assert max(train[1:]) - min(train[1:]) <= 1
