"""Runs that go on where they stopped, and those that are refused."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dicgrl import (
    Learner,
    UserError,
)
from dicgrl.errors import DataError
from dicgrl.jobs.changing import ChangeOptions, OnEpoch
from dicgrl.jobs.learn import learn_facts
from dicgrl.readers import read_stream
from dicgrl.store.run_folder import RunFolder
from tests.runs import measured, read_json, recipe_of, run, unchanged
from tests.stores import assert_same_stores, change_config, edited, kept
from tests.tiny import (
    RIVALS,
    STRATEGIES,
    circles,
    ring,
    stream_of,
    write_ring,
)


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [(kind, name) for kind in ("links", "nodes") for name in STRATEGIES]
    + [("links", name) for name in RIVALS],
)
def test_a_run_that_was_stopped_ends_with_the_same_numbers(
    kind: str, strategy: str, tmp_path: Path
) -> None:
    stream, recipe = stream_of(kind), recipe_of(kind, strategy)
    whole = run(stream, recipe, out=tmp_path / "whole")

    def stop_in(number: int) -> OnEpoch:
        def stop(part: int, report: object) -> None:
            if part == number:
                raise KeyboardInterrupt

        return stop

    for number in (1, 2):
        with suppress(KeyboardInterrupt):  # frozen has no later epochs to be stopped in
            run(stream, recipe, on_epoch=stop_in(number), out=tmp_path / "run", resume=True)
    again = run(stream, recipe, out=tmp_path / "run", resume=True)
    assert measured(again) == measured(whole)
    assert measured(read_json(tmp_path / "run" / "results.json")) == measured(whole)
    assert_same_stores(tmp_path / "run", tmp_path / "whole")


def test_resume_begins_where_there_is_nothing(tmp_path: Path) -> None:
    recipe = recipe_of("links")
    begun = run(ring(), recipe, out=tmp_path / "new" / "run", resume=True)
    assert measured(begun) == measured(run(ring(), recipe))


def test_a_stream_that_grew_since_is_gone_on_with(tmp_path: Path) -> None:
    recipe = recipe_of("links", "ewc")
    run(ring()[:2], recipe, out=tmp_path)
    grown = run(ring(), recipe, out=tmp_path, resume=True)
    assert measured(grown) == measured(run(ring(), recipe))
    with pytest.raises(UserError, match="more parts than this stream"):
        run(ring()[:1], recipe, out=tmp_path, resume=True)


def test_a_run_from_before_a_setting_existed_is_resumed_with_its_default(tmp_path: Path) -> None:
    recipe = recipe_of("links", "dicgrl", weighting="even", shield_rank=0)
    run(ring()[:1], recipe, out=tmp_path)
    for name in ("weighting", "shield_rank"):
        change_config(tmp_path, lambda config, name=name: config["settings"].pop(name))
    grown = run(ring(), recipe, out=tmp_path, resume=True)
    assert measured(grown) == measured(run(ring(), recipe))
    other = recipe_of("links", "dicgrl", weighting="even", shield_rank=4)
    with pytest.raises(UserError, match="has shield_rank=0, not 4"):
        run(ring(), other, out=tmp_path, resume=True)


def test_a_run_is_not_overwritten_or_gone_on_with_by_another(begun: Path) -> None:
    unchanged(begun, "already holds a run", "--resume", resume=False)
    unchanged(begun, "seed=0, not 1", seed=1)
    unchanged(begun, "lr=0.05, not 0.5", recipe=recipe_of("links", lr=0.5))
    unchanged(begun, "strategy='lower', not 'emr'", recipe=recipe_of("links", "emr"))
    unchanged(begun, "dataset='ring', not 'rong'", stream=replace(ring(), name="rong"))
    unchanged(begun, "dataset='ring'", stream=circles(), recipe=recipe_of("nodes"))


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_run_is_not_gone_on_with_when_its_data_changed(
    begun: Path, tmp_path: Path, split: str
) -> None:
    changed = write_ring(tmp_path / "changed" / "ring")
    path = changed / "1" / f"{split}.txt"
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    head, relation, tail = first.split("\t")
    path.write_text("\n".join([f"{tail}\t{relation}\t{head}", *lines]), encoding="utf-8")
    unchanged(begun, "part 1 of the run there is not that", stream=read_stream(changed))


def test_leftovers_of_a_killed_run_are_removed(begun: Path) -> None:
    (begun / ".part-2.0123456789abcdef").mkdir()
    (begun / ".part-2.0123456789abcdef" / "half").write_text("half")
    (begun / "tensors" / ".3.delta.0123456789abcdef").write_text("half")
    (begun / "tensors" / "3.delta.0123456789abcdef.safetensors").write_text("of no version")
    (begun / ".store.sqlite.0123456789abcdef-wal").write_text("half")
    (begun / ".results.json.0123456789abcdef").write_text("half")
    (begun / ".mine").write_text("a user's own")
    run(ring(), recipe_of("links"), out=begun, resume=True)
    assert [path.name for path in begun.glob(".*")] == [".mine"]
    assert kept(begun) == [1, 2, 3]


@pytest.mark.parametrize("resume", [True, False])
def test_tensors_without_their_database_are_left_as_they_are(begun: Path, resume: bool) -> None:
    (begun / "store.sqlite").unlink()
    epochs: list[int] = []
    unchanged(
        begun,
        "store.sqlite is missing",
        resume=resume,
        on_epoch=lambda part, _: epochs.append(part),
    )
    assert not epochs


def test_the_newest_version_does_not_get_lost_in_silence(begun: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    with edited(begun) as database:
        database.connection.execute("DELETE FROM versions WHERE number = 2")
    for use in (
        lambda: Learner.load(begun, device="cpu"),
        RunFolder(begun).overview,
        RunFolder(begun).results,
        lambda: learn_facts(begun, facts, ChangeOptions("cpu")),
    ):
        with pytest.raises(DataError, match=r"versions are missing: there were 2"):
            use()
    unchanged(begun, "missing")


def test_results_are_written_and_never_read_back(begun: Path) -> None:
    """Whatever becomes of the file, also where a process is killed before it writes it."""
    told = RunFolder(begun).results()
    for content in (b"", b"{", b'{"parts": [{}, {}, {}]}', b'{"parts": 3}'):
        (begun / "results.json").write_bytes(content)
        assert Learner.load(begun, device="cpu").num_parts == 2
        assert RunFolder(begun).results() == told
    (begun / "results.json").unlink()
    os.mkfifo(begun / "results.json")  # who reads it waits for ever
    assert Learner.load(begun, device="cpu").num_parts == 2
    again = run(ring(), recipe_of("links"), out=begun, resume=True)
    assert read_json(begun / "results.json") == json.loads(json.dumps(again))


def test_damaged_parts_are_not_gone_on_with(begun: Path) -> None:
    with edited(begun) as database:
        row = next(database.rows("arrays", "WHERE name = 'train'"))
        changed = row["data"][:-1] + b"\x07"
        database.connection.execute("UPDATE arrays SET data = ? WHERE name = 'train'", (changed,))
    with pytest.raises(DataError, match="checksum"):
        run(ring(), recipe_of("links"), out=begun, resume=True)


def test_results_that_fell_behind_are_told_and_written_anew(tmp_path: Path) -> None:
    """As where a process is killed in between, or a program went on with the folder."""
    out, facts = tmp_path / "run", tmp_path / "facts.tsv"
    run(ring()[:1], recipe_of("links", "lower"), out=out)
    learner = Learner.load(out, device="cpu")
    learner.learn(ring()[1])
    learner.evaluate()
    learner.save(out)
    with pytest.raises(DataError, match="1 of 2 parts"):
        RunFolder(out).results()
    known = ring()[0].train[:1]
    labels = (ring().entities.labels(known[:, 0]), ring().relations.labels(known[:, 1]))
    tails = ring().entities.labels(known[:, 2])
    facts.write_text("\t".join([labels[0][0], labels[1][0], tails[0]]) + "\n")
    learn_facts(out, facts, ChangeOptions("cpu"))
    assert len(RunFolder(out).results()["parts"]) == 2


def test_resume_measures_what_was_learned_in_python(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run(ring()[:1], recipe_of("links", "lower"), out=out)
    learner = Learner.load(out, device="cpu")
    learner.learn(ring()[1])
    learner.save(out)
    results = run(ring()[:2], recipe_of("links", "lower"), out=out, resume=True)
    assert len(results["parts"][-1]["tests"]) == 2
    assert RunFolder(out).results()["parts"] == results["parts"]
