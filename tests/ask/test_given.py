"""Answers as frames and as tables of a notebook; questions and facts that come as frames."""

from __future__ import annotations

from typing import Any

import pytest

from dicgrl import Learner, UserError
from tests.tiny import learner_of, taught

LIBRARIES = ("pandas", "polars", "pyarrow")


@pytest.fixture(scope="module")
def learner() -> Learner:
    return taught(learner_of("links"), 1)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    if hasattr(frame, "to_pylist"):
        rows = frame.to_pylist()
    else:
        rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return list(rows)


def frame_of(library: str, columns: dict[str, list[Any]]) -> Any:
    made = pytest.importorskip(library)
    return made.table(columns) if library == "pyarrow" else made.DataFrame(columns)


@pytest.mark.parametrize("library", LIBRARIES)
def test_answers_are_frames(learner: Learner, library: str) -> None:
    pytest.importorskip(library)
    asked = [("e1", "plus 1", None), (None, "plus 2", "e5"), ("e1", None, "e3")]
    found = learner.predict_links(asked, k=3)
    rows = rows_of(found.to_frame(library))
    assert len(rows) == 9
    for number, row in enumerate(rows):
        question, answer = asked[number // 3], found[number // 3][number % 3]
        triple = [answer.label if text is None else text for text in question]
        assert [row["head"], row["relation"], row["tail"]] == triple
        assert row["asked"] == ("tail", "head", "relation")[number // 3]
        assert row["rank"] == number % 3 + 1
        told = {key: row[key] for key in ("label", "name", "score", "known", "held_out")}
        assert told == {key: getattr(answer, key) for key in told}
    one = learner.predict("e1", "plus 1", k=3)
    assert one == found[0] and rows_of(one.to_frame(library)) == rows[:3]
    assert rows_of(learner.similar("e1", k=2).to_frame(library))[1]["similar to"] == "e1"


@pytest.mark.parametrize("library", LIBRARIES)
def test_questions_and_pairs_come_as_frames(learner: Learner, library: str) -> None:
    asked = frame_of(
        library, {"note": ["x", "y"], "tail": [None, "e5"], "relation": ["plus 1", "plus 2"],
                  "head": ["e1", None]}
    )  # fmt: skip
    expected = learner.predict_links([("e1", "plus 1", None), (None, "plus 2", "e5")])
    assert learner.predict_links(asked) == expected
    pairs = frame_of(library, {"target": ["e3"], "source": ["e1"]})
    assert learner.predict_relations(pairs) == learner.predict_relations([("e1", "e3")])
    facts = frame_of(library, {"h": ["e1"], "t": ["e3"], "r": ["plus 2"], "weight": [0.5]})
    assert learner.score(facts) == learner.score([("e1", "plus 2", "e3")])


@pytest.mark.parametrize("library", LIBRARIES)
def test_facts_come_as_frames_dicts_and_iterators(library: str) -> None:
    facts = [("Alien", "genre", "horror"), ("Brazil", "genre", "satire")]
    columns = {"tail": [t for _, _, t in facts], "head": [h for h, _, _ in facts],
               "relation": [r for _, r, _ in facts], "year": [1979, 1985]}  # fmt: skip
    dicts = [{"tail": t, "seen": 3, "head": h, "relation": r} for h, r, t in facts]
    for given in (frame_of(library, columns), dicts, iter(dicts), iter(facts)):
        part = learner_of("links").intake(given).part
        assert part.entities.labels(range(4)) == ["Alien", "horror", "Brazil", "satire"]
        assert part.train.tolist() == [[0, 0, 1], [2, 0, 3]]
    edges = taught(learner_of("nodes"), 1, evaluate=False)
    ends = frame_of(library, {"to": ["n3", "n5"], "from": ["n0", "n1"], "weight": [1, 2]})
    for given in (ends, iter([("n0", "n3"), ("n1", "n5")]), [["n0", "n3"], ["n1", "n5"]]):
        part = edges.intake(given).part
        assert part.nodes.labels(part.edges.ravel()) == ["n0", "n3", "n1", "n5"]


def test_libraries_that_are_none_are_named(learner: Learner) -> None:
    with pytest.raises(UserError, match="unknown library of data frames 'panda'; did you mean"):
        learner.predict("e1", "plus 1").to_frame("panda")
    with pytest.raises(UserError, match="columns who, how: call three of them head, relation and"):
        learner.score(frame_of("polars", {"who": ["e1"], "how": ["plus 1"]}))


def test_reports_and_answers_are_tables_of_a_notebook() -> None:
    learner = learner_of("links")
    report = learner.learn([("<b>", "genre", "horror"), ("Brazil", "genre", "satire")])
    learner.evaluate()
    answers = learner.predict("<b>", "genre")
    many = learner.predict_links([("<b>", "genre", None)])
    explained = learner.explain("<b>", "genre", "horror")
    for told in (report, learner.evaluation(), answers, many, explained):
        html = told._repr_html_()
        assert html.startswith("<table>") and "<b>" not in html
        assert html.count("<tr>") == html.count("</tr>")
    assert "&lt;b&gt;" in answers._repr_html_() and "horror" in answers._repr_html_()
    taught_one = taught(learner_of("links"), 2)
    assert "whole" in taught_one.evaluation()._repr_html_()
