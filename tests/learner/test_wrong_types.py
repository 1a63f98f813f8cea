"""Arguments of a wrong type: one message that says what was expected, and no other error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dicgrl import Learner, Run, UserError, load_stream
from tests.tiny import learner_of, taught

WRONG: list[Any] = [5, 1.5, "x", b"x", True, None, object(), [5], [None], {"a": 1}, ("a",), len]
Asked = Callable[[Any], Any]


@pytest.fixture(scope="module")
def learner() -> Learner:
    return taught(learner_of("links"), 1)


@pytest.fixture(scope="module")
def run(learner: Learner, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    learner.save(folder)
    return Run(folder, device="cpu")


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    place = tmp_path / "facts.tsv"
    place.write_text("e1\tplus 1\te2\n")
    return place


def refused(asked: Asked, given: list[Any], *words: str) -> None:
    """Each is refused by a message of ours, in one line, that has these words."""
    for value in given:
        with pytest.raises(UserError) as caught:
            asked(value)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value), value


def test_how_files_are_read(learner: Learner, run: Run, facts: Path) -> None:
    wrong = [value for value in WRONG if value is not None]
    asked: dict[str, Asked] = {
        "learn": lambda x: learner.learn([("a", "r", "b")], reading=x),
        "learn a file": lambda x: learner.learn(facts, reading=x),
        "forget": lambda x: learner.forget(facts, reading=x),
        "replace": lambda x: learner.replace(facts, facts, reading=x),
        "load_stream": lambda x: load_stream(str(facts), reading=x),
        "evaluate": lambda x: run.evaluate(facts, reading=x),
        "score": lambda x: run.score(facts, reading=x),
        "predict": lambda x: run.predict(file=[("e1", "plus 1", None)], reading=x),
        "run": lambda x: run.learn(facts, reading=x),
    }
    for each in asked.values():
        refused(each, wrong, "reading=", "expected a Reading, as in")


def test_versions_and_tags(run: Run) -> None:
    wrong = [value for value in WRONG if value not in ("x", None, b"x")]
    for each in (lambda x: run.restore(x), lambda x: run.tag("t", at=x), lambda x: run.info(at=x)):
        refused(each, [value for value in wrong if value != 5], "version=", "whole number")
    refused(run.tag, wrong, "a tag has letters")


def test_facts_questions_and_pairs(learner: Learner, run: Run) -> None:
    apart = [value for value in WRONG if not isinstance(value, str | list | dict | tuple | bytes)]
    refused(learner.predict_links, apart, "expected questions: a head, a relation")
    refused(learner.predict_relations, apart, "expected pairs of a head and a tail")
    refused(learner.rename_many, apart, "expected pairs of labels")
    refused(learner.merge_many, [*apart, ["ab"]], "expected pairs of labels")
    refused(lambda x: run.predict(file=x), [[5], [None]], "expected a head, a relation and a tail")
    refused(lambda x: run.explain(x), [5, None, {"a", "b", "c"}], "expected (head, relation, tail)")
    refused(learner.learn, [value for value in WRONG if value != ()])
    refused(lambda x: learner.learn([("a", "r", "b")], names=x), [5, "x", [1]], "names=")


def test_names_of_things_that_there_are(learner: Learner, run: Run, tmp_path: Path) -> None:
    odd = [5, 1.5, object(), [5], {"a": 1}]
    refused(lambda x: learner.merge("e1", "e2", of=x), odd, "unknown kind of label", "entities")
    refused(lambda x: learner.evaluate(protocol=x), odd, "snapshot")
    refused(lambda x: run.learn("none.tsv", evaluate=x), odd, "unknown evaluate", "sample")
    refused(lambda x: run.export(tmp_path / "x", index=x), odd, "unknown index")
    refused(lambda x: run.export(tmp_path / "x", format=x), [5, [5], None], "format")
    answers = learner.predict("e1", "plus 1")
    refused(answers.to_frame, odd, "pandas")
    assert not (tmp_path / "x").exists()


def test_numbers(run: Run, facts: Path, tmp_path: Path) -> None:
    refused(lambda x: run.learn(facts, wait=x), ["x", None, [5]], "wait=", "seconds")
    refused(lambda x: load_stream(str(facts), valid=x), ["x", None, [5]], "valid=", "a share")
    odd = ["x", None, 1.5, [5]]
    refused(lambda x: load_stream(str(facts), valid=0.5, seed=x), odd, "seed=", "whole number")
    odd = ["x", 1.5, [5], True]
    refused(
        lambda x: run.export(tmp_path / "x", format="parquet", neighbours=x), odd, "neighbours="
    )


def test_gates(run: Run) -> None:
    odd = [5, None, [5], [None]]
    refused(lambda x: run.nightly([("e1", "plus 1", "z")], fail_if=x), odd, "gate")
    assert len(run.log()) == 1
