"""Versions: each change has a number, can be asked, named, restored, copied, and checked."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from dicgrl import Learner
from dicgrl.errors import DataError, UserError
from dicgrl.jobs.export import export_since
from dicgrl.jobs.results import results_of
from dicgrl.jobs.versions import difference, verified
from dicgrl.store.results import MOST_PARTS
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.tensors import Delta, changed_rows, combined, delta_of
from dicgrl.store.writer import LONGEST_CHAIN
from tests.learner.helpers import assert_same
from tests.runs import read_json
from tests.stores import change_config, edited, kept, same_bits, stored, tensors_of
from tests.tiny import learner_of, ring, stream_of, taught


@pytest.fixture(scope="module", params=["links", "nodes"])
def history(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Learner]]:
    """A run of three versions, and the learner as it was at each of them."""
    folder = tmp_path_factory.mktemp("history") / "run"
    states = []
    for parts in (1, 2, 3):
        learner = taught(learner_of(request.param, "ewc"), parts)
        states.append(learner)
    learner = learner_of(request.param, "ewc")
    for parts in (1, 2, 3):
        taught(learner, parts).save(folder, message=f"part {parts - 1}")
    return folder, states


@pytest.fixture
def run(history: tuple[Path, list[Learner]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(history[0], tmp_path / "run"))


def test_every_version_is_what_it_was(history: tuple[Path, list[Learner]]) -> None:
    folder, states = history
    for number, learner in enumerate(states, 1):
        found = Learner.load(folder, at=number, device="cpu")
        assert_same(found, learner)
        assert found.version == number
        (arrays, _), (theirs, _) = found.ask.arrays(), learner.ask.arrays()
        assert same_bits(arrays, theirs)
    for wrong in (0, 4, -1, "x", "4"):
        with pytest.raises(UserError):
            Learner.load(folder, at=wrong, device="cpu")


def test_the_log_says_what_became_of_it(history: tuple[Path, list[Learner]]) -> None:
    found = RunFolder(history[0]).log()
    assert [entry["version"] for entry in found] == [1, 2, 3]
    assert [entry["message"] for entry in found] == ["part 0", "part 1", "part 2"]
    assert {entry["kind"] for entry in found} == {"learn"}
    assert all(entry["time"] and entry["model"] for entry in found)
    parts = history[1][-1].trainer.taken
    assert [entry["counts"]["facts"] for entry in found] == [part.facts for part in parts]


def test_a_version_is_restored_and_nothing_is_lost(run: Path) -> None:
    first, newest = (Learner.load(run, at=at, device="cpu") for at in (1, 3))
    assert RunFolder(run).restore(1, "back") == 4
    again = Learner.load(run, device="cpu")
    assert_same(again, first)
    assert again.version == 4
    assert_same(Learner.load(run, at=3, device="cpu"), newest)
    taught(again, 2).save(run)
    log = RunFolder(run).log()
    assert [entry["kind"] for entry in log] == ["learn"] * 3 + ["restore", "learn"]
    assert [entry["parent"] for entry in log] == [0, 1, 2, 1, 4]
    assert_same(Learner.load(run, device="cpu"), Learner.load(run, at=2, device="cpu"))
    assert verified(run).clean
    with pytest.raises(UserError, match="newest already"):
        RunFolder(run).restore(5)
    assert len(RunFolder(run).overview()["parts"]) == 2
    with pytest.raises(UserError, match="an earlier version was restored"):
        newest.save(run)


def test_an_earlier_version_does_not_go_on(tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1)
    learner.save(tmp_path / "run")
    taught(learner, 2).save(tmp_path / "run")
    earlier = Learner.load(tmp_path / "run", at=1, device="cpu")
    earlier.learn(ring()[2])
    with pytest.raises(UserError, match="another part 1"):
        earlier.save(tmp_path / "run")
    assert RunFolder(tmp_path / "run").num_parts() == 2


def test_a_tag_names_a_version_and_keeps_its_model(run: Path) -> None:
    place = RunFolder(run)
    second = Learner.load(run, at=2, device="cpu")
    assert place.tag("release/1.0", 2) == 2 and place.tag("newest") == 3
    assert place.log()[1]["tags"] == ["release/1.0"]
    place.compact(keep="last")
    assert kept(run) == [2, 3]
    assert_same(Learner.load(run, at="release/1.0", device="cpu"), second)
    for wrong in ("7", "", "a b", "x" * 101, "a\n"):
        with pytest.raises(UserError, match="a tag has letters"):
            place.tag(wrong, 2)
    with pytest.raises(UserError, match="is version 2; --delete it first"):
        place.tag("release/1.0", 3)
    with pytest.raises(UserError, match="was not kept"):
        place.tag("first", 1)
    with pytest.raises(UserError, match=r"no tag 'other'; tags: newest, release/1\.0"):
        place.untag("other")
    assert place.untag("release/1.0") == 2
    place.compact(keep="last")
    assert kept(run) == [3] and verified(run).clean
    with pytest.raises(UserError, match="neither a version nor a tag; tags: newest"):
        Learner.load(run, at="release/1.0", device="cpu")


def test_compacting_changes_no_version(run: Path) -> None:
    before = {number: tensors_of(run, number) for number in kept(run)}
    files = {path.name for path in (run / "tensors").iterdir()}
    RunFolder(run).compact()
    assert {path.name for path in (run / "tensors").iterdir()} == files  # all of them are needed
    assert kept(run) == [1, 2, 3]
    for number, tensors in before.items():
        assert same_bits(tensors_of(run, number), tensors)
    learner = Learner.load(run, device="cpu")
    RunFolder(run).compact(keep="last")
    assert kept(run) == [3] and len(list((run / "tensors").iterdir())) <= 2
    with stored(run) as store:
        assert len(store.chain(3)) == 1
    assert_same(Learner.load(run, device="cpu"), learner)


def test_a_backup_is_the_run_at_one_moment(run: Path, tmp_path: Path) -> None:
    assert RunFolder(run).backup(tmp_path / "copy") == 3
    assert verified(tmp_path / "copy").clean
    for number in (1, 3):
        one, other = (Learner.load(p, at=number, device="cpu") for p in (run, tmp_path / "copy"))
        assert_same(one, other)
    with pytest.raises(UserError, match="already exists"):
        RunFolder(run).backup(tmp_path / "copy")


def put_back(run: Path, copy: Path) -> None:
    shutil.rmtree(run)
    shutil.copytree(copy, run)


def test_a_reader_notices_that_a_backup_was_put_back(run: Path, tmp_path: Path) -> None:
    """Numbers that were used since are used again, for other versions."""
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    RunFolder(run).restore(1)
    reader = Learner.load(run, device="cpu")
    put_back(run, copy)
    assert reader.refresh() and reader.version == 3 and not reader.refresh()
    assert_same(reader, Learner.load(run, device="cpu"))
    RunFolder(run).restore(1)
    assert reader.refresh() and reader.version == 4
    RunFolder(copy).restore(2)
    put_back(run, copy)
    assert reader.refresh() and reader.version == 4
    assert_same(reader, Learner.load(run, device="cpu"))


def test_nobody_goes_on_with_another_copy_of_the_run(tmp_path: Path) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    taught(learner_of("links"), 1, evaluate=False).save(run)
    shutil.copytree(run, copy)
    for place, relation in ((run, "plus 1"), (copy, "plus 2")):
        learner = Learner.load(place, device="cpu")
        learner.learn([("neu", relation, "e1")])
        learner.save(place)
    reader, writer = (Learner.load(run, device="cpu") for _ in range(2))
    learner = Learner.load(copy, device="cpu")
    put_back(run, copy)
    writer.learn([("later", "plus 1", "e2")])
    with pytest.raises(UserError, match="another part 1 was learned"):
        writer.save(run)
    learner.learn([("later", "plus 1", "e2")])
    learner.save(run)
    assert reader.refresh() and reader.version == 3
    assert_same(reader, Learner.load(run, device="cpu"))
    assert [answer.label for answer in reader.predict("neu", "plus 2", k=99) if answer.known]
    assert verified(run).clean


def test_a_backup_is_taken_while_others_write(tmp_path: Path) -> None:
    """Each commit rewrites the model, so that files come and go all the time."""
    learner = taught(learner_of("links", "upper"), 1, evaluate=False)
    learner.save(tmp_path / "run", keep="last")
    ended = threading.Event()

    def copy() -> None:
        for number in range(8):
            RunFolder(tmp_path / "run").backup(tmp_path / f"copy {number}")
        ended.set()

    thread = threading.Thread(target=copy)
    thread.start()
    for number in range(200):
        learner.learn([(f"x{number}", "plus 1", "e1")])
        learner.save(tmp_path / "run", keep="last")
        if ended.is_set():
            break
    thread.join()
    assert ended.is_set()
    for number in range(8):
        assert verified(tmp_path / f"copy {number}").clean


def test_what_is_damaged_is_named_and_what_is_left(run: Path) -> None:
    assert verified(run).as_dict() == {
        "clean": True,
        "damage": [],
        "versions": 3,
        "restorable": [1, 2, 3],
        "leftovers": [],
    }
    (run / "tensors" / "9.base.0123456789abcdef.safetensors").write_text("of nobody")
    assert verified(run).clean and verified(run).leftovers
    with stored(run) as store:
        last = store.chain(3)[-1].name
    path = run / "tensors" / last
    content = bytearray(path.read_bytes())
    content[-3] ^= 16
    path.write_bytes(content)
    found = verified(run)
    assert not found.clean and 3 not in found.restorable and 1 in found.restorable
    assert any(last in line for line in found.damage)
    assert RunFolder(run).restore(1) == 4  # as it says
    assert Learner.load(run, device="cpu").num_parts == 1


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE arrays SET data = zeroblob(8) WHERE version = 2 AND name = 'train'",
        "DELETE FROM arrays WHERE version = 2",
        "UPDATE versions SET message = 'another' WHERE number = 2",
        "DELETE FROM versions WHERE number = 3",
        "DELETE FROM files",
        "UPDATE models SET source = 7",
        "DELETE FROM about",
        "INSERT INTO tags VALUES ('x', 1, 'y')",
        "DELETE FROM models WHERE version = 3",
        "CREATE TABLE more (x)",
    ],
)
def test_damage_in_the_database_is_found(run: Path, query: str) -> None:
    with edited(run) as database:
        database.connection.execute(query)
    found = verified(run)
    assert not found.clean and all("\n" not in line for line in found.damage)
    if "version = 2" in query:
        assert found.restorable == [1]


def test_a_damaged_tag_keeps_nobody_from_a_version_by_its_number(run: Path) -> None:
    RunFolder(run).tag("good", 2)
    RunFolder(run).tag("1_0", 1)  # not 10
    assert Learner.load(run, at="1_0", device="cpu").version == 1
    with edited(run) as database:
        database.connection.execute("UPDATE tags SET sha256 = '' WHERE name = 'good'")
    assert not verified(run).clean
    for at in verified(run).restorable:
        assert Learner.load(run, at=at, device="cpu").version == at
        assert RunFolder(run).line(str(at))
    with pytest.raises(DataError, match="tags"):
        Learner.load(run, at="good", device="cpu")
    RunFolder(run).compact("last")  # which model the tag keeps is not known: none goes
    assert verified(run).restorable == [1, 2, 3]
    assert RunFolder(run).restore(2) == 4
    assert Learner.load(run, device="cpu").version == 4


def test_a_tag_that_is_lost_is_missed(run: Path) -> None:
    for name, number in (("one", 1), ("two", 2), ("three", 3)):
        RunFolder(run).tag(name, number)
    RunFolder(run).untag("three")
    RunFolder(run).tag("two", 2)
    RunFolder(run).restore(1)
    assert verified(run).clean
    with edited(run) as database:
        database.connection.execute("DELETE FROM tags WHERE name = 'two'")
    found = verified(run)
    assert found.damage == ["tags: 1 where there were 2"]
    assert found.restorable == [1, 2, 3, 4]


def test_tags_of_a_run_that_did_not_count_them_are_no_damage(run: Path) -> None:
    RunFolder(run).tag("one", 1)
    change_config(run, lambda config: config.pop("tags"))
    assert verified(run).clean
    RunFolder(run).tag("two", 2)
    assert verified(run).clean and RunFolder(run).config()["tags"] == 2


def test_what_cannot_be_read_is_not_called_restorable(run: Path) -> None:
    with RunFolder(run).writing() as stored_run:
        stored_run.database.insert("names", version=1, names='{"e1": "one"}')
    assert verified(run).restorable == [1, 2, 3]
    with edited(run) as database:
        database.connection.execute("UPDATE names SET sha256 = ''")
    found = verified(run)
    assert not found.clean and found.restorable == []
    with pytest.raises(DataError):
        Learner.load(run, at=1, device="cpu")


def test_a_configuration_that_is_no_json_is_damage_for_all(run: Path) -> None:
    with edited(run) as database:
        database.connection.execute("UPDATE about SET config = '{x'")
    for read in (RunFolder(run).mark, RunFolder(run).pending, RunFolder(run).log):
        with pytest.raises(DataError, match="damaged run"):
            read()
    with pytest.raises(DataError, match="damaged run"), RunFolder(run).pending_writer():
        pass


def test_a_difference_says_what_changed(history: tuple[Path, list[Learner]]) -> None:
    folder, states = history
    found = difference(folder, 1, 3, k=1000)
    assert (found["from"], found["to"]) == (1, 3)
    one, three = states[0], states[2]
    if three.trainer.metric == "accuracy":
        added = len(three.trainer.graph.edges) - len(one.trainer.graph.edges)
        known = [int((x.trainer.graph.labels >= 0).sum()) for x in (one, three)]
        added += known[1] - known[0]
        names = ("nodes", "classes")
    else:
        facts = [
            {tuple(row) for split in ("train", "valid", "test") for row in g.rows(split).tolist()}
            for g in (one.trainer.graph, three.trainer.graph)
        ]
        labels = three.trainer.graph.entities.labels, three.trainer.graph.relations.labels
        expected = {
            (labels[0]([h])[0], labels[1]([r])[0], labels[0]([t])[0])
            for h, r, t in facts[1] - facts[0]
        }
        assert {tuple(fact) for fact in found["facts"]["added"]["some"]} == expected
        added, names = len(expected), ("entities", "relations")
    assert found["facts"]["added"]["count"] == added > 0
    assert found["facts"]["removed"]["count"] == 0
    (mine, _), (theirs, vocabularies) = one.ask.arrays(), three.ask.arrays()
    for name in names:
        old = len(mine[name])
        moved = (theirs[name][:old] - mine[name]).flatten(1).double().norm(dim=1)
        told = found["vectors"][name]
        assert told["changed"] == int((theirs[name][:old] != mine[name]).flatten(1).any(1).sum())
        assert told["new"] == len(theirs[name]) - old == found["labels"][name]["added"]
        assert told["total"] == pytest.approx(float(moved.sum()))
        if told["changed"]:
            farthest = vocabularies[name].labels([int(moved.argmax())])[0]
            assert told["movers"][0]["label"] == farthest
    back = difference(folder, 3, 1, k=0)
    assert back["facts"]["removed"] == {"count": added, "some": [], "dates": []}
    same = difference(folder, 2, 2)
    assert not same["facts"]["added"]["count"] and not same["facts"]["removed"]["count"]
    assert not any(rows["changed"] or rows["new"] for rows in same["vectors"].values())


def test_changed_rows_are_all_that_an_index_needs(
    history: tuple[Path, list[Learner]], tmp_path: Path
) -> None:
    folder, states = history
    export_since(folder, tmp_path / "changed", 1)
    (mine, _), (theirs, vocabularies) = states[0].ask.arrays(), states[2].ask.arrays()
    for name, vocabulary in vocabularies.items():
        ids = np.load(tmp_path / "changed" / f"{name}_ids.npy")
        rows = np.load(tmp_path / "changed" / f"{name}.npy")
        index = torch.zeros_like(theirs[name])
        index[: len(mine[name])] = mine[name]
        index[ids] = torch.from_numpy(rows)
        assert torch.equal(index, theirs[name])
        lines = (tmp_path / "changed" / f"{name}.tsv").read_text().splitlines()
        labels = vocabulary.labels(ids)
        assert [line.split("\t")[:2] for line in lines] == [
            [str(i), label] for i, label in zip(ids, labels, strict=True)
        ]
    with pytest.raises(UserError, match="already exists"):
        export_since(folder, tmp_path / "changed", 1)
    export_since(folder, tmp_path / "none", 3)
    assert not len(np.load(tmp_path / "none" / f"{name}_ids.npy"))


def test_an_index_loses_what_no_fact_speaks_of(tmp_path: Path) -> None:
    """And gets it again with the next fact about it, whether its row changed or not."""
    learner = learner_of("links", "lower")
    learner.learn([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a"), ("d", "s", "a")])
    learner.save(tmp_path / "run")
    learner.forget([("d", "s", "a")])
    learner.save(tmp_path / "run")
    learner.merge("a", "b")
    learner.save(tmp_path / "run")
    learner.learn([("d", "r", "a")])
    learner.save(tmp_path / "run")

    def told(since: int, at: int, file: str) -> list[str]:
        place = tmp_path / f"{since} {at}"
        if not place.exists():
            export_since(tmp_path / "run", place, since, at)
        lines = (place / file).read_text().splitlines() if (place / file).exists() else []
        return [line.split("\t")[-1] for line in lines]

    assert told(1, 2, "entities.removed.tsv") == ["d"]
    assert told(1, 2, "relations.removed.tsv") == ["s"]
    assert told(2, 3, "entities.removed.tsv") == ["b"]
    assert "d" in told(3, 4, "entities.tsv") and told(3, 4, "entities.removed.tsv") == []
    for since, at in ((1, 2), (2, 3)):
        assert not {*told(since, at, "entities.tsv")} & {"d" if at == 2 else "b"}


def test_deltas_are_written_until_they_outgrow_the_base(tmp_path: Path) -> None:
    """Few rows of many change: a base is written at times, and no version is another for it."""
    learner = learner_of("links", "frozen")
    facts = [(f"a{i}", f"r{i % 3}", f"b{i % 17}") for i in range(400)]
    learner.learn(facts)
    learner.save(tmp_path)
    expected = {1: tensors_of(tmp_path, 1)}
    for number in range(2, LONGEST_CHAIN + 5):
        learner.learn([(f"new {number}", "r1", "b3")])
        learner.save(tmp_path)
        expected[number] = learner.trainer.model.entities.rows.clone()  # type: ignore[assignment]
    with stored(tmp_path) as store:
        files = store.files()
    bases = [file.version for file in files if not file.parent]
    assert bases[0] == 1 and 1 < len(bases) < 4
    sizes = {file.version: file.bytes for file in files if file.parent}
    assert max(sizes.values()) < files[0].bytes / 3
    for number in range(2, LONGEST_CHAIN + 5):
        rows = tensors_of(tmp_path, number)["table/entities/rows"]
        assert torch.equal(rows, expected[number])  # type: ignore[arg-type]


@given(
    some.lists(some.floats(width=32), min_size=1, max_size=30),
    some.lists(some.floats(width=32), max_size=5),
    some.data(),
)
def test_deltas_make_the_same_bits_again(
    values: list[float], more: list[float], data: some.DataObject
) -> None:
    before = torch.tensor(values)[:, None].repeat(1, 3)
    now = torch.cat([before, torch.tensor(more)[:, None].repeat(1, 3)])
    for place in data.draw(some.lists(some.integers(0, len(values) - 1), max_size=4)):
        now[place, 1] = data.draw(some.floats(width=32))
    steps = {"table": before, "number": torch.tensor(3), "gone": before[:1]}
    then = {"table": now, "number": torch.tensor(4), "come": now[:0]}
    delta = delta_of(steps, then)
    assert delta.removed == ["gone"]
    assert same_bits(combined([Delta(dict(steps), []), delta]), then)
    assert set(changed_rows(before, now).tolist()) >= set(range(len(before), len(now)))


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ([0, 0], [[1.0], [1.0]]),
        ([1, 0], [[1.0], [1.0]]),
        ([-1], [[1.0]]),
        ([5], [[1.0]]),
        ([10**15], [[1.0]]),
        ([0], [[1.0, 2.0]]),
        ([0], [[1.0], [1.0]]),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: list[int], values: list[list[float]]) -> None:
    delta = {"x|rows": torch.tensor(rows), "x|values": torch.tensor(values)}
    with pytest.raises(ValueError, match="do not fit"):
        combined([Delta({"x": torch.zeros(3, 1)}, []), Delta(delta, [])])


def test_a_run_without_versions_has_no_log(tmp_path: Path) -> None:
    learner_of("links").save(tmp_path / "run")
    assert RunFolder(tmp_path / "run").log() == []
    assert verified(tmp_path / "run").clean
    with pytest.raises(DataError, match="no run here"):
        RunFolder(tmp_path / "nothing").log()
    with pytest.raises(UserError, match="there is no version 1; the run has none"):
        Learner.load(tmp_path / "run", at=1, device="cpu")


def test_forgetting_and_the_like_are_versions_too(tmp_path: Path) -> None:
    learner = taught(learner_of("links", "fresh"), 2)
    learner.save(tmp_path)
    fact = ring()[0].train[0]
    labels = ring().entities.labels(fact[[0, 2]]), ring().relations.labels(fact[[1]])
    learner.forget([(labels[0][0], labels[1][0], labels[0][1])])
    learner.save(tmp_path, message="it was wrong")
    entry = RunFolder(tmp_path).log()[-1]
    assert (entry["version"], entry["kind"], entry["message"]) == (3, "forget", "it was wrong")
    assert_same(Learner.load(tmp_path, device="cpu"), learner)
    found = difference(tmp_path, 2, 3)
    assert found["facts"]["removed"]["some"] == [[labels[0][0], labels[1][0], labels[0][1]]]
    assert not found["facts"]["added"]["count"]
    assert verified(tmp_path).clean


def test_results_are_bounded_and_the_store_has_all(tmp_path: Path) -> None:
    """As a run has them that learns every night for months."""
    learner = learner_of("links", "frozen")
    learner.learn([(f"a{i}", "r", f"b{i % 5}") for i in range(20)])
    about = {"dataset": "nightly", "task": "link-prediction", "recipe": "default", "published": {}}
    for number in range(MOST_PARTS + 3):
        learner.save(tmp_path, results=results_of(learner, about), about=about)
        learner.learn([(f"new {number}", "r", "b1")])
    written = read_json(tmp_path / "results.json")
    assert len(written["parts"]) == MOST_PARTS and written["earlier_parts"] == 3
    assert [part["part"] for part in written["parts"]] == list(range(3, MOST_PARTS + 3))
    assert RunFolder(tmp_path).results() == written
    assert len(RunFolder(tmp_path).overview()["parts"]) == MOST_PARTS + 3


def test_results_do_not_grow_with_the_square_of_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each part all test sets are measured: a long life shows fewer parts."""
    monkeypatch.setattr("dicgrl.store.results.MOST_TESTS", 4)
    learner = learner_of("links")
    about = {"dataset": "ring", "task": "link-prediction", "recipe": "default", "published": {}}
    for number, part in enumerate(stream_of("links")):
        learner.learn(part)
        learner.evaluate()
        learner.save(tmp_path, results=results_of(learner, about), about=about)
        written = read_json(tmp_path / "results.json")
        tests = [len(each["tests"]) for each in written["parts"]]
        assert tests == list(range(1, number + 2))[-len(tests) :]
        assert len(tests) == 1 or sum(tests) <= 4
        assert written.get("earlier_parts", 0) == number + 1 - len(tests)
        assert RunFolder(tmp_path).results() == written and RunFolder(tmp_path).is_measured()
    assert written["earlier_parts"]
