"""What questions are answered from goes on after a renewal that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from dicgrl import DataError, Learner
from dicgrl.serve.snapshots import Snapshots
from dicgrl.store.run_folder import RunFolder
from dicgrl.trainers.trainer import Trainer
from tests.tiny import learner_of, taught


def failing(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def question(learner: Learner) -> list[str]:
    return [answer.label for answer in learner.predict(head="e1", relation="plus 1", k=50)]


@pytest.fixture
def writer() -> Learner:
    return taught(learner_of("links", "lower"), 1, evaluate=False)


def begun(run: Path) -> Snapshots:
    """Snapshots of which both copies were read."""
    snapshots = Snapshots(RunFolder(run), "cpu")
    snapshots.renew()
    return snapshots


def assert_renewed(snapshots: Snapshots, writer: Learner) -> None:
    for _ in range(2):  # both copies
        snapshots.renew()
        assert snapshots.version == writer.version
        assert question(snapshots.current.learner) == question(writer)


@pytest.mark.parametrize("keep", ["all", "last"])
@pytest.mark.parametrize("error", [DataError("run", "rows do not fit"), MemoryError("too much")])
def test_versions_are_taken_in_after_a_time_when_they_could_not_be(
    error: Exception, keep: str, writer: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the version before is not kept, the copy at rest is of no further use."""
    writer.save(tmp_path, keep=keep)
    snapshots, before = begun(tmp_path), question(writer)
    for parts in (2, 3):
        taught(writer, parts, evaluate=False).save(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "follow", failing(error))
        with pytest.raises(type(error), match=r"rows do not fit|too much"):
            snapshots.renew()
        assert snapshots.version == 1 and question(snapshots.current.learner) == before
    assert_renewed(snapshots, writer)


@pytest.mark.parametrize("keep", ["all", "last"])
def test_a_damaged_version_is_taken_in_when_it_is_put_back(
    keep: str, writer: Learner, tmp_path: Path
) -> None:
    writer.save(tmp_path, keep=keep)
    snapshots, before = begun(tmp_path), question(writer)
    old = set((tmp_path / "tensors").iterdir())
    taught(writer, 2, evaluate=False).save(tmp_path)
    whole = {path: path.read_bytes() for path in set((tmp_path / "tensors").iterdir()) - old}
    for path, content in whole.items():
        path.write_bytes(content[: len(content) // 2])
    for _ in range(2):
        with pytest.raises(DataError, match="damaged"):
            snapshots.renew()
        assert snapshots.version == 1 and question(snapshots.current.learner) == before
    for path, content in whole.items():
        path.write_bytes(content)
    assert_renewed(snapshots, writer)
