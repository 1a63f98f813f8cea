"""A third task comes in by a file: no room of the house is edited, the command line included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dicgrl import Learner, UserError, read_stream
from dicgrl.cli import app
from dicgrl.readers.layouts import LAYOUTS
from dicgrl.tasks import Task, task_named, task_of_model

PLUGIN = Path(__file__).with_name("events.py")
LAWS = ("likes", "meets")
SMALL = ["--set", "epochs=20", "--set", "lr=0.1", "--set", "dim=6"]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The plugin is known in these tests alone."""
    layouts, tasks = dict(LAYOUTS), dict(Task.registry)
    yield
    for registry, before in ((LAYOUTS, layouts), (Task.registry, tasks)):
        registry.clear()
        registry.update(before)  # type: ignore[arg-type]


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Events of three years: everybody likes or meets the next person."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"p{i % 9}\t{LAWS[i % 2]}\tp{(i + 1) % 9}\t{1990 + min(i // 4, 2)}\n" for i in range(12)
    ]
    path = tmp_path / "people.events"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def call(*words: str) -> str:
    done = CliRunner().invoke(app, ["--plugin", str(PLUGIN), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_line_runs_resumes_learns_and_asks(facts: Path, tmp_path: Path) -> None:
    results = json.loads(
        call("run", facts.name, "--strategy", "emr", "--out", "run", *SMALL, "--json")
    )
    assert (results["task"], results["model"], len(results["parts"])) == (
        "temporal-links",
        "timed",
        3,
    )
    assert results["settings"]["dim"] == 6 and results["settings"]["budget"] == "10%"
    assert results["parts"][0]["arrived"] == {"entities": 5, "relations": 2, "times": 1}
    assert results["parts"][1]["replayed_examples"] == 0  # a tenth of four
    more = tmp_path / "more.events"
    more.write_text("p1\tlikes\tp3\t1999\n", encoding="utf-8")
    learned = json.loads(call("learn", "run", str(more), "--json"))
    assert len(learned["parts"]) == 4 and learned["parts"][3]["new_examples"] == 1
    about = ["--head", "p1", "--relation", "likes", "--about", "time=1999"]
    answers = json.loads(call("predict", "run", *about, "-k", "3", "--json"))
    assert len(answers) == 3 and {"label", "score", "known"} <= answers[0].keys()
    assert "p1 -- likes -- 1999" in call("predict", "run", *about)
    assert "people" in call("info", "run")
    assert "similar to p1" in call("similar", "run", "p1")
    call("export", "run", "--to", "vectors")
    assert np.load("vectors/times.npy").shape == (4, 6)


def test_the_store_gives_back_what_was_learned(facts: Path) -> None:
    call("run", facts.name, "--strategy", "ewc", "--out", "run", *SMALL)
    learner = Learner.load("run", device="cpu")
    assert learner.task.name == "temporal-links" and learner.num_entities == 9
    again = json.loads(call("run", facts.name, "--strategy", "ewc", "--out", "run", "--resume",
                            *SMALL, "--json"))  # fmt: skip
    assert len(again["parts"]) == 3
    before = learner.predict("p1", "meets", "1990", k=2)
    learner.save("other")
    assert Learner.load("other", device="cpu").predict("p1", "meets", "1990", k=2) == before


@pytest.mark.parametrize("strategy", ["frozen", "lower", "upper", "ewc", "emr", "gem"])
def test_strategies_serve_it_as_they_are(facts: Path, strategy: str) -> None:
    call("datasets", "show", facts.name)
    learner = Learner("timed", strategy, dim=6, epochs=5, lr=0.1, device="cpu")
    for part in read_stream(facts):
        learner.learn(part)
    assert learner.evaluate().whole["hits@10"] == 1.0  # nine people
    report = learner.learn([("p8", "likes", "p0", "2001")])
    assert report.details["arrived"] == {"entities": 0, "relations": 0, "times": 1}


def test_what_it_cannot_do_is_said(facts: Path) -> None:
    call("datasets")  # loads the plugin
    with pytest.raises(UserError, match="works on components: it needs a disentangled model"):
        Learner("timed", "dicgrl")
    learner = Learner("timed", "lower", start="neighbours", epochs=1, device="cpu")
    first, second, _ = read_stream(facts)
    learner.learn(first)
    with pytest.raises(UserError, match="start=neighbours: EventTrainer has no such start"):
        learner.learn(second)
    with pytest.raises(UserError, match="setting 'margin'"):
        Learner("timed", "lower", margin=3)
    with pytest.raises(UserError, match="transe predicts links, but people is a history of events"):
        task_named("temporal-links").check_model("transe", "people")
    assert task_of_model("timed").metric == "hits@10"
