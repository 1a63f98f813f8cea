"""What the page asks for: kinds, entities, maps, what became of the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl.graph import KnowledgeGraph, KnowledgeStream
from dicgrl.jobs.maps import make_maps
from dicgrl.learner import Learner
from dicgrl.store.maps import read_map
from dicgrl.store.run_folder import RunFolder

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient

from dicgrl.serve.app import create_app
from dicgrl.serve.kinds import kinds_of
from tests.serve.small import facts, note_night

pytestmark = pytest.mark.filterwarnings("ignore::dicgrl.errors.ModelWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views") / "run"
    learner = Learner("transe", "lower", dim=8, epochs=3, device="cpu", names={"film 3": "Alien"})
    learner.learn(facts(0, 20))
    learner.save(folder)
    learner.learn(facts(20, 30))
    learner.save(folder)
    list(make_maps(folder))
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Any]:
    with TestClient(create_app(folder)) as found:
        yield found


def test_kinds_are_told_from_the_ends_of_relations() -> None:
    graph = KnowledgeGraph()
    graph.add(KnowledgeStream.from_labels("films", [facts(0, 20)])[0])
    kinds = kinds_of(graph, ["genre", "director"])
    assert kinds.names == ["has genre, director", "is director of", "is genre of", "other"]
    labels = graph.entities.labels(np.flatnonzero(kinds.of == 1))
    assert sorted(labels) == [f"director {i}" for i in range(7)]


def test_a_graph_without_facts_has_no_kinds() -> None:
    assert kinds_of(KnowledgeGraph(), []).names == ["other"]


def test_the_run_says_what_there_is(client: Any) -> None:
    told = client.get("/api/run").json()
    assert told["counts"] == {"entities": 42, "relations": 2, "facts": 60}
    assert (told["version"], told["what"], told["writable"]) == (2, "entities", False)
    assert {each["name"]: each["count"] for each in told["relations"]} == {
        "genre": 30,
        "director": 30,
    }
    assert {"label", "name", "id", "degree", "kind"} == set(told["examples"][0])


def test_names_are_found_from_their_beginning_first(client: Any) -> None:
    def find(query: str) -> list[str]:
        return [
            each["name"] for each in client.get("/api/search", params={"q": query}).json()["found"]
        ]

    assert find("ALI") == ["Alien"]
    assert find("film 3")[0] == "Alien"  # by its label
    assert {"film 2", "genre 2", "director 2"} <= set(find("2"))
    assert find("film 1")[0] == "film 1"
    assert find("directer 5")[0] == "director 5"  # spelt alike
    assert find("zzzz") == []
    assert find("   ") == []


def test_an_entity_has_facts_arrival_and_what_is_similar(client: Any) -> None:
    told = client.get("/api/entity", params={"label": "film 24"}).json()
    assert (told["arrived"], told["degree"], told["count"]) == (1, 2, 2)
    assert [fact["tail"]["label"] for fact in told["facts"]] == ["genre 4", "director 3"]
    assert len(told["similar"]) == 8
    missing = client.get("/api/entity", params={"label": "film 2400"})
    assert missing.status_code == 422
    assert missing.headers["content-type"] == "application/problem+json"


def test_maps_are_those_of_the_store(client: Any, folder: Path) -> None:
    told = client.get("/api/maps").json()
    assert (told["state"], told["line"]) == ("ready", [1, 2])
    assert [each["came"] for each in told["maps"]] == [32, 10]
    assert told["maps"][1]["drift"]["changed"] > 0
    assert sum(kind["count"] for kind in told["kinds"]) == 42
    stored = read_map(RunFolder(folder), 2)
    assert stored is not None
    given = np.frombuffer(client.get("/api/map/2").content, "<f4").reshape(-1, 2)
    assert np.array_equal(given, stored.points)
    assert client.get("/api/map/9").status_code == 404
    points = np.frombuffer(client.get("/api/points").content, "<u2").reshape(-1, 3)
    assert points[:, 0].tolist() == [0] * 32 + [1] * 10
    assert points[32].tolist()[2] == 2


def test_a_map_that_is_missing_is_made(tmp_path: Path) -> None:
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn(facts(0, 6))
    learner.save(tmp_path / "run")
    with TestClient(create_app(tmp_path / "run")) as client:
        assert client.get("/api/maps").json()["state"] == "making"
        for _ in range(300):
            told = client.get("/api/maps").json()
            if told["state"] != "making":
                break
            time.sleep(0.1)
        assert (told["state"], len(told["maps"])) == ("ready", 1)


def test_history_tells_each_version(client: Any) -> None:
    told = client.get("/api/history").json()
    assert [part["version"] for part in told["parts"]] == [1, 2]
    assert told["parts"][0]["drift"] is None
    assert 0 < told["parts"][1]["drift"]["median"] <= told["parts"][1]["drift"]["most"]
    assert told["parts"][1]["brought"] == "20 facts, 10 new entities"


def test_nights_are_those_of_the_store(folder: Path, client: Any) -> None:
    assert client.get("/api/nights").json() == {"nights": []}
    note_night(folder, '{"kept": true}')
    (night,) = client.get("/api/nights").json()["nights"]
    assert (night["version"], night["report"]) == (2, {"kept": True})


@pytest.mark.parametrize(
    "address",
    [
        "/api/labels?ids=1;2",
        "/api/labels?ids=",
        "/api/search",
        "/api/search?q=a&k=0",
        "/api/map/x",
        "/api/map/0",
        "/api/map/99999999999999999999999",
        "/api/entity",
        "/api/entity?label=",
        "/api/entity?label=%00",
        "/api/entity?label=%ff",
        "/api/nothing",
        "/api/map/../../store.sqlite",
    ],
)
def test_what_does_not_fit_is_refused(client: Any, address: str) -> None:
    answer = client.get(address)
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/problem+json"


def test_ids_that_nothing_has_are_left_out(client: Any) -> None:
    found = client.get("/api/labels", params={"ids": "3,999999999"}).json()["found"]
    assert [each["name"] for each in found] == [
        client.get("/api/labels?ids=3").json()["found"][0]["name"]
    ]


def test_the_page_and_all_that_it_needs_are_served(client: Any) -> None:
    assets = Path(create_app.__globals__["PAGE"])
    names = [path.relative_to(assets).as_posix() for path in assets.rglob("*") if path.is_file()]
    assert "index.html" in names
    for name in names:
        assert client.get(f"/{name}").status_code == 200
    page = client.get("/").text
    assert "<script>" not in page
    assert " style=" not in page
    for name in names:
        text = (assets / name).read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http:" not in text, name  # nothing comes from elsewhere
        assert "https:" not in text, name
