"""Runs part by part: what they write, and that they go on where they stopped."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dicgrl import KnowledgeStream, Learner
from dicgrl.errors import DataError, UserError
from dicgrl.graph import Stream
from dicgrl.jobs.stream import OnEpoch, learn_more, results, run_stream
from dicgrl.readers import read_stream
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.sealed import write_sealed
from dicgrl.training import EpochReport
from tests.tiny import STRATEGIES, circles, learner_of, ring, stream_of, taught, write_ring

KEYS = {
    "dataset",
    "task",
    "model",
    "strategy",
    "recipe",
    "seed",
    "device",
    "settings",
    "protocol",
    "parts",
    "forgetting",
    "backward_transfer",
    "forward_transfer",
    "peak_memory_bytes",
}
PART_KEYS = {
    "part",
    "learn_seconds",
    "evaluate_seconds",
    "new_examples",
    "replayed_examples",
    "candidates",
    "tests",
    "whole",
    "average",
}


def recipe_of(kind: str, strategy: str = "lower", **changes: Any) -> Recipe:
    return Recipe("default", learner_of(kind, strategy, **changes).settings)


def run(stream: Stream, recipe: Recipe, **arguments: Any) -> dict[str, Any]:
    return run_stream(stream, recipe, device="cpu", **arguments)


def measured(results: dict[str, Any]) -> Any:
    """All of the results but times and memory, as they are read from a file."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: kept(v)
                for k, v in value.items()
                if not k.endswith("seconds") and k != "peak_memory_bytes"
            }
        return [kept(v) for v in value] if isinstance(value, list) else value

    return kept(json.loads(json.dumps(results)))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [("links", {"mrr", "hits@1", "hits@3", "hits@10"}), ("nodes", {"accuracy"})],
)
def test_results_have_the_documented_shape(kind: str, metrics: set[str], tmp_path: Path) -> None:
    stream = stream_of(kind)
    results = run(stream, recipe_of(kind, "dicgrl"), seed=3, out=tmp_path)
    assert read(tmp_path / "results.json") == json.loads(json.dumps(results))
    assert results.keys() >= KEYS
    assert (results["dataset"], results["seed"], results["device"]) == (stream.name, 3, "cpu")
    assert (results["task"], results["strategy"]) == (str(stream.task), "dicgrl")
    assert results["protocol"] and results["peak_memory_bytes"] > 0
    assert [part["part"] for part in results["parts"]] == [0, 1, 2]
    for number, part in enumerate(results["parts"]):
        assert part.keys() >= PART_KEYS
        assert part["new_examples"] == len(stream[number].train)
        assert part["learn_seconds"] > 0 and part["evaluate_seconds"] > 0
        assert [test["part"] for test in part["tests"]] == list(range(number + 1))
        for test, given in zip(part["tests"], stream, strict=False):
            assert test["count"] == len(given.test)
        for values in (*part["tests"], part["whole"], part["average"]):
            assert metrics <= values.keys()
            assert all(0 <= values[metric] <= 1 for metric in metrics)
    first, *later = results["parts"]
    assert first["replayed_examples"] == first["candidates"] == 0
    assert all(part["replayed_examples"] > 0 and part["candidates"] > 0 for part in later)
    assert all(-1 <= results[name] <= 1 for name in ("forgetting", "backward_transfer"))
    assert results["forgetting"] == later[-1]["forgetting"]


def test_a_run_is_told_part_by_part_and_epoch_by_epoch(tmp_path: Path) -> None:
    told: list[int] = []
    epochs: list[tuple[int, int]] = []
    results = run(
        ring(),
        recipe_of("links", "emr"),
        out=tmp_path,
        on_part=lambda results: told.append(len(results["parts"])),
        on_epoch=lambda part, report: epochs.append((part, report.epoch)),
    )
    assert told == [1, 2, 3]
    assert [part["epochs"] for part in results["parts"]] == [3, 3, 3]
    assert epochs == [(part, epoch) for part in range(3) for epoch in (1, 2, 3)]
    lines = (tmp_path / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    traced = [json.loads(line) for line in lines]
    assert [(line["part"], line["epoch"]) for line in traced] == epochs
    assert all(line["loss"] > 0 and 0 <= line["validation"] <= 1 for line in traced)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "results.json", "trace.jsonl", "part-0", "part-1", "part-2"}


def test_results_read_every_test_as_often_however_many_parts_follow() -> None:
    class Watched(dict[str, Any]):
        reads = 0

        def __getitem__(self, key: str) -> Any:
            self.reads += 1
            return super().__getitem__(key)

    learner = taught(learner_of("links"), 3)
    expected = results(learner, {})
    watched = [[Watched(test) for test in tests] for tests in learner.tests]
    learner.tests = [list(tests) for tests in watched]
    found = results(learner, {})
    assert len({test.reads for tests in watched for test in tests}) == 1
    assert measured(found) == measured(expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["links", "nodes"])
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
    assert measured(read(tmp_path / "run" / "results.json")) == measured(whole)
    for name in ("part-0", "part-1", "part-2"):
        for file in ("model.safetensors", "strategy.safetensors", "data.safetensors"):
            one, other = (tmp_path / place / name / file for place in ("run", "whole"))
            assert one.read_bytes() == other.read_bytes()


def test_resume_begins_where_there_is_nothing(tmp_path: Path) -> None:
    recipe = recipe_of("links")
    begun = run(ring(), recipe, out=tmp_path / "new" / "run", resume=True)
    assert measured(begun) == measured(run(ring(), recipe))


def test_a_stream_that_grew_since_is_gone_on_with(tmp_path: Path) -> None:
    recipe = recipe_of("links", "ewc")
    run(ring()[:2], recipe, out=tmp_path)
    grown = run(ring(), recipe, out=tmp_path, resume=True)
    assert measured(grown) == measured(run(ring(), recipe))
    with pytest.raises(UserError, match="longer than this stream"):
        run(ring()[:1], recipe, out=tmp_path, resume=True)


def test_a_run_from_before_a_setting_existed_is_resumed_with_its_default(tmp_path: Path) -> None:
    recipe = recipe_of("links", "dicgrl", weighting="even", shield_rank=0)
    run(ring()[:1], recipe, out=tmp_path)
    config = read(tmp_path / "config.json")
    for name in ("weighting", "shield_rank"):
        del config["settings"][name]
    del config["sha256"]
    write_sealed(tmp_path / "config.json", config)
    grown = run(ring(), recipe, out=tmp_path, resume=True)
    assert measured(grown) == measured(run(ring(), recipe))
    other = recipe_of("links", "dicgrl", weighting="even", shield_rank=4)
    with pytest.raises(UserError, match="has shield_rank=0, not 4"):
        run(ring(), other, out=tmp_path, resume=True)


def models(folder: Path) -> list[str]:
    """The parts that have a model in a run folder."""
    for name in ("model.json", "strategy.safetensors"):
        beside = {path.parent for path in folder.glob(f"part-*/{name}")}
        assert beside == {path.parent for path in folder.glob("part-*/model.safetensors")}
    return sorted(path.parent.name for path in folder.glob("part-*/model.safetensors"))


@pytest.mark.parametrize(("kind", "strategy"), [("links", "dicgrl"), ("nodes", "ewc")])
def test_the_last_model_is_enough(kind: str, strategy: str, tmp_path: Path) -> None:
    stream, recipe, out = stream_of(kind), recipe_of(kind, strategy), tmp_path / "run"
    everything = run(stream, recipe, out=tmp_path / "all")
    assert models(tmp_path / "all") == ["part-0", "part-1", "part-2"]
    for parts in (1, 2):
        run(stream[:parts], recipe, out=out, resume=True, keep="last")
        assert models(out) == [f"part-{parts - 1}"]
    again = run(stream, recipe, out=out, resume=True)  # as it was begun
    assert models(out) == ["part-2"]
    assert measured(again) == measured(everything)
    assert measured(read(out / "results.json")) == measured(everything)
    one, other = (Learner.load(place, device="cpu") for place in (out, tmp_path / "all"))
    assert one.tests == other.tests
    if kind == "links":
        assert one.predict("e1", "plus 1") == other.predict("e1", "plus 1")
    # One may change one's mind, either way.
    run(stream, recipe, out=tmp_path / "all", resume=True, keep="last")
    assert models(tmp_path / "all") == ["part-2"]
    assert Learner.load(tmp_path / "all", device="cpu").num_parts == 3


def test_facts_that_arrive_later_keep_as_the_run_did(tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    run(ring(), recipe_of("links"), out=tmp_path / "run", keep="last")
    learn_more(tmp_path / "run", facts, device="cpu")
    assert models(tmp_path / "run") == ["part-3"]
    facts.write_text("e2\tlikes\te1\n")
    learn_more(tmp_path / "run", facts, device="cpu", keep="all")
    assert models(tmp_path / "run") == ["part-3", "part-4"]
    facts.write_text("e1\tlikes\te3\n")
    results = learn_more(tmp_path / "run", facts, device="cpu")
    assert models(tmp_path / "run") == ["part-5"] and len(results["parts"]) == 6
    with pytest.raises(UserError, match="unknown keep 'lst'; did you mean 'last'"):
        learn_more(tmp_path / "run", facts, device="cpu", keep="lst")


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with the first two parts of a run."""
    run(ring()[:2], recipe_of("links"), out=tmp_path / "run")
    return tmp_path / "run"


def unchanged(folder: Path, *mentioned: str, **arguments: Any) -> None:
    """A run is refused and leaves every file as it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    given = {"stream": ring(), "recipe": recipe_of("links"), "resume": True} | arguments
    with pytest.raises(UserError) as caught:
        run(given.pop("stream"), given.pop("recipe"), out=folder, **given)
    for words in (str(folder), *mentioned):
        assert words in str(caught.value)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_not_overwritten_or_gone_on_with_by_another(begun: Path) -> None:
    unchanged(begun, "holds a run already", "--resume", resume=False)
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
    left = begun / ".part-2.0123456789abcdef"
    shutil.copytree(begun / "part-1", left)
    (begun / ".results.json.0123456789abcdef").write_text("half")
    (begun / ".mine").write_text("a user's own")
    run(ring(), recipe_of("links"), out=begun, resume=True)
    assert [path.name for path in begun.glob(".*")] == [".mine"]


def test_a_trace_is_added_to_and_replaced_only_where_lines_are_dropped(tmp_path: Path) -> None:
    path, reports = tmp_path / "trace.jsonl", [EpochReport(1, 0.5, 10.0), EpochReport(2, 0.4, 9.0)]
    RunFolder(tmp_path).append_trace(0, reports)
    file = path.stat().st_ino
    for part in (1, 2):
        RunFolder(tmp_path).append_trace(part, reports)
    assert path.stat().st_ino == file
    whole = path.read_bytes()
    RunFolder(tmp_path).append_trace(2, reports)
    assert path.stat().st_ino != file and path.read_bytes() == whole
    parts = [json.loads(line)["part"] for line in whole.splitlines()]
    assert parts == [0, 0, 1, 1, 2, 2]


def test_a_trace_that_was_not_written_to_its_end_is_gone_on_with(tmp_path: Path) -> None:
    path, reports = tmp_path / "trace.jsonl", [EpochReport(1, 0.5, 10.0), EpochReport(2, 0.4, 9.0)]
    RunFolder(tmp_path).append_trace(0, reports)
    saved = len(path.read_bytes())
    RunFolder(tmp_path).append_trace(1, reports)
    whole = path.read_bytes()
    for length in range(saved, len(whole)):
        path.write_bytes(whole[:length])
        RunFolder(tmp_path).check_new(resume=True)
        RunFolder(tmp_path).append_trace(1, reports)
        assert path.read_bytes() == whole


def test_a_damaged_trace_is_found_before_anything_is_learned(begun: Path) -> None:
    path = begun / "trace.jsonl"
    whole = path.read_bytes()
    for content in (b"\xff", b"[]\n", b'{"part": 0', whole[:-5] + b"\x00" + whole[-4:]):
        path.write_bytes(content)
        unchanged(begun, "trace.jsonl", "damaged")
    path.unlink()
    run(ring(), recipe_of("links"), out=begun, resume=True)


def test_facts_are_not_learned_beside_a_damaged_trace(begun: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    (begun / "trace.jsonl").write_text('{"part": 0')
    epochs: list[int] = []
    with pytest.raises(DataError, match=r"trace\.jsonl: damaged"):
        learn_more(begun, facts, device="cpu", on_epoch=lambda part, _: epochs.append(part))
    assert not epochs and not (begun / "part-2").exists()


@pytest.mark.parametrize("resume", [True, False])
def test_parts_without_their_configuration_are_left_as_they_are(begun: Path, resume: bool) -> None:
    (begun / "config.json").unlink()
    epochs: list[int] = []
    unchanged(
        begun,
        "config.json is missing",
        resume=resume,
        on_epoch=lambda part, _: epochs.append(part),
    )
    assert not epochs


def test_the_newest_part_does_not_get_lost_in_silence(begun: Path, tmp_path: Path) -> None:
    """A part is written before its results: whoever is killed leaves no such folder."""
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    whole = run(ring()[:2], recipe_of("links"))
    shutil.rmtree(begun / "part-1")
    missing = r"part-1: damaged run: this part is missing, results\.json knows 2"
    for use in (
        lambda: Learner.load(begun, device="cpu"),
        lambda: RunFolder(begun).overview(),
        lambda: RunFolder(begun).results(),
        lambda: learn_more(begun, facts, device="cpu"),
    ):
        with pytest.raises(DataError, match=missing):
            use()
    unchanged(begun, "part-1", "missing")
    (begun / "results.json").unlink()  # as the message says
    assert Learner.load(begun, device="cpu").num_parts == 1
    again = run(ring()[:2], recipe_of("links"), out=begun, resume=True)
    assert measured(again) == measured(whole)


@pytest.mark.parametrize("keep", ["all", "last"])
def test_results_that_know_less_than_there_is_are_no_damage(begun: Path, keep: str) -> None:
    """As where a process is killed after a part and before its results."""
    before = (begun / "results.json").read_bytes()
    run(ring(), recipe_of("links"), out=begun, resume=True, keep=keep)
    for content in (before, b"{", b'{"parts": 3}'):
        (begun / "results.json").write_bytes(content)
        assert Learner.load(begun, device="cpu").num_parts == 3
    (begun / "results.json").unlink()
    assert Learner.load(begun, device="cpu").num_parts == 3


def test_damaged_parts_are_not_gone_on_with(begun: Path) -> None:
    path = begun / "part-1" / "data.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    with pytest.raises(DataError, match="checksum"):
        run(ring(), recipe_of("links"), out=begun, resume=True)


@pytest.mark.parametrize("strategy", ["lower", "dicgrl"])
def test_streams_with_little_in_them(strategy: str, tmp_path: Path) -> None:
    known = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]
    for number, parts in enumerate(
        [[known], [known, known], [known, [], [("d", "r", "a")]], [known, [known[0]]]]
    ):
        stream = KnowledgeStream.from_labels("little", parts)
        out = tmp_path / str(number)
        results = run(stream, recipe_of("links", strategy), out=out)
        assert len(results["parts"]) == len(parts)
        assert results["parts"][-1]["tests"] == [] and results["forgetting"] is None
        again = run(stream, recipe_of("links", strategy), out=out, resume=True)
        assert measured(again) == measured(results)


def test_test_sets_may_come_late_or_not_with_every_part() -> None:
    with_tests = KnowledgeStream.from_labels(
        "late", [[(f"e{i}", "r", f"e{i + 1}") for i in range(20)]], test=0.3
    )[0]
    bare = KnowledgeStream.from_labels("late", [[("e0", "r", "e2"), ("x", "r", "y")]])[0]
    stream = KnowledgeStream("late", (bare, with_tests, bare))
    results = run(stream, recipe_of("links"))
    assert [len(part["tests"]) for part in results["parts"]] == [0, 1, 1]
    last = results["parts"][-1]
    assert last["tests"][0]["part"] == 1 and last["whole"] == pytest.approx(last["average"])
    assert results["forgetting"] is not None and results["retention"] is None


@pytest.mark.parametrize("kind", ["links", "nodes"])
@pytest.mark.parametrize("strategy", ["frozen", "emr", "gem", "upper"])
def test_a_run_that_takes_over_the_first_part_gives_the_same_numbers(
    tmp_path: Path, kind: str, strategy: str
) -> None:
    stream, first = stream_of(kind), tmp_path / "first"
    run(stream, recipe_of(kind, "lower"), first=first)
    recipe = recipe_of(kind, strategy, **({"budget": "3"} if strategy in ("emr", "gem") else {}))
    shared = run(stream, recipe, first=first, out=tmp_path / "run")
    assert measured(shared) == measured(run(stream, recipe))
    # What was taken over is in the run's own folder: it can be resumed and loaded.
    again = run(stream, recipe, out=tmp_path / "run", resume=True)
    assert measured(again) == measured(shared)


def test_ewc_takes_over_a_first_part_and_leaves_none(tmp_path: Path) -> None:
    stream, first = ring(), tmp_path / "first"
    run(stream, recipe_of("links", "ewc"), first=first)
    assert not first.exists()  # its Fisher information lies in the tables
    run(stream, recipe_of("links", "lower"), first=first)
    taken = run(stream, recipe_of("links", "ewc", strength=1e6), first=first)
    lower = run(stream, recipe_of("links", "lower"))
    assert taken["parts"][0]["tests"] == lower["parts"][0]["tests"]
    assert taken["parts"][-1]["tests"] != lower["parts"][-1]["tests"]


def test_a_first_part_of_other_settings_is_not_taken_over(tmp_path: Path) -> None:
    run(ring(), recipe_of("links", "lower"), first=tmp_path / "first")
    with pytest.raises(UserError, match="cannot be shared: lr"):
        run(ring(), recipe_of("links", "emr", lr=0.5), first=tmp_path / "first")


def test_a_first_part_of_another_seed_or_stream_is_not_taken_over(tmp_path: Path) -> None:
    stream, recipe, first = ring(), recipe_of("links", "lower"), tmp_path / "first"
    run(stream, recipe, first=first)
    with pytest.raises(UserError, match="learned with seed 0"):
        run(stream, recipe, first=first, seed=1)
    shorter = replace(stream[0], train=stream[0].train[:-1])
    other = KnowledgeStream(stream.name, [shorter, *list(stream)[1:]])
    with pytest.raises(UserError, match="part 0 of the run there is not that of this stream"):
        run(other, recipe, first=first)


def test_results_that_fell_behind_are_told_and_written_anew(tmp_path: Path) -> None:
    """As where a process is killed in between, or a program went on with the folder."""
    out, facts = tmp_path / "run", tmp_path / "facts.tsv"
    run(ring()[:1], recipe_of("links", "lower"), out=out)
    learner = Learner.load(out, device="cpu")
    learner.learn(ring()[1])
    learner.evaluate()
    learner.save(out)
    with pytest.raises(DataError, match="of 1 parts where the run has 2"):
        RunFolder(out).results()
    known = ring()[0].train[:1]
    labels = (ring().entities.labels(known[:, 0]), ring().relations.labels(known[:, 1]))
    tails = ring().entities.labels(known[:, 2])
    facts.write_text("\t".join([labels[0][0], labels[1][0], tails[0]]) + "\n")
    learn_more(out, facts, device="cpu")
    assert len(RunFolder(out).results()["parts"]) == 2
