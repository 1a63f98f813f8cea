"""What is found by a text: beginnings first, then names that are spelt like it."""

from __future__ import annotations

import pytest

from dicgrl.serve.search import Search

NAMES = [
    *("Alien", "Aliens", "Ali", "Alec Baldwin", "Alexander", "Al Pacino", "Brazil", "Brigadoon"),
    *("Goldfinger", "Goodfellas", "The Godfather", "Heat", "Heaven Can Wait", "Vertigo"),
    *("Martin Scorsese", "Ridley Scott", "Tony Scott", "Stanley Kubrick", "Stanley Kramer"),
]


@pytest.fixture(scope="module")
def search() -> Search:
    return Search([f"Q{number}" for number in range(len(NAMES))], NAMES)


def names(search: Search, text: str, limit: int = 3) -> list[str]:
    return [NAMES[number] for number, _ in search.found(text, limit)]


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) > 4])
def test_a_name_is_found_though_two_letters_are_swapped(search: Search, name: str) -> None:
    for at in range(1, len(name) - 1):
        typed = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        assert name in names(search, typed), typed


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) > 4])
def test_a_name_is_found_though_a_letter_is_missing(search: Search, name: str) -> None:
    for at in range(1, len(name)):
        assert name in names(search, name[:at] + name[at + 1 :]), (name, at)


def test_what_begins_so_comes_first_and_the_shortest_of_these(search: Search) -> None:
    assert names(search, "alie") == ["Alien", "Aliens", "Ali"]
    assert [what for _, what in search.found("scott", 2)] == ["word", "word"]
    assert search.found("q1", 1) == [(1, "label")]


def test_what_is_like_nothing_is_not_found(search: Search) -> None:
    assert search.found("zzzzzz", 5) == []
    assert search.found("x" * 500, 5) == []
