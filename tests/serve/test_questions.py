"""What a server answers is what the learner answers; what it refuses it explains, and no more."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dicgrl import Learner
from tests.serve.servers import TOKEN, Server, serving
from tests.tiny import learner_of, taught

PROBLEMS: list[tuple[str, dict[str, Any], int, str]] = [
    ("/predict", {"questions": [{"head": "e0", "relation": "what"}]}, 422, "questions[0].relation"),
    ("/predict", {"questions": [{"head": "e0"}]}, 422, "questions[0]"),
    ("/predict", {"questions": [{"node": "e0"}]}, 422, "questions[0]"),
    ("/predict", {"questions": [{"head": 1.5, "relation": "plus 1"}]}, 422, "questions[0].head"),
    ("/predict", {"questions": [], "k": 0}, 422, "k"),
    ("/predict", {"questions": [], "k": 1001}, 422, "k"),
    ("/predict", {"questions": [], "limit": 3}, 422, "limit"),
    ("/predict", {"questions": [{}] * 1001}, 422, "questions"),
    ("/predict", {"questions": [{"head": "e0", "relation": "plus 1"}], "among": "x"}, 422, "among"),
    ("/predict", {"k": 3}, 422, "questions"),
    ("/score", {"triples": [["e0", "plus 1", "e1"], ["e0", "plus 1"]]}, 422, "triples[1]"),
    ("/score", {"triples": [["e0", "plus 1", "nobody"]]}, 422, "triples[0]"),
    ("/similar", {"label": "nobody"}, 422, "label"),
    ("/similar", {"label": "e0", "component": 7}, 422, "component"),
    ("/explain", {"triple": ["e0", "plus 1", "nobody"]}, 422, "triple"),
    ("/evaluate", {"triples": []}, 422, "triples"),
    ("/vectors", {"labels": ["e0", "nobody"]}, 422, "labels[1]"),
    ("/facts", {"facts": []}, 422, "facts"),
    ("/facts", {"facts": [["a", "b\tc", "d"]]}, 422, "facts[0][1]"),
    ("/facts", {"facts": [["a", "b", ""]]}, 422, "facts[0][2]"),
    ("/facts", {"facts": [["a", "b", None]]}, 422, "facts[0][2]"),
    ("/facts", {"facts": [["a", "b", "c"], ["a", "b"]]}, 422, "facts[1]"),
    ("/predict", {"questions": [], "among": 3}, 422, "among"),
]


@pytest.mark.parametrize(("path", "body", "status", "field"), PROBLEMS)
def test_a_problem_names_the_field(
    server: Server, path: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = server.post(path, TOKEN, **body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status and told["detail"]
    assert told["field"] == field, told


def test_a_wrong_method_is_told_the_right_one(server: Server) -> None:
    for method, path, allowed in (("GET", "/predict", "POST"), ("PUT", "/health", "GET")):
        answer = server.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert answer.json()["status"] == 405
        assert allowed in answer.json()["detail"] and method in answer.json()["detail"]
    assert server.client.get("/facts").headers["allow"] == "DELETE, POST"


def test_answers_are_those_of_the_learner(server: Server, run_to_copy: Path) -> None:
    learner = Learner.load(run_to_copy, device="cpu")
    asked = [{"head": "e0", "relation": "plus 1"}, {"relation": "plus 2", "tail": "e5"}]
    asked += [{"head": "e0", "tail": "e1"}] * 40  # more than are answered together
    for new in (False, True):
        told = server.post("/predict", questions=asked, k=4, new=new, held_out=True).json()
        mine = [learner.predict(k=4, new=new, **question) for question in asked]
        assert told["version"] == learner.version
        for theirs, own in zip(told["answers"], mine, strict=True):
            for one, other in zip(theirs, map(asdict, own), strict=True):
                for name in ("score", "probability"):
                    assert one.pop(name) == pytest.approx(other.pop(name))
                assert one == other
    triples = [["e0", "plus 1", "e1"], ["e3", "plus 2", "e7"]]
    told = server.post("/score", triples=triples, probability=True).json()
    assert told["scores"] == pytest.approx(learner.score(triples))
    assert told["probabilities"] == pytest.approx(learner.probabilities(triples))
    told = server.post("/similar", label="e0", k=3).json()
    assert [one["label"] for one in told["answers"]] == [
        a.label for a in learner.similar("e0", k=3)
    ]
    assert all(list(one) == ["label", "name", "score"] for one in told["answers"])
    told = server.post("/explain", triple=triples[0]).json()
    assert told["score"] == pytest.approx(learner.explain("e0", "plus 1", "e1").score)
    told = server.post("/evaluate", triples=triples).json()
    assert told["mrr"] == pytest.approx(learner.measure(triples)["mrr"])
    vector = server.client.get("/vectors", params={"label": "e0"}).json()["vector"]
    for theirs, own in zip(vector, learner.ask.vectors()[1][0].tolist(), strict=True):
        assert theirs == pytest.approx(own)
    assert server.post("/vectors", labels=["e0"]).json()["vectors"] == [vector]


def test_an_answer_has_five_fields_and_says_what_is_held_out_when_asked(server: Server) -> None:
    for asked in ([{"head": "e0", "relation": "plus 1"}], [{"head": "e0", "tail": "e1"}] * 40):
        plain = server.post("/predict", questions=asked, k=3).json()
        assert set(plain) == {"version", "answers"}
        for each in plain["answers"]:
            assert len(each) == 3
            for one in each:
                assert list(one) == ["label", "name", "score", "probability", "known"]
        more = server.post("/predict", questions=asked, k=3, held_out=True).json()
        assert {type(one["held_out"]) for each in more["answers"] for one in each} == {bool}


def test_questions_that_come_together_get_their_own_answers(
    server: Server, run_to_copy: Path
) -> None:
    learner = Learner.load(run_to_copy, device="cpu")
    wrong: list[Any] = []

    def ask_some(first: int) -> None:
        for number in range(first, first + 12):
            question = {"head": f"e{number % 20}", "relation": f"plus {(1, 2, 5)[number % 3]}"}
            k = 1 + number % 4
            told = server.post("/predict", questions=[question], k=k).json()
            mine = [one.label for one in learner.predict(k=k, **question)]
            if [one["label"] for one in told["answers"][0]] != mine:
                wrong.append((question, told, mine))

    threads = [Thread(target=ask_some, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_network_is_asked_for_classes(tmp_path: Path) -> None:
    learner = taught(learner_of("nodes", "fresh"), evaluate=False)
    learner.save(tmp_path / "run")
    with serving(tmp_path / "run", "--learn-facts", "1") as server:
        told = server.post("/predict", questions=[{"node": "n1"}, {"node": "n2"}], k=2).json()
        for node, theirs in zip(("n1", "n2"), told["answers"], strict=True):
            mine = learner.predict(node=node, k=2)
            assert [one["label"] for one in theirs] == [one.label for one in mine]
        assert server.post("/predict", questions=[{"node": "no"}]).status_code == 422
        assert server.post("/score", triples=[["a", "b", "c"]]).status_code == 422
        assert server.add(("n0", "n7")).json()["queued"] == 1
        assert server.add(("n0", "nowhere")).status_code == 422
        version = server.until_learned()
    assert version == learner.version + 1
    assert Learner.load(tmp_path / "run").num_nodes == learner.num_nodes


def test_entities_by_what_was_typed(server: Server) -> None:
    def found(query: str) -> list[str]:
        told = server.client.get("/entities", params={"query": query, "limit": 5}).json()
        return [one["label"] for one in told["entities"]]

    assert found("e12")[0] == "e12" and found("E1")[0] == "e1"
    assert len(found("")) == 5
    assert server.client.get("/entities", params={"limit": 0}).json()["field"] == "limit"


def test_versions_and_what_changed(server: Server) -> None:
    told = server.client.get("/versions").json()
    assert [one["version"] for one in told["versions"]] == [1, 2, 3]
    changed = server.client.get("/diff", params={"from": "2", "to": "3"}).json()
    assert changed["facts"]["added"]["count"] > 0
    assert server.client.get("/diff", params={"from": "2", "to": "99"}).status_code == 422


def test_metrics_count_what_was_asked(server: Server) -> None:
    def asked() -> float:
        lines = server.client.get("/metrics").text.splitlines()
        name = 'dicgrl_requests_total{path="/predict",method="POST",status="200"}'
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    before = asked()
    server.best(head="e0", relation="plus 1")
    assert asked() == before + 1


def test_a_body_that_is_too_large(server: Server) -> None:
    assert server.client.post("/predict", content=b" " * (1 << 20) + b"{}").status_code == 413
    pieces = (b" " * 1000 for _ in range(1100))  # without a length
    assert server.client.post("/predict", content=pieces).status_code == 413


def test_another_name_of_the_server_is_refused(server: Server) -> None:
    answer = server.client.get("/health", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert server.client.get("/health", headers={"Host": "localhost:1"}).status_code == 200


def test_the_document_tells_refusals_as_they_are(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    schema = document["components"]["schemas"]["Problem"]
    names: list[str] = []
    for path, methods in document["paths"].items():
        for about in methods.values():
            names.append(about["operationId"])
            for status, answer in about["responses"].items():
                if status == "200":
                    continue
                ((kind, told),) = answer["content"].items()
                assert kind == "application/problem+json", (path, status)
                assert told["example"]["status"] == int(status)
                assert told["example"].keys() <= schema["properties"].keys()
    assert len(set(names)) == len(names) and {"predict", "add_facts", "forget_facts"} <= set(names)
    refused = server.client.get("/entities", params={"limit": 0}).json()
    assert set(schema["required"]) <= refused.keys() <= schema["properties"].keys()


def test_a_browser_asks_again_whether_the_page_is_still_the_same(server: Server) -> None:
    page = server.client.get("/app.js")
    assert page.headers["cache-control"] == "no-cache"
    unchanged = server.client.get("/app.js", headers={"If-None-Match": page.headers["etag"]})
    assert unchanged.status_code == 304


def test_examples_of_the_document_can_be_sent(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    assert {"/predict", "/facts", "/entities", "/versions"} <= document["paths"].keys()
    for path, methods in document["paths"].items():
        for about in methods.values():
            if "requestBody" in about:
                schema = about["requestBody"]["content"]["application/json"]["schema"]
                assert schema["examples"], path
                answer = server.post(path, TOKEN, **schema["examples"][0])
                assert answer.status_code in (200, 422)
                assert answer.status_code == 200 or "unknown" in answer.json()["detail"]
