"""Maps of a run's versions: stored, continued, found again."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dicgrl.cli import main
from dicgrl.errors import DataError, UserError
from dicgrl.jobs.export import export_run
from dicgrl.jobs.maps import make_maps, map_of, places_of, stored_map, write_places
from dicgrl.learner import Learner
from dicgrl.store.maps import StoredMap, read_map, read_maps, write_map
from dicgrl.store.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore::dicgrl.errors.ModelWarning")


def facts(first: int, last: int) -> list[tuple[str, str, str]]:
    """Films, each with a genre of five and a director of seven."""
    return [
        (f"film {i}", relation, f"{relation} {i % count}")
        for i in range(first, last)
        for relation, count in (("genre", 5), ("director", 7))
    ]


def grown(folder: Path, parts: int = 3) -> Learner:
    learner = Learner("transe", "lower", dim=8, epochs=3, device="cpu")
    for part in range(parts):
        learner.learn(facts(20 * part, 20 * part + 20))
        learner.save(folder)
    return learner


def test_each_version_gets_a_map_that_goes_on_from_the_one_before(tmp_path: Path) -> None:
    learner = grown(tmp_path / "run")
    made = list(make_maps(tmp_path / "run"))
    assert [each.version for each in made] == [1, 2, 3]
    assert [each.about["after"] for each in made] == [0, 1, 2]
    assert [each.about["shown"] for each in made] == [32, 52, 72]
    assert [each.about["came"] for each in made] == [32, 20, 20]
    assert list(make_maps(tmp_path / "run")) == []
    stored = stored_map(tmp_path / "run")
    assert stored is not None
    assert np.array_equal(stored.points, made[-1].points)
    assert np.array_equal(map_of(learner), map_of(Learner.load(tmp_path / "run", device="cpu")))
    assert RunFolder(tmp_path / "run").verify().clean


def test_a_new_version_continues_what_is_stored(tmp_path: Path) -> None:
    learner = grown(tmp_path / "run", 2)
    list(make_maps(tmp_path / "run"))
    learner.learn(facts(40, 50))
    learner.save(tmp_path / "run")
    (made,) = make_maps(tmp_path / "run")
    assert (made.version, made.about["after"], made.about["came"]) == (3, 2, 10)
    before = stored_map(tmp_path / "run", 2)
    assert before is not None
    again = map_of(learner, before.points, Learner.load(tmp_path / "run", at=2).ask.vectors()[1])
    assert np.array_equal(made.points, again)


def test_what_is_forgotten_is_on_the_map_no_more(tmp_path: Path) -> None:
    learner = grown(tmp_path / "run", 1)
    learner.forget(facts(3, 4))
    learner.save(tmp_path / "run")
    (_, made) = make_maps(tmp_path / "run")
    gone = learner.trainer.graph.entities.ids(["film 3"]).tolist()
    assert np.flatnonzero(np.isnan(made.points[:, 0])).tolist() == gone


def test_versions_without_a_model_are_left_out(tmp_path: Path) -> None:
    learner = grown(tmp_path / "run", 1)
    for part in range(1, 4):
        learner.learn(facts(20 * part, 20 * part + 20))
        learner.save(tmp_path / "run", keep="2")
    assert [each.version for each in make_maps(tmp_path / "run")] == [3, 4]
    with pytest.raises(UserError, match="the model of version 1 was not kept"):
        list(make_maps(tmp_path / "run", 1))


def test_a_restored_version_has_the_map_of_the_earlier_one(tmp_path: Path) -> None:
    grown(tmp_path / "run", 2)
    list(make_maps(tmp_path / "run"))
    RunFolder(tmp_path / "run").restore(1)
    stored = stored_map(tmp_path / "run")
    assert stored is not None
    assert stored.version == 1


def test_a_map_is_given_while_another_process_writes(tmp_path: Path) -> None:
    grown(tmp_path / "run", 1)
    run = RunFolder(tmp_path / "run")
    with run.locked(), ThreadPoolExecutor(1) as other:
        (made,) = other.submit(lambda: list(make_maps(tmp_path / "run"))).result()
    assert made.about["shown"] == 32
    assert read_maps(run) == {}


def test_a_damaged_map_is_refused_and_found_by_verify(tmp_path: Path) -> None:
    grown(tmp_path / "run", 1)
    run = RunFolder(tmp_path / "run")
    write_map(run, StoredMap(1, {}, np.zeros((4, 2), dtype=np.float32)))
    stored = read_map(run, 1)
    assert stored is not None
    assert stored.points.tolist() == [[0.0, 0.0]] * 4
    with run.writing() as writing:
        writing.database.connection.execute("UPDATE maps SET data = x'00'")
    with pytest.raises(DataError, match="a row of maps has another checksum"):
        read_map(run, 1)
    assert not run.verify().clean


def test_a_run_that_learned_nothing_has_no_map(tmp_path: Path) -> None:
    Learner("transe", "lower", dim=4, device="cpu").save(tmp_path / "run")
    with pytest.raises(UserError, match="nothing was learned yet"):
        list(make_maps(tmp_path / "run"))
    assert stored_map(tmp_path / "run") is None


def test_places_are_exported_by_id_and_as_lines(tmp_path: Path) -> None:
    learner = grown(tmp_path / "run", 1)
    assert places_of(tmp_path / "run")("entities", np.array([0])) is None
    with pytest.raises(UserError, match="there is no map"):
        write_places(tmp_path / "run", tmp_path / "map.tsv")
    learner.forget(facts(3, 4))
    learner.save(tmp_path / "run")
    made = list(make_maps(tmp_path / "run"))[-1]
    places = places_of(tmp_path / "run")("entities", np.array([5, 2, 999]))
    assert places is not None
    assert np.array_equal(places[:2], made.points[[5, 2]])
    assert np.isnan(places[2]).all()
    assert places_of(tmp_path / "run")("relations", np.array([0])) is None
    assert write_places(tmp_path / "run", tmp_path / "map.tsv") == 31  # one is forgotten
    head, first, *rest = (tmp_path / "map.tsv").read_text().splitlines()
    assert head.split("\t") == ["label", "name", "x", "y"]
    label, name, x, y = first.split("\t")
    number = learner.trainer.graph.entities.ids([label])[0]
    assert (float(x), float(y)) == pytest.approx(made.points[number].tolist(), rel=1e-4)
    assert len(rest) == 30 and name == label
    with pytest.raises(UserError, match="already exists"):
        write_places(tmp_path / "run", tmp_path / "map.tsv")


def test_the_command_tells_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grown(tmp_path / "run", 2)
    monkeypatch.setattr("sys.argv", ["dicgrl", "map", str(tmp_path / "run"), "--json"])
    with contextlib.suppress(SystemExit):
        main()
    told = json.loads(capsys.readouterr().out)
    assert [(each["version"], each["came"]) for each in told] == [(1, 32), (2, 20)]


def test_parquet_tells_where_rows_are_on_the_map(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    grown(tmp_path / "run", 2)
    export_run(tmp_path / "run", tmp_path / "without", format="parquet")
    assert "x" not in parquet.read_table(tmp_path / "without" / "entities.parquet").column_names
    (_, made) = make_maps(tmp_path / "run")
    export_run(tmp_path / "run", tmp_path / "with", format="parquet")
    export_run(tmp_path / "run", tmp_path / "since", format="parquet", since=1)
    for place in ("with", "since"):
        table = parquet.read_table(tmp_path / place / "entities.parquet").to_pydict()
        told = np.stack([table["x"], table["y"]], axis=1)
        assert np.array_equal(told, made.points[table["id"]])
    assert "x" not in parquet.read_table(tmp_path / "with" / "relations.parquet").column_names
