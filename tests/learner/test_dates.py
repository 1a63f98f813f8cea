"""When facts were so: kept with them, and through all that may happen to them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dicgrl import Learner, UserError, load_stream
from dicgrl.errors import DataError, DataWarning
from dicgrl.graph.times import NEVER, told
from dicgrl.jobs.versions import difference
from dicgrl.readers import Reading, write_stream
from tests.learner.helpers import FILMS
from tests.tiny import learner_of

DATED = [
    ("Alien", "genre", "horror", "1979-05-25"),
    ("Brazil", "genre", "satire", "1985-02-20"),
    ("Aliens", "genre", "horror", "1986-07-18"),
    ("Aliens", "genre", "action"),
]


def dated(**settings: Any) -> Learner:
    learner = learner_of("links", "lower", **settings)
    learner.learn(DATED)
    return learner


def dates(learner: Learner) -> dict[tuple[str, ...], str]:
    graph = learner.trainer.graph
    entity, relation = list(graph.entities), list(graph.relations)
    found = graph.dates(graph.train).tolist()
    return {
        (entity[h], relation[r], entity[t]): told(moment)
        for (h, r, t), moment in zip(graph.train.tolist(), found, strict=True)
    }


def given(*facts: tuple[str, ...]) -> dict[tuple[str, ...], str]:
    return {fact[:3]: fact[3] if len(fact) > 3 else "" for fact in facts}


def again(learner: Learner, folder: Path) -> Learner:
    learner.save(folder)
    return Learner.load(folder, device="cpu")


def test_dates_come_with_facts_and_stay_in_the_folder(tmp_path: Path) -> None:
    learner = dated()
    assert dates(learner) == given(*DATED)
    assert dates(again(learner, tmp_path / "run")) == given(*DATED)
    report = learner.learn([("Brazil", "year", "1985", date(1985, 2, 20))])
    assert report.new_examples == 1
    assert dates(again(learner, tmp_path / "run"))["Brazil", "year", "1985"] == "1985-02-20"


def test_a_later_date_of_a_known_fact_is_noted_and_an_earlier_one_is_not(tmp_path: Path) -> None:
    learner = dated()
    assert learner.learn([(*DATED[0][:3], "2003-10-31"), (*DATED[1][:3], "1980")]).new_examples == 0
    assert len(learner.trainer.history) == 2
    learner.learn([(*DATED[0][:3], "1999"), DATED[1][:3]])  # nothing that is not known
    assert len(learner.trainer.history) == 2
    expected = given(*DATED) | {DATED[0][:3]: "2003-10-31"}
    assert dates(learner) == dates(again(learner, tmp_path / "run")) == expected


def test_dates_go_with_facts_that_are_forgotten_and_follow_those_that_are_merged(
    tmp_path: Path,
) -> None:
    learner = dated()
    learner.forget([DATED[0][:3]])
    left = given(*DATED[1:])
    assert dates(learner) == dates(again(learner, tmp_path / "run")) == left
    learner.learn([DATED[0][:3]])  # it came back, and nobody said when
    left[DATED[0][:3]] = ""
    assert dates(learner) == dates(again(learner, tmp_path / "run")) == left
    learner.rename("Brazil", "Brazil (1985)")
    learner.merge("Alien", "Aliens")
    expected = {
        ("Alien", "genre", "horror"): "1986-07-18",
        ("Brazil (1985)", "genre", "satire"): "1985-02-20",
        ("Alien", "genre", "action"): "",
    }
    assert dates(learner) == dates(again(learner, tmp_path / "run")) == expected
    learner.replace([("Alien", "genre", "action")], [("Alien", "genre", "thriller", "1990")])
    assert dates(learner)["Alien", "genre", "thriller"] == "1990-01-01"


def test_a_reader_takes_dates_in(tmp_path: Path) -> None:
    learner = dated()
    reader = again(learner, tmp_path / "run")
    learner.learn([(*DATED[0][:3], "2003-10-31"), ("Brazil", "director", "Gilliam", "1985")])
    learner.save(tmp_path / "run")
    assert reader.refresh()
    assert dates(reader) == dates(learner)
    found = difference(tmp_path / "run", 1, 2)["facts"]
    assert (found["added"]["dates"], found["redated"]) == (["1985-01-01"], 1)


def test_recency_is_the_time_since_and_not_the_parts() -> None:
    learner = dated(weighting="recency")
    learner.learn([("Cube", "genre", "horror", "1989-07-18"), ("Cube", "year", "1997")])
    trainer = learner.trainer
    graph, examples = trainer.graph, trainer.examples("train")
    moments = graph.dates(graph.train)
    whole = moments.max() - moments[moments != NEVER].min()
    ages = (moments.max() - moments) / whole * 2  # two parts
    ages[moments == NEVER] = [1, 0]  # parts since they arrived
    expected = torch.from_numpy(1 / np.sqrt(1 + ages)).float()
    assert torch.allclose(trainer.weights(examples), expected / expected.mean())


def test_explanations_say_when_facts_were_so() -> None:
    learner = dated()
    support = learner.explain("Brazil", "genre", "horror").support
    said = {tuple(f): d for entry in support for f, d in zip(entry.facts, entry.dates, strict=True)}
    assert said["Aliens", "genre", "horror"] == "1986-07-18"


@pytest.mark.parametrize(
    ("fact", "message"),
    [(("a", "r", "b", "soon"), "'soon' is not a time"), (("a", "r", "b", "1", "2"), "expected")],
)
def test_what_is_no_time_is_refused(fact: tuple[str, ...], message: str) -> None:
    learner = dated()
    with pytest.raises(UserError, match=message):
        learner.learn([*FILMS, fact])
    assert dates(learner) == given(*DATED)


TABLES = {
    "facts.csv": "head,relation,tail,date\nAlien,genre,horror,1979-05-25\nBrazil,genre,satire,\n",
    "facts.tsv": "date\thead\trelation\ttail\n1979-05-25\tAlien\tgenre\thorror\n"
    "\tBrazil\tgenre\tsatire\n",
    "facts.jsonl": '{"head":"Alien","relation":"genre","tail":"horror","time":"1979-05-25"}\n'
    '{"head":"Brazil","relation":"genre","tail":"satire","time":null}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_streams_bring_the_times_of_a_column(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TABLES[name], encoding="utf-8")
    (part,) = load_stream(str(tmp_path / name))
    assert [told(moment) for moment in part.times.tolist()] == ["1979-05-25", ""]
    learner = learner_of("links", "lower")
    learner.learn(str(tmp_path / name))
    assert dates(learner)["Alien", "genre", "horror"] == "1979-05-25"


def test_times_are_written_with_a_stream_and_stay_with_their_triples(tmp_path: Path) -> None:
    facts = [(f"e{i}", "r", f"e{i + 1}", f"19{50 + i}") for i in range(40)]
    lines = ["head,relation,tail,year", *map(",".join, facts)]
    (tmp_path / "facts.csv").write_text("\n".join(lines), encoding="utf-8")
    stream = load_stream(str(tmp_path / "facts.csv"), valid=0.1, test=0.1)
    made = stream.split("facts", parts=3)
    write_stream(made, tmp_path / "made")
    read = load_stream(str(tmp_path / "made"))
    assert sum(len(part.times) for part in read) == sum(len(part.train) for part in read) > 20
    for part in read:
        for (head, _, _), moment in zip(part.train.tolist(), part.times.tolist(), strict=True):
            (label,) = part.entities.labels([head])
            assert told(moment) == f"19{50 + int(label[1:])}-01-01"


def test_a_column_that_is_only_called_date_is_said_and_left(tmp_path: Path) -> None:
    file = tmp_path / "facts.csv"
    file.write_text("head,relation,tail,date\nAlien,genre,horror,c. 1979\n", encoding="utf-8")
    with pytest.warns(DataWarning, match="is no time: none is kept"):
        (part,) = load_stream(str(file))
    assert not len(part.times)
    with pytest.raises(DataError, match=r"c\. 1979"):
        load_stream(str(file), reading=Reading(columns="head,relation,tail,date"))


def test_times_beside_other_triples_than_there_are_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "train.txt").write_text("Alien\tgenre\thorror\n", encoding="utf-8")
    (tmp_path / "0" / "train-times.txt").write_text("1979\n1980\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 times for 1 triples"):
        load_stream(str(tmp_path))
