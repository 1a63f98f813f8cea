"""Readable names in the store: in rows of a bounded size, as many as there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicgrl import Learner
from dicgrl.errors import DataError
from dicgrl.store.run_folder import RunFolder
from tests.stores import change_config, edited, named_run, stored

NEW = ("neu", "plus 1", "e3")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return named_run(tmp_path / "run")


def loaded(run: Path) -> Learner:
    return Learner.load(run, device="cpu")


def named(run: Path, **names: str) -> None:
    learner = loaded(run)
    learner.names |= names
    learner.save(run)


def names_of(run: Path) -> dict[str, str]:
    return dict(loaded(run).names)


def test_names_do_not_have_to_fit_into_one_value(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dicgrl.store.database._LONGEST", 1 << 22)
    many = {f"label {number}": f"{number}: {'näm' * 10}" for number in range(150_000)}
    learner = loaded(run)
    learner.names |= many
    learner.save(run)
    assert names_of(run) == {"e1": "one", "e2": "two"} | many
    learner.learn([NEW], names={"neu": "new"})
    learner.save(run)
    with stored(run) as store:
        rows = [row["names"] for row in store.database.rows("names")]
    assert rows[-1] == '{"neu":"new"}'  # and nothing again
    assert max(map(len, rows)) < 1 << 22 and RunFolder(run).verify().clean
    RunFolder(run).restore(1)  # which takes all of them away
    RunFolder(run).compact("last")
    assert names_of(run) == {"e1": "one", "e2": "two"}


def test_names_that_are_one_value_are_read(run: Path) -> None:
    """As they were written before; whoever writes on then writes pieces beside it."""
    with edited(run) as database:
        database.connection.execute("DELETE FROM names")
        for names in ('{"e1":"one","e2":"deux"}', '{"e1":null,"e3":"three"}'):
            database.insert("names", version=2, names=names)
    change_config(run, lambda config: config.pop("names"))
    assert names_of(run) == {"e2": "deux", "e3": "three"}
    named(run, e2="two", e4="four")
    assert names_of(run) == {"e2": "two", "e3": "three", "e4": "four"}


@pytest.mark.parametrize("names", ["[1]", "{", '"x"', "5"])
def test_names_that_are_none_are_damage(run: Path, names: str) -> None:
    with edited(run) as database:
        database.insert("names", version=1, names=names)
    with pytest.raises(DataError, match="damaged run"):
        loaded(run)
    assert not RunFolder(run).verify().clean


def test_a_piece_of_the_names_that_is_lost_is_missed(run: Path) -> None:
    named(run, e3="three")
    with edited(run) as database:
        database.connection.execute("DELETE FROM names WHERE names LIKE '%one%'")
    assert "names: 1 where there were 2" in " ".join(RunFolder(run).verify().damage)
    with pytest.raises(DataError, match="damaged run"):
        loaded(run)
