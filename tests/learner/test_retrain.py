"""A new model learns all that is known; everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dicgrl import Learner, UserError
from dicgrl.jobs.versions import verified
from dicgrl.store.run_folder import RunFolder
from tests.tiny import STRATEGIES, learner_of, stream_of, taught


@pytest.mark.parametrize("kind", ["links", "nodes"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_but_the_model_stays(kind: str, strategy: str, tmp_path: Path) -> None:
    divided = kind == "links" and strategy == "dicgrl"
    learner = taught(learner_of("divided" if divided else kind, strategy), 2)
    learner.names["e1"] = "Number One"
    graph = learner.trainer.graph
    before = {name: list(v) for name, v in graph.vocabularies().items()}
    examples = {s: learner.trainer.examples(s).tolist() for s in ("train", "valid", "test")}
    learner.save(tmp_path / "run")
    RunFolder(tmp_path / "run").tag("old")
    report = learner.retrain()
    learner.evaluate()
    learner.save(tmp_path / "run", message="anew")
    assert (report.kind, learner.num_parts, report.new_examples) == ("retrain", 2, 0)
    again = Learner.load(tmp_path / "run", device="cpu")
    assert {name: list(v) for name, v in again.trainer.graph.vocabularies().items()} == before
    assert {s: again.trainer.examples(s).tolist() for s in examples} == examples
    assert again.names["e1"] == "Number One" and again.version == len(again.reports) == 3
    assert Learner.load(tmp_path / "run", at="old", device="cpu").version == 2
    again.learn(stream_of(kind)[2])  # as the one that was retrained in this process
    learner.learn(stream_of(kind)[2])
    for mine, theirs in zip(_tensors(again), _tensors(learner), strict=True):
        assert torch.equal(mine, theirs)
    again.save(tmp_path / "run")
    assert verified(tmp_path / "run").clean


def _tensors(learner: Learner) -> list[torch.Tensor]:
    model = learner.trainer.model
    rows = [table.rows for table in model.tables().values()]
    return rows + [parameter.detach() for parameter in model.parameters()]


def test_what_was_never_learned_is_learned_then() -> None:
    learner = Learner("transe", "frozen", dim=16, epochs=100, lr=0.1, batch=16, device="cpu")
    for letter in "ab":
        learner.learn([(f"{letter}{i}", f"next {letter}", f"{letter}{i + 1}") for i in range(30)])
    later = learner.trainer.examples("train", 1)
    before = learner.trainer.measure(later)["mrr"]
    learner.retrain()
    assert learner.trainer.measure(later)["mrr"] > 2 * before


def test_a_reader_takes_in_a_retraining(tmp_path: Path) -> None:
    learner = taught(learner_of("links", "fresh"), 2)
    learner.save(tmp_path / "run")
    reader = Learner.load(tmp_path / "run", device="cpu")
    learner.retrain()
    learner.save(tmp_path / "run")
    assert reader.refresh()
    assert torch.equal(reader.trainer.model.entities.rows, learner.trainer.model.entities.rows)
    assert [report.kind for report in reader.reports] == ["learn", "learn", "retrain"]


def test_forgotten_facts_are_not_learned_again() -> None:
    learner = taught(learner_of("links", "fresh"), 2)
    rows = learner.trainer.examples("train")
    row = rows[0].tolist()
    graph = learner.trainer.graph
    fact = tuple(
        names.labels([i])[0]
        for names, i in zip((graph.entities, graph.relations, graph.entities), row, strict=True)
    )
    learner.forget([fact])
    report = learner.retrain()
    assert row not in learner.trainer.examples("train").tolist()
    assert sum(report.positives.values()) % (len(rows) - 1) == 0


def test_nothing_is_learned_again_before_something_was() -> None:
    with pytest.raises(UserError, match="nothing was learned"):
        learner_of("links").retrain()
