"""The built-in datasets keep what their README promises; the files are read without dicgrl."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

BUILTIN = Path(__file__).parents[1] / "src" / "dicgrl" / "datasets" / "builtin"
PARTS = range(5)
SPLITS = ("train", "valid", "test")
PEOPLE = {"director", "writer", "cast member"}
RELATIONS = {"genre", "country", "language", "production company"} | PEOPLE

Triple = tuple[str, ...]
Arrays = dict[str, npt.NDArray[Any]]
Stream = list[dict[str, list[Triple]]]


@pytest.fixture(scope="module")
def films() -> Stream:
    def read(part: int, split: str) -> list[Triple]:
        packed = (BUILTIN / "films" / str(part) / f"{split}.txt.gz").read_bytes()
        lines = gzip.decompress(packed).decode("utf-8").split("\n")
        return [tuple(line.split("\t")) for line in lines[:-1]]

    return [{split: read(part, split) for split in SPLITS} for part in PARTS]


@pytest.fixture(scope="module")
def network() -> Arrays:
    with np.load(BUILTIN / "film-genres.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def facts_of(films: Stream, *splits: str) -> list[Triple]:
    return [fact for part in films for split in splits or SPLITS for fact in part[split]]


def entities_of(facts: list[Triple]) -> set[str]:
    return {entity for head, _, tail in facts for entity in (head, tail)}


def test_both_fit_into_the_wheel() -> None:
    assert sum(f.stat().st_size for f in BUILTIN.rglob("*") if f.is_file()) < 1_500_000


def test_films_sizes(films: Stream) -> None:
    facts = facts_of(films)
    assert 25_000 <= len(facts) <= 35_000
    for part, splits in enumerate(films):
        size = sum(map(len, splits.values()))
        low, high = (0.5, 0.7) if part == 0 else (0.05, 0.15)
        assert low < size / len(facts) < high
        for split in ("valid", "test"):
            assert 0.05 < len(splits[split]) / size < 0.07
        assert {fact[1] for fact in splits["train"]} == RELATIONS


def test_films_facts_are_well_formed_and_distinct(films: Stream) -> None:
    assert len(set(facts := facts_of(films))) == len(facts)
    assert all(len(fact) == 3 and all(x and x == x.strip() for x in fact) for fact in facts)


def test_every_label_means_one_thing(films: Stream) -> None:
    kinds: dict[str, set[str]] = {}
    for head, relation, tail in facts_of(films):
        kind = "person" if relation in PEOPLE else relation
        kinds.setdefault(head, set()).add("film")
        kinds.setdefault(tail, set()).add(kind)
    assert not [label for label, of in kinds.items() if len(of) > 1]


def test_held_out_entities_have_a_training_fact_so_far(films: Stream) -> None:
    known: set[str] = set()
    for splits in films:
        known |= entities_of(splits["train"])
        assert entities_of(splits["valid"] + splits["test"]) <= known


def test_no_held_out_pair_is_linked_in_training(films: Stream) -> None:
    """Neither (h, r2, t) nor (t, r2, h) is there to give (h, r, t) away."""
    pairs = [{frozenset((h, t)) for h, _, t in facts_of(films, split)} for split in SPLITS]
    assert not pairs[0] & pairs[1] and not pairs[0] & pairs[2] and not pairs[1] & pairs[2]


def test_later_parts_bring_new_films_and_return_to_known_entities(films: Stream) -> None:
    seen: set[str] = set()
    for part, splits in enumerate(films):
        facts = [fact for split in SPLITS for fact in splits[split]]
        heads, entities = {head for head, _, _ in facts}, entities_of(facts)
        assert len(heads) > 150 and not heads & seen  # a film's facts all arrive together
        assert part == 0 or len(entities & seen) > 400
        seen |= entities


def test_films_are_readable(films: Stream) -> None:
    facts = facts_of(films)
    assert ("Alien", "genre", "science fiction film") in facts
    assert ("The Godfather", "director", "Francis Ford Coppola") in facts
    labels = entities_of(facts)
    assert {"Hamlet (1948)", "William Broyles, Jr.", "Robert Downey Jr."} <= labels
    assert not {"Hamlet", "Jr.", "William Broyles"} & labels


def test_network_arrays_agree(network: Arrays) -> None:
    n = len(network["nodes"])
    assert 3_000 <= n <= 8_000 and len(set(network["nodes"].tolist())) == n
    assert network["features"].shape == (n, len(network["feature_names"]))
    assert all(len(network[name]) == n for name in ("classes", "part", "split"))
    assert set(np.unique(network["features"]).tolist()) == {0, 1}
    assert set(network["part"].tolist()) == set(PARTS)


def test_network_links_are_simple_and_reach_every_node(network: Arrays) -> None:
    edges = network["edges"]
    assert len(edges) < 60_000
    assert (edges[:, 0] < edges[:, 1]).all()  # no self loop, one direction
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert (np.bincount(edges.ravel(), minlength=len(network["nodes"])) >= 2).all()


def test_network_classes_and_splits_are_balanced(network: Arrays) -> None:
    classes, part, split = network["classes"], network["part"], network["split"]
    shares = np.bincount(classes, minlength=len(network["class_names"])) / len(classes)
    assert shares.min() > 0.04 and shares.max() < 0.45
    for k in PARTS:
        sizes = np.bincount(split[part == k], minlength=3) / (part == k).sum()
        np.testing.assert_allclose(sizes, (0.60, 0.15, 0.25), atol=0.02)
        train = Counter(classes[(part == k) & (split == 0)].tolist())
        assert all(train[c] >= 10 for c in range(len(shares)))


def test_features_do_not_name_the_genre(network: Arrays) -> None:
    words = {w for name in network["feature_names"] for w in name.lower().split()}
    assert not words & {"genre:", *network["class_names"].tolist()}


def test_links_join_films_of_the_same_genre_more_than_chance(
    network: Arrays,
) -> None:
    classes = network["classes"]
    chance = np.square(np.bincount(classes) / len(classes)).sum()
    assert np.equal(*classes[network["edges"]].T).mean() > 1.5 * chance
