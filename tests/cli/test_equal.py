"""Python and the command line have the same verbs with the same options, and the same answers."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.dom import minidom

import numpy as np
import pytest
import typer

import dicgrl
from dicgrl.cli.app import app
from dicgrl.readers import Reading
from tests.cli.helpers import Cli, write

READING = {"columns", "sep", "format", "query", "literals", "time_format"}
PRINTED = {"json", "plugin", "quiet", "verbose", "log_level"}  # how a command prints
OF_LEARNER = {"device"}  # an argument of Run itself
# What is not about one run; each is a function, or is nobody's program.
FUNCTIONS = {"run": dicgrl.run}
ELSEWHERE = {"compare", "reproduce", "sweep"}


def named(parameter: Any) -> str:
    """The name of an option or argument, as it is written."""
    names = [name.lstrip("-") for name in parameter.opts if name.startswith("--")]
    names = names or [name.lstrip("-") for name in parameter.opts]
    return str(names[0].replace("-", "_"))


def options(command: Any) -> set[str]:
    """Names of a command's options and arguments."""
    return {named(each) for each in command.params} - PRINTED - {"help"}


def arguments(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name for each in parameters} - {"self"}


COMMANDS = {
    name: command
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    if "RUN" in {each.metavar for each in command.params if each.metavar} and not command.hidden
}
METHODS = {
    name
    for name, method in inspect.getmembers(dicgrl.Run, inspect.isfunction)
    if not name.startswith("_") and name != "learner"
}


def test_every_command_about_a_run_is_a_method_and_the_other_way_round() -> None:
    assert {"learn", "predict", "export", "backup"} <= set(COMMANDS)
    assert set(COMMANDS) - METHODS - ELSEWHERE <= {
        "mcp",
        "serve",
    }  # which go on until they are stopped
    assert set(COMMANDS) >= METHODS


def leaves(command: Any, name: str = "") -> dict[str, Any]:
    """Commands and commands of groups, by their names."""
    found = {f"{name} {key}".strip(): each for key, each in command.commands.items()}
    groups = [leaves(each, key) for key, each in found.items() if hasattr(each, "commands")]
    return {key: each for part in (found, *groups) for key, each in part.items()}


def test_every_command_that_prints_a_result_prints_it_as_json_too() -> None:
    every = leaves(typer.main.get_command(app))
    assert {"tag", "datasets", "datasets split"} <= set(every)
    without = {
        name
        for name, command in every.items()
        if not command.hidden and "json" not in {named(each) for each in command.params}
    }
    assert without == {"serve", "mcp"}  # which answer until they are stopped


@pytest.mark.parametrize("name", sorted(METHODS & set(COMMANDS)))
def test_it_has_the_same_options(name: str) -> None:
    theirs = options(COMMANDS[name]) - {"folder"} - OF_LEARNER
    mine = arguments(getattr(dicgrl.Run, name))
    if "reading" in mine:
        assert theirs >= READING
        theirs = (theirs - READING) | {"reading"}
    if name == "predict":  # the fields of a question are arguments by name
        theirs -= {"head", "relation", "tail", "node"}
        mine -= {"given"}
    if name == "similar":
        theirs -= {"label"}
    assert mine == theirs
    given = inspect.signature(getattr(dicgrl.Run, name)).parameters
    for each in COMMANDS[name].params:
        argument = given.get(named(each))
        if argument and not each.required and argument.default is not inspect.Parameter.empty:
            assert (argument.default or None) == (each.default or None)


def test_the_function_that_runs_has_the_options_of_its_command() -> None:
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    theirs = (options(command) - READING) | {"reading"}
    theirs = (theirs - {"set", "plain"}) | {"settings"}  # --plain is disentangled=False
    assert theirs <= arguments(dicgrl.run)
    assert arguments(dicgrl.run) - theirs == {"on_part", "on_epoch"}


def test_how_files_are_read_is_one_thing_in_both() -> None:
    assert {each for each in arguments(Reading) if each != "self"} == READING


def test_the_package_shows_its_public_names_alone() -> None:
    assert dir(dicgrl) == sorted([*dicgrl.__all__, "__version__"])
    for name in dir(dicgrl):
        assert getattr(dicgrl, name) is not None


@pytest.mark.usefixtures("trained_runs_here")
def test_methods_say_what_commands_say(cli: Cli) -> None:
    run = dicgrl.Run("divided", device="cpu")
    facts = write("facts.tsv", "e1\tplus 1\te2", "e3\tplus 2\te5", "nobody\tplus 1\te2")
    known = [("e1", "plus 1", "e2"), ("e3", "plus 2", "e5")]

    def told(*words: str) -> Any:
        return json.loads(cli(*words, "--json").out)

    assert run.info() == told("info", "divided")
    assert run.log() == told("log", "divided")
    assert run.diff(1, 2, k=3) == told("diff", "divided", "1", "2", "-k", "3")
    assert run.verify() == told("verify", "divided")
    assert run.evaluate() == told("evaluate", "divided")
    write("learned.tsv", *("\t".join(fact) for fact in held_and_known(run)))
    said = told("learn", "divided", "learned.tsv", "--evaluate", "none")
    assert said["nothing_new"] and said["facts"] == {"given": 2, "known": 1, "held_out": 1}
    memory = {"peak_memory_bytes": 0}  # which grows while the tests run
    assert run.learn("learned.tsv", evaluate="none") | memory == said | memory
    measured = told("evaluate", "divided", facts, "--skip-unknown", "--by-relation")
    assert run.evaluate(facts, skip_unknown=True, by_relation=True) == measured
    assert run.evaluate(known)["mrr"] == measured["mrr"]
    lines = cli("score", "divided", facts, "--skip-unknown").out.splitlines()
    found = run.score(facts, skip_unknown=True)
    assert [f"{h}\t{r}\t{t}\t{score:.6g}" for h, r, t, score in found] == lines
    assert run.score(known) == found == run.score(iter(known))
    told_of = cli("score", "divided", facts, "--skip-unknown", "--json").out.splitlines()
    assert [tuple(json.loads(line).values()) for line in told_of] == found
    likely = cli("score", "divided", facts, "--skip-unknown", "--probability", "--json").out
    rows = [json.loads(line) for line in likely.splitlines()]
    assert list(rows[0]) == ["head", "relation", "tail", "score", "probability"]
    for row, mine in zip(rows, run.score(facts, skip_unknown=True, probability=True), strict=True):
        assert tuple(row.values())[:3] == mine[:3]
        assert tuple(row.values())[3:] == pytest.approx(mine[3:])
    asked = told("predict", "divided", "--head", "e1", "--relation", "plus 1", "--new", "-k", "2")
    answers = run.predict("e1", "plus 1", new=True, k=2)
    assert [answer.label for answer in answers] == [each["label"] for each in asked]
    questions = write("asked.tsv", "e1\tplus 1\t?", "?\tplus 2\te5")
    many = run.predict(file=questions, k=2)
    assert many == run.learner().predict_links(
        [("e1", "plus 1", None), (None, "plus 2", "e5")], k=2
    )
    listed = [("e1", "plus 1", None), ("?", "plus 2", "e5"), ("nobody", "plus 1", None)]
    assert run.predict(file=listed, k=2, skip_unknown=True) == many
    assert run.predict(file=iter(listed[:2]), k=2) == many
    with pytest.raises(dicgrl.UserError, match="questions:3: unknown entity 'nobody'"):
        run.predict(file=listed)
    with pytest.raises(dicgrl.UserError, match="file holds the questions"):
        run.predict("e1", file=questions)
    with pytest.raises(dicgrl.UserError, match="about triples"):
        run.evaluate(by_relation=True)
    with pytest.raises(dicgrl.UserError, match="leave out the triples"):
        run.evaluate(known, protocol="snapshot")


@pytest.mark.usefixtures("trained_runs_here")
def test_candidates_come_from_a_file_however_many_questions_there_are(cli: Cli) -> None:
    run = dicgrl.Run("plain", device="cpu")
    place = write("some.tsv", "e2", "e5", "nobody")
    with pytest.raises(dicgrl.DataError, match=r"some\.tsv:3: unknown entity 'nobody'"):
        run.predict("e1", "plus 1", among=place)
    asked = ("predict", "plain", "--head", "e1", "--relation", "plus 1", "--skip-unknown")
    said = json.loads(cli(*asked, "--among", place, "--json").out)
    for among in (place, Path(place), ["e2", "e5"]):
        found = run.predict("e1", "plus 1", among=among, skip_unknown=True)
        assert [each.label for each in found] == [each["label"] for each in said]
        assert run.predict(file=[("e1", "plus 1", "?")], among=among, skip_unknown=True) == [found]
    with pytest.raises(dicgrl.UserError, match="expected a file of labels, seen, heads"):
        run.predict("e1", "plus 1", among="e2")


@pytest.mark.usefixtures("trained_runs_here")
def test_what_a_command_takes_once_need_not_be_a_list(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = dicgrl.Run(tmp_path / "run", device="cpu")
    dicgrl.Run("plain").backup(tmp_path / "run")
    assert run.nightly([("e1", "plus 1", "z")], fail_if="facts < 5", evaluate="none")["gates"]
    with pytest.raises(dicgrl.UserError, match="not a gate: 'fact'"):
        run.nightly([("e1", "plus 1", "z")], fail_if="fact")
    run.rename(file=pandas.DataFrame({"old": ["e2"], "new": ["second"]}))
    assert "second" in run.learner().trainer.graph.entities
    with pytest.raises(dicgrl.UserError, match=r"expected \(head, relation, tail\)"):
        run.explain(("e1", "plus 1"))  # type: ignore[arg-type]


@pytest.mark.usefixtures("trained_runs_here")
def test_a_network_is_asked_and_revised_by_lists_and_facts(tmp_path: Path) -> None:
    dicgrl.Run("nodes").backup(tmp_path / "net")
    run = dicgrl.Run(tmp_path / "net", device="cpu")
    nodes = run.learner().trainer.graph.nodes.labels([0, 1])
    questions = write("nodes.tsv", *nodes)
    assert run.predict(file=nodes, k=1) == run.predict(file=questions, k=1)
    assert len(run.predict(file=[*nodes, "nobody"], skip_unknown=True)) == 2
    with pytest.raises(dicgrl.UserError, match="nobody"):
        run.predict(file=["nobody"])
    run.revise(dicgrl.NetworkFacts(nodes[:1], classes=["purple"]), evaluate="none")
    assert run.log()[-1]["kind"] == "revise"


def held_and_known(run: dicgrl.Run) -> list[tuple[str, str, str]]:
    """A fact that a run has learned, and one that it holds out."""
    graph = run.learner().trainer.graph
    entities, relations = graph.entities, graph.relations
    rows = np.stack([graph.train[0], graph.test[0]])
    columns = entities.labels(rows[:, 0]), relations.labels(rows[:, 1]), entities.labels(rows[:, 2])
    return list(zip(*columns, strict=True))


@pytest.mark.usefixtures("trained_runs_here")
def test_methods_change_a_run_as_commands_do(tmp_path: Path) -> None:
    run = dicgrl.Run(tmp_path / "run", device="cpu")
    dicgrl.Run("plain").backup(tmp_path / "run")
    before = len(run.log())
    run.learn([("e1", "plus 1", "z")], message="one", evaluate="none")
    run.rename("z", "zed")
    run.rename(file=[("zed", "z")])
    run.merge("e2", "z", evaluate="none")
    run.replace([("e1", "plus 1", "e2")], iter([("e1", "plus 1", "y")]), evaluate="none")
    run.forget([("e1", "plus 1", "y")], evaluate="none")
    assert run.tag("here", at=before) == before and run.tag("here", delete=True) == before
    assert run.restore(before, message="back") == len(run.log())
    run.compact(keep="last")
    log = run.log()
    assert (log[before]["message"], log[-1]["message"]) == ("one", "back")
    assert "<table>" in run._repr_html_() and repr(run) == f"Run('{tmp_path / 'run'}')"


@pytest.mark.usefixtures("trained_runs_here")
def test_what_methods_return_is_a_table_in_a_notebook(tmp_path: Path) -> None:
    run = dicgrl.Run(tmp_path / "run", device="cpu")
    dicgrl.Run("plain").backup(tmp_path / "run")
    odd = [("e1", "plus 1", "<z>")]
    shown = {
        "info": run.info(),
        "evaluate": run.evaluate(),
        "triples": run.evaluate([("e1", "plus 1", "e2")]),
        "nightly": run.nightly([("e1", "plus 1", "y")]),
        "learn": run.learn(odd),
        "nothing": run.learn(odd),
        "forget": run.forget(odd),
        "rename": run.rename("y", "why"),
        "diff": run.diff(1, 2),
        "verify": run.verify(),
        "compact": run.compact(),
    }
    for name, found in shown.items():
        assert isinstance(found, dict) and json.loads(json.dumps(found)) == found, name
        assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == dict(found)
        html = found._repr_html_()  # type: ignore[attr-defined]
        assert html.startswith(("<p>", "<table>")), name
        minidom.parseString(f"<div>{html}</div>")
    html = {name: found._repr_html_() for name, found in shown.items()}  # type: ignore[attr-defined]
    assert "<th>retention</th>" in html["info"] and "<td>whole</td>" in html["evaluate"]
    assert "night 1: kept" in html["nightly"] and html["nothing"].startswith("<p>nothing new")
    assert "<p>forgotten 1 fact" in html["forget"] and "<td>clean</td>" in html["verify"]
