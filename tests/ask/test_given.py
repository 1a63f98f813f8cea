"""Answers as frames and as tables of a notebook; questions and facts that come as frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicgrl import DataWarning, Learner, Reading, UserError
from dicgrl.ask.lines import many_answers
from dicgrl.graph.labelled import as_columns
from dicgrl.graph.times import told as iso
from tests.tiny import learner_of, taught

LIBRARIES = ("pandas", "polars", "pyarrow")
FRAMES = (*LIBRARIES, "dict")


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
    if library == "dict":
        return columns
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


@pytest.mark.parametrize("library", FRAMES)
def test_questions_and_pairs_come_as_frames(learner: Learner, library: str) -> None:
    asked = frame_of(
        library, {"note": ["x", "y"], "tail": [None, "e5"], "relation": ["plus 1", "plus 2"],
                  "head": ["e1", None]}
    )  # fmt: skip
    expected = learner.predict_links([("e1", "plus 1", None), (None, "plus 2", "e5")])
    assert learner.predict_links(asked) == expected
    dicts = [{"subject": "e1", "p": "plus 1", "note": "x"}, {"tail": "e5", "relation": "plus 2"}]
    assert learner.predict_links(dicts) == expected
    pairs = frame_of(library, {"target": ["e3"], "source": ["e1"]})
    assert learner.predict_relations(pairs) == learner.predict_relations([("e1", "e3")])
    facts = frame_of(library, {"h": ["e1"], "t": ["e3"], "r": ["plus 2"], "weight": [0.5]})
    assert learner.score(facts) == learner.score([("e1", "plus 2", "e3")])


@pytest.mark.parametrize("library", FRAMES)
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


@pytest.mark.parametrize("library", FRAMES)
def test_nodes_come_as_frames(library: str) -> None:
    learner = taught(learner_of("nodes"), 1, evaluate=False)
    expected = learner.predict_classes(["n0", "n3"], k=1)
    for columns in ({"node": ["n0", "n3"], "w": [1, 2]}, {"who": ["n0", "n3"]}):
        assert learner.predict_classes(frame_of(library, columns), k=1) == expected
        assert many_answers(learner.ask, frame_of(library, columns), 1) == expected
    with pytest.raises(UserError, match="columns who, w: call one of them node"):
        learner.predict_classes(frame_of(library, {"who": ["n0"], "w": [1]}))


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


READ = Reading(columns="who,how,what")
FACTS = [("x1", "plus 1", "e2"), ("x2", "plus 2", "e3")]


def dicts_of(facts: list[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"what": t, "note": "?", "who": h, "how": r} for h, r, t in facts]


@pytest.mark.parametrize("library", FRAMES)
def test_columns_of_frames_are_named_as_those_of_files(library: str) -> None:
    rows = dicts_of(FACTS)
    frame = frame_of(library, {key: [row[key] for row in rows] for key in rows[0]})
    expected = taught(learner_of("links"), 1)
    expected.learn(FACTS)
    for given in (frame, rows, iter(rows)):
        learner = taught(learner_of("links"), 1)
        learner.learn(given, reading=READ)
        assert learner.score(FACTS) == expected.score(FACTS)
    with pytest.raises(UserError, match="there is no column 'when'"):
        learner.learn(frame, reading=Reading(columns="who,how,when"))
    learner.forget(frame, reading=READ)
    with pytest.raises(UserError, match="none of the 2 facts is known"):
        learner.forget(FACTS)


def test_a_dict_of_columns_may_hold_arrays_which_are_of_one_length() -> None:
    learner = taught(learner_of("links"), 1)
    columns: dict[str, Any] = {"h": np.array([7, 8]), "r": ("r", "r"), "t": ["a", "b"]}
    assert as_columns(columns) == [["7", "8"], ["r", "r"], ["a", "b"]]
    with pytest.raises(UserError, match="different lengths: h has 2, r has 2, t has 1"):
        learner.learn(columns | {"t": ["a"]})
    with pytest.raises(UserError, match="expected triples"):
        learner.learn({"h": "a", "r": "b", "t": "c"})


def test_lazy_frames_are_collected() -> None:
    polars = pytest.importorskip("polars")
    learner = taught(learner_of("links"), 1)
    lazy = polars.LazyFrame(FACTS, schema=["head", "relation", "tail"], orient="row")
    assert learner.learn(lazy.filter(polars.col("head") == "x1")).new_examples == 1


@pytest.mark.parametrize(
    ("given", "reading", "message"),
    [
        (FACTS, READ, "there is no column 'who'; the columns are 'head', 'relation', 'tail'"),
        ([("x", "y", "z"), ("x", "y")], Reading(columns="1,2,3"), r"triples\[1\]: 2 values"),
        (None, READ, "no facts in a file, a data frame, dicts or tuples"),
        ([(*FACTS[0], "soon")], Reading(columns="1,2,3,4"), "time 'soon': expected a date"),
        (dicts_of(FACTS), Reading(format="csv"), "format is about files"),
        ([{"who": "x", "how": "y", "what": "z"}, {"who": "x"}], READ, r"triples\[1\]: .* 'how'"),
        (dicts_of(FACTS), Reading(time_format="%d.%m.%Y"), "call three of them"),
        ([{"h": "x", "r": "y", "t": "z"}], Reading(time_format="%Y"), "no column is called time"),
        (
            [{"h": "x", "r": "y", "t": "z", "date": "1979"}],
            Reading(time_format="%d.%m.%Y"),
            "time '1979': expected it as in",
        ),
    ],
)
def test_what_cannot_be_read_so_is_refused(given: Any, reading: Reading, message: str) -> None:
    learner = taught(learner_of("links"), 1)
    with pytest.raises(UserError, match=message):
        learner.learn(given, reading=reading)
    assert learner.num_parts == 1


def test_dates_of_frames_are_written_as_one_says() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([(*FACTS[0], "25.05.1979"), (*FACTS[1], None)])
    frame.columns = ["who", "how", "what", "when"]
    learner = taught(learner_of("links"), 1)
    reading = Reading(columns="who,how,what,when", time_format="%d.%m.%Y")
    learner.learn(frame, reading=reading)
    dates = learner.trainer.graph.dates(learner.ask.ids(FACTS))
    assert [iso(date) for date in dates.tolist()] == ["1979-05-25", ""]


def test_a_reading_is_about_the_file_where_the_other_facts_are_in_none(tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1)
    path = tmp_path / "new.csv"
    path.write_text("who,how,what\nx1,plus 1,e2\n", encoding="utf-8")
    learner.learn([FACTS[1]])
    assert learner.replace([FACTS[1]], path, reading=READ).details["forgotten"] == 1
    assert learner.predict("x1", "plus 1", among=["e2"])[0].known


def test_a_missing_value_is_called_missing_and_asks_in_a_question(learner: Learner) -> None:
    pandas = pytest.importorskip("pandas")
    for nothing in (None, float("nan"), pandas.NA):
        columns = {"head": ["e1"], "relation": ["plus 1"], "tail": [nothing]}
        frame = pandas.DataFrame(columns, dtype=object)
        with pytest.raises(UserError, match=r"triples\[0\]: .* is not a label: .* is missing"):
            learner.intake(frame)
        expected = learner.predict_links([("e1", "plus 1", None)])
        assert learner.predict_links(frame) == learner.predict_links(columns) == expected


@pytest.mark.parametrize("odd", [None, 1.5, True, "", "a\tb", float("nan")], ids=repr)
def test_an_odd_value_among_many_is_told_by_its_row(odd: Any) -> None:
    pandas = pytest.importorskip("pandas")
    rows: list[Any] = [("x", "r", number) for number in range(50)]
    rows[37] = ("x", odd, "z")
    frame = pandas.DataFrame(rows, columns=["h", "r", "t"], dtype=object)
    for given in (rows, iter(rows), frame, np.array(rows, dtype=object)):
        with pytest.raises(UserError, match=r"triples\[37\]: "):
            as_columns(given)
    del rows[37]
    plain = as_columns(rows)
    assert plain == as_columns(map(tuple, rows)) == as_columns(np.array(rows, dtype=object))
    assert plain[2] == [str(t) for _, _, t in rows]


def test_rows_are_read_by_the_numbers_of_their_columns() -> None:
    """As lines of a file without a header, and lists of JSON."""
    rows = [(n, t, r, "25.05.1979", h) for n, (h, r, t) in enumerate(FACTS)]
    reading = Reading(columns="5,3,2,4", time_format="%d.%m.%Y")
    for given in (rows, iter(rows), np.array(rows)):
        learner = taught(learner_of("links"), 1)
        learner.learn(given, reading=reading)
        dates = learner.trainer.graph.dates(learner.ask.ids(FACTS))
        assert [iso(date) for date in dates.tolist()] == ["1979-05-25"] * 2


def test_a_column_that_is_only_called_date_is_left_out_as_of_a_file(tmp_path: Path) -> None:
    dicts = [dict(zip("hrt", fact, strict=True)) | {"date": "soon"} for fact in FACTS]
    lines = ["h,r,t,date", *(",".join((*fact, "soon")) for fact in FACTS)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    frame = frame_of("pandas", {key: [each[key] for each in dicts] for key in dicts[0]})
    for given in (dicts, tmp_path / "x.csv", frame):
        learner = taught(learner_of("links"), 1)
        with pytest.warns(DataWarning, match="'soon' in the column of times is no time"):
            learner.learn(given)
        assert learner.score(FACTS)
    with pytest.raises(UserError, match="'soon' is not a time"):
        taught(learner_of("links"), 1).learn([(*FACTS[0], "soon")])
