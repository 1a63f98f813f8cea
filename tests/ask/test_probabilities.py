"""Probabilities beside answers: against a slow reference, and alike however they are asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from dicgrl import KnowledgeGraph, KnowledgeStream, Learner
from dicgrl.ask import probabilities
from dicgrl.ask.probabilities import Masses, ask_about, facts_within
from dicgrl.evaluation.calibration import Calibration
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL
from tests.streams import knowledge_stream
from tests.tiny import learner_of, ring, taught

Triple = tuple[str, str, str]


@cache
def learned(kind: str) -> Learner:
    return taught(learner_of(kind, epochs=20))


@pytest.fixture(params=["links", "divided"])
def learner(request: pytest.FixtureRequest) -> Learner:
    return learned(request.param)


def trainer_of(learner: Learner) -> LinkTrainer:
    assert isinstance(learner.trainer, LinkTrainer)
    return learner.trainer


def slow_probability(learner: Learner, triple: Triple, asked: int) -> float:
    """As docs/protocol.md has it: score all that could stand there, one by one, and leave out."""
    graph = trainer_of(learner).graph
    entities, relations = list(graph.entities), list(graph.relations)
    facts = {
        (entities[h], relations[r], entities[t])
        for rows in (graph.train, graph.valid, graph.test)
        for h, r, t in rows
    }
    reflexive = bool(graph.is_reflexive(graph.relations.ids([triple[1]]))[0])
    others = []
    for text in relations if asked == RELATION else entities:
        other = tuple(text if column == asked else x for column, x in enumerate(triple))
        is_loop = asked != RELATION and other[0] == other[2] and not reflexive
        if other == triple or (other not in facts and not is_loop):
            others.append(other)
    scores = torch.tensor(learner.score(others), dtype=torch.double)  # type: ignore[arg-type]
    mine = scores[others.index(triple)]
    calibration = Calibration.from_dict(learner.reports[-1].calibration["fit"])
    relation = torch.from_numpy(graph.relations.ids([triple[1]]))
    relation = torch.zeros_like(relation) if asked == RELATION else relation
    mass = (calibration.scale_of(relation, asked) * scores).logsumexp(0)
    rank = 1.0 + (scores > mine).sum()
    found = calibration.probabilities(
        relation, asked, mine.view(1, 1), rank.view(1, 1), mass.view(1, 1)
    )
    return found.item()


@pytest.mark.parametrize("asked", [HEAD, RELATION, TAIL])
def test_predict_says_what_a_slow_reference_says(learner: Learner, asked: int) -> None:
    for triple in (("e1", "plus 2", "e3"), ("e4", "plus 1", "e9")):
        question = [None if column == asked else text for column, text in enumerate(triple)]
        for answer in learner.predict(*question, k=99):
            full = tuple(answer.label if text is None else text for text in question)
            assert len(full) == 3 and answer.probability is not None
            expected = slow_probability(learner, full, asked)  # type: ignore[arg-type]
            assert answer.probability == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_it_does_not_depend_on_how_one_asks(learner: Learner) -> None:
    asked = [("e1", "plus 2", None), (None, "plus 1", "e7"), ("e2", None, "e4")]
    together = learner.predict_links(asked, k=5)
    for question, answers in zip(asked, together, strict=True):
        assert learner.predict(*question, k=5) == answers
        one = learner.predict(*question, k=1)[0]
        assert one.probability == pytest.approx(answers[0].probability)
        every = {a.label: a.probability for a in learner.predict(*question, k=99)}
        for answer in learner.predict(*question, k=99, new=True):
            assert answer.probability == pytest.approx(every[answer.label])
    found = {a.label: a.probability for a in learner.predict("e1", "plus 2", k=99)}
    told = learner.probabilities([("e1", "plus 2", label) for label in found])
    assert told == pytest.approx(list(found.values()), rel=1e-3, abs=1e-6)
    why = learner.explain("e1", "plus 2", "e3")
    assert why.probability == pytest.approx(found["e3"], rel=1e-3)


def test_masses_of_blocks_are_those_of_all_candidates(learner: Learner) -> None:
    trainer = trainer_of(learner)
    questions = trainer.graph.test[:4].copy()
    calibration = Calibration.from_dict(learner.reports[-1].calibration["fit"])
    scores = torch.randn(len(questions), trainer.model.num_entities)
    ids = torch.arange(trainer.model.num_entities)
    rows = torch.arange(len(questions))
    whole, pieces = (Masses(trainer, calibration, questions, TAIL) for _ in range(2))
    whole.add(rows, scores, ids)
    for block in torch.split(ids, 7):
        pieces.add(rows, scores[:, block], block)
    shown, known = scores.numpy(), np.zeros(scores.shape, dtype=np.bool_)
    one, other = (each.probabilities(shown, known) for each in (whole, pieces))
    assert one == pytest.approx(other, rel=1e-4)


def test_what_is_kept_of_the_candidates_stands_for_all(learner: Learner) -> None:
    trainer = trainer_of(learner)
    facts, parts = facts_within(trainer, "valid")
    assert len(facts) == trainer.count("valid") and parts.tolist() == sorted(parts)
    asked = ask_about(trainer, facts)
    stands_for = asked.log_weight.exp().sum(1)
    assert stands_for.tolist() == pytest.approx(asked.candidates.tolist())
    ranks = trainer.ranks(trainer.examples("valid")[torch.from_numpy(_order(trainer, facts))])
    sides = torch.cat([asked.rank[asked.side == side] for side in (HEAD, TAIL)])
    # The question's own entity is a candidate of ranks, and none of `predict`.
    assert (sides <= ranks.realistic.flatten()).all()
    assert (sides >= ranks.realistic.flatten() - 1).all()


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_long_life_is_not_asked_about_ever_more_facts(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner("transe", "frozen", dim=4, epochs=1, device="cpu")
    learner.learn([(f"e{n}", "next", f"e{n + 1}") for n in range(9)])
    for n in range(10, 40):
        learner.learn([(f"e{n}", "next", "e1")])
    monkeypatch.setattr(probabilities, "most_facts", lambda *_: 5)
    monkeypatch.setattr(probabilities, "_LEAST", 5)
    facts, parts = facts_within(trainer_of(learner), split)
    assert len(facts) == len(parts) <= 6
    assert split == "test" or 30 in parts


def _tiny_parts(learner: Learner, count: int) -> list[bool]:
    """Learn parts of one fact each; whether the model was looked at after each."""
    start = learner.num_entities
    return [
        "found" in learner.learn([(f"late{start + n}", "plus 1", "e1")]).calibration
        for n in range(count)
    ]


@pytest.fixture
def long_lived(monkeypatch: pytest.MonkeyPatch) -> Learner:
    """One that a part of a single fact is too small to be looked at again."""
    monkeypatch.setattr(probabilities, "_SMALL", 2)
    monkeypatch.setattr(probabilities, "_LEAST", 10)
    learner = learner_of("links", epochs=5)
    learner.learn(ring()[0])
    model = trainer_of(learner).model
    each = 2 * model.num_entities * (probabilities._numbers(model) + probabilities._PASSES)
    monkeypatch.setitem(probabilities._WORK, "cpu", 100 * each)
    return learner


def test_small_parts_add_up_until_they_are_worth_a_look(long_lived: Learner) -> None:
    looked = _tiny_parts(long_lived, 12)
    assert not looked[0] and any(looked)
    first = looked.index(True)
    assert not looked[first + 1] and any(looked[first + 1 :])
    assert all(report.calibration["fit"] for report in long_lived.reports)  # that of the last look


def test_facts_that_left_are_looked_at_like_facts_that_arrived(long_lived: Learner) -> None:
    """Once many are gone, or few of them have added up."""
    before = long_lived.reports[-1].calibration["fit"]
    graph = trainer_of(long_lived).graph
    known = [labels_of(graph, row) for row in graph.train]
    single = [long_lived.forget([fact]) for fact in known[:12]]
    looks = ["found" in report.calibration for report in single]
    assert not looks[0] and any(looks)
    assert not looks[looks.index(True) + 1]
    report = long_lived.forget(known[12:24])
    assert report.calibration["found"] and report.calibration["fit"] != before


def labels_of(graph: KnowledgeGraph, row: np.ndarray) -> tuple[str, str, str]:
    ((head,), (relation,), (tail,)) = (
        labels.labels([number])
        for labels, number in zip(
            (graph.entities, graph.relations, graph.entities), row.tolist(), strict=True
        )
    )
    return head, relation, tail


def test_a_model_that_was_retrained_is_looked_at(long_lived: Learner) -> None:
    """What made probabilities of the old model's scores says nothing of the new one's."""
    (looked,) = _tiny_parts(long_lived, 1)
    assert not looked
    before = long_lived.reports[-1].calibration["fit"]
    report = long_lived.retrain()
    assert report.calibration["found"] and report.calibration["fit"] != before


def _order(trainer: LinkTrainer, facts: np.ndarray) -> np.ndarray:
    rows = {tuple(row): at for at, row in enumerate(trainer.graph.valid.tolist())}
    return np.array([rows[tuple(fact)] for fact in facts.tolist()])


def test_what_was_fitted_is_saved_and_older_folders_are_fitted_on_demand(
    learner: Learner, tmp_path: Path
) -> None:
    asked = learner.predict("e1", "plus 2", k=5)
    learner.save(tmp_path / "run")
    again = Learner.load(tmp_path / "run", device="cpu")
    assert again.reports[-1].calibration == learner.reports[-1].calibration
    assert again.predict("e1", "plus 2", k=5) == asked
    for report in again.reports:  # as an earlier version left it
        report.calibration = {}
    assert again.predict("e1", "plus 2", k=5) == asked


def facts_of(first: int, last: int) -> list[Triple]:
    """Everybody of sixty knows those one and two further, and likes those five further."""
    steps = ((1, "knows"), (2, "knows"), (5, "likes"))
    every = [(f"p{i}", name, f"p{(i + step) % 60}") for i in range(60) for step, name in steps]
    return every[first:last]


def test_without_held_out_facts_there_are_none_until_facts_arrive() -> None:
    learner = Learner("transe", "fresh", dim=16, epochs=30, lr=0.05, batch=32, device="cpu")
    every = facts_of(0, 180)
    order = np.random.default_rng(0).permutation(180)
    learner.learn([every[i] for i in order[:110]])
    asked = learner.predict("p1", "knows", k=3)
    assert [answer.probability for answer in asked] == [None] * 3
    assert learner.probabilities([("p1", "knows", "p2")]) == [None]
    assert "--valid" in learner.ask.note({"head": "p1", "relation": "knows"})
    learner.learn([every[i] for i in order[110:]])
    told = learner.reports[-1].calibration
    assert (told["basis"], told["fitted_on"]) == ("training", "arrivals")
    assert all(answer.probability for answer in learner.predict("p1", "knows", k=3))
    fit = told["fit"]
    learner.learn([("p1", "knows", "newcomer")])  # too few to fit anew
    assert learner.reports[-1].calibration["fit"] == fit


def test_classes_have_probabilities_that_sum_to_one() -> None:
    learner = learned("nodes")
    (answers,) = learner.predict_classes(["n3"], k=9)
    assert sum(a.probability or 0 for a in answers) == pytest.approx(1)
    scale = learner.reports[-1].calibration["fit"]["scale"]
    scores = torch.tensor([a.score for a in answers]).log()
    expected = (scale * scores).softmax(0)
    assert [a.probability for a in answers] == pytest.approx(expected.tolist(), rel=1e-4)


def test_results_tell_how_reliable_they_are(learner: Learner) -> None:
    found = learner.reports[-1].results(learner.evaluation())["calibration"]
    assert found["basis"] == "validation" and found["fitted"] == learner.trainer.count("valid")
    assert found["count"] == 2 * found["facts"] == 2 * learner.trainer.count("test")
    assert 0 <= found["ece"] <= 1 and found["ten_best"]["count"] == 10 * found["count"]
    assert "fit" not in found


def test_a_graph_of_one_fact_is_no_trouble() -> None:
    one = [("a", "likes", "b")]
    part = {"train": one, "valid": one, "test": [("b", "likes", "a")]}
    learner = Learner("transe", "lower", dim=4, epochs=1, device="cpu")
    learner.learn(knowledge_stream([part])[0])
    learner.evaluate()
    assert learner.predict("a", "likes", k=5)


def test_a_part_too_small_for_another_look_keeps_the_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner = Learner("transe", "lower", dim=8, epochs=2, device="cpu")
    facts = [(f"e{i}", "likes", f"e{(i + step) % 150}") for i in range(150) for step in (1, 2, 3)]
    (first,) = KnowledgeStream.from_labels("many", [facts], valid=0.2, test=0.1)
    learner.learn(first)
    learner.evaluate()
    before = learner.reports[-1].calibration
    monkeypatch.setitem(probabilities._WORK, "cpu", 1 << 16)  # as if there were many entities
    learner.learn([("e1", "likes", "e77")])
    found = learner.evaluate()
    after = learner.reports[-1].calibration
    assert after["fit"] == before["fit"] and "found" not in after
    assert learner.reports[-1].results(found)["calibration"]["fitted"] == before["facts"]
    assert learner.predict("e1", "likes", k=1)[0].probability is not None


def test_a_question_does_not_look_at_what_was_too_little_to_be_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is held out, so that there is nothing to fit, not even for the first question."""
    learner = Learner("transe", "lower", dim=8, epochs=2, device="cpu")
    learner.learn([(f"e{i}", "likes", f"e{(i + 1) % 150}") for i in range(150)])
    monkeypatch.setitem(probabilities._WORK, "cpu", 1 << 10)  # as if there were many entities
    learner.learn([("e1", "likes", "e77")])
    monkeypatch.setattr(probabilities, "ask_about", pytest.fail)
    assert learner.predict("e1", "likes", k=1)[0].probability is None
