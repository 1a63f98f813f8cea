"""A learner's folder: nothing that is damaged or foreign is loaded, nothing is overwritten."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from dicgrl import Learner
from dicgrl.errors import DataError, UserError
from dicgrl.store.checkpoint import load_model
from dicgrl.store.run_folder import RunFolder
from tests.tiny import learner_of, ring, taught


def saved_by(learner: Learner, folder: Path) -> Path:
    learner.save(folder)
    return folder


@pytest.fixture(scope="module", params=["links", "nodes"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two parts, with all the files there are."""
    learner = learner_of(request.param, "ewc")
    learner.names = {"e1": "the first", "n1": "the first"}
    folder = tmp_path_factory.mktemp("saved") / "run"
    for parts in (1, 2):
        taught(learner, parts).save(folder)
    return folder


@pytest.fixture
def run(saved: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "run"))


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def needed(folder: Path) -> list[Path]:
    """The files that loading reads: all but the models of parts before the newest."""
    before = files_of(folder / "part-0")
    unread = {path for path in before if path.name.startswith(("model.", "strategy."))}
    return [path for path in files_of(folder) if path not in unread]


def refused(folder: Path, *mentioned: object) -> None:
    """Loading fails with one message that names the place."""
    with pytest.raises(DataError) as caught:
        Learner.load(folder, device="cpu")
    message = str(caught.value)
    assert str(folder) in message and "\n" not in message
    for words in mentioned:
        assert str(words) in message


@contextmanager
def holding(path: Path, content: bytes) -> Iterator[None]:
    """The file with other content for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def test_the_folder_holds_what_the_documentation_says(saved: Path) -> None:
    (names,) = saved.glob("names-*.json")
    assert {path.name for path in saved.iterdir()} == {
        "config.json",
        names.name,
        "part-0",
        "part-1",
    }
    for number in (0, 1):
        assert {path.name for path in (saved / f"part-{number}").iterdir()} == {
            "part.json",
            "data.safetensors",
            "labels.json",
            "report.json",
            "model.json",
            "model.safetensors",
            "strategy.safetensors",
        }


def test_a_changed_byte_in_any_file_is_found(run: Path) -> None:
    chance = random.Random(0)
    for path in needed(run):
        content = path.read_bytes()
        inside = chance.sample(range(len(content)), min(6, len(content)))
        for position in {0, len(content) - 1, *inside}:
            damaged = bytearray(content)
            damaged[position] ^= 1 << chance.randrange(8)
            with holding(path, damaged):
                refused(run)
    Learner.load(run, device="cpu")


def test_white_space_of_the_configuration_counts_as_well(run: Path) -> None:
    path = run / "config.json"
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"config\.json"):
            RunFolder(run).config()
    path.write_bytes(content.replace(b"\n  ", b"\n\t", 1))
    with pytest.raises(DataError, match="checksum"):
        RunFolder(run).config()


def test_a_file_that_was_cut_off_or_is_missing_or_longer_is_found(run: Path) -> None:
    for path in needed(run):
        content = path.read_bytes()
        for size in {0, 1, len(content) // 2, len(content) - 1}:
            with holding(path, content[:size]):
                refused(run, path)
        with holding(path, content + b"\n"):
            refused(run, path)
        path.unlink()
        refused(run)
        path.write_bytes(content)
    Learner.load(run, device="cpu")


def test_a_model_of_an_earlier_part_is_not_needed_and_tells_that_it_is_damaged(run: Path) -> None:
    part = run / "part-0"
    load_model(part)
    arrays = part / "model.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-1])
    Learner.load(run, device="cpu")
    with pytest.raises(DataError, match="part-0"):
        load_model(part)


def test_a_missing_part_is_found(run: Path) -> None:
    (run / "part-0").rename(run / "elsewhere")
    refused(run, "part-0", "missing")
    (run / "part-1").rename(run / "part-0")
    refused(run, "part-0", "of another run or part")


def test_parts_that_changed_places_are_found(run: Path) -> None:
    (run / "part-0").rename(run / "other")
    (run / "part-1").rename(run / "part-0")
    (run / "other").rename(run / "part-1")
    refused(run, "of another run or part")


@pytest.mark.parametrize("name", ["report.json", "part.json", "model.safetensors", "labels.json"])
def test_a_file_of_another_part_is_found(run: Path, name: str) -> None:
    shutil.copy(run / "part-0" / name, run / "part-1" / name)
    refused(run, "part-1")


def test_files_of_another_run_are_found(run: Path, tmp_path: Path) -> None:
    """The other one learned the same, with the same seed: only its identity differs."""
    kind = "nodes" if Learner.load(run, device="cpu").trainer.metric == "accuracy" else "links"
    other = saved_by(taught(learner_of(kind, "ewc"), 2), tmp_path / "other")
    for name in ("part-1", "part-1/report.json"):
        copy = Path(shutil.copytree(run, tmp_path / f"copy of {Path(name).name}"))
        if (other / name).is_dir():
            shutil.rmtree(copy / name)
            shutil.copytree(other / name, copy / name)
        else:
            shutil.copy(other / name, copy / name)
        refused(copy, "of another run")
    shutil.copy(other / "config.json", run / "config.json")
    refused(run, "of another run")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{}", b'{"format": "other-1"}', b"\xff\x00", b'{"a": NaN}']
)
def test_a_foreign_configuration_is_refused(run: Path, content: bytes) -> None:
    (run / "config.json").write_bytes(content)
    refused(run, "config.json")


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no run here")
    refused(tmp_path, "no run here")
    saved_by(taught(learner_of("links"), 1), tmp_path / "lower")
    refused(tmp_path, "no run here", "the runs lower")


def test_a_learner_is_not_saved_over_another(run: Path) -> None:
    before = {path: path.read_bytes() for path in files_of(run)}
    for other in (learner_of("links"), taught(learner_of("links", "ewc"), 2)):
        with pytest.raises(UserError, match="holds another run"):
            other.save(run)
    assert before == {path: path.read_bytes() for path in files_of(run)}


def test_a_learner_is_not_mixed_with_folders_of_runs(tmp_path: Path) -> None:
    saved_by(taught(learner_of("links"), 1), tmp_path / "lower")
    learner = taught(learner_of("links"), 1)
    before = {path: path.read_bytes() for path in files_of(tmp_path)}
    with pytest.raises(UserError, match="holds the runs lower; name one of them, or a new one"):
        learner.save(tmp_path)
    assert before == {path: path.read_bytes() for path in files_of(tmp_path)}
    assert {path.name for path in tmp_path.iterdir()} == {"lower"}
    learner.save(tmp_path / "mine")


def test_a_learner_is_not_saved_among_parts_without_a_configuration(run: Path) -> None:
    (run / "config.json").unlink()
    before = {path: path.read_bytes() for path in files_of(run)}
    with pytest.raises(UserError, match=r"config\.json is missing"):
        taught(learner_of("links"), 1).save(run)
    assert before == {path: path.read_bytes() for path in files_of(run)}


def test_two_that_went_different_ways_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = saved_by(taught(learner_of("links"), 1), tmp_path / "run")
    one, other = (Learner.load(folder, device="cpu") for _ in range(2))
    one.learn(ring()[1])
    other.learn([("somebody", "else", "came")])
    one.save(folder)
    before = {path: path.read_bytes() for path in files_of(folder)}
    with pytest.raises(UserError, match="another part 1"):
        other.save(folder)
    assert before == {path: path.read_bytes() for path in files_of(folder)}


def test_earlier_parts_are_left_as_they_are(run: Path) -> None:
    learner = Learner.load(run, device="cpu")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files_of(run)}
    learner.save(run)
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files_of(run)}
    taught(learner).save(run)
    for path, content in before.items():
        assert (path.read_bytes(), path.stat().st_mtime_ns) == content


def models_in(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("part-*/model.safetensors"))


def test_a_folder_keeps_the_models_that_it_was_begun_to_keep(tmp_path: Path) -> None:
    parts, learner = ring(), learner_of("links")
    learner.learn(parts[0])
    learner.save(tmp_path / "last", keep="last")
    learner.save(tmp_path / "all")
    learner.learn(parts[1])
    learner.save(tmp_path / "last")
    learner.save(tmp_path / "all")
    assert models_in(tmp_path / "last") == ["part-1"]
    assert models_in(tmp_path / "all") == ["part-0", "part-1"]
    loaded = Learner.load(tmp_path / "last", device="cpu")
    loaded.learn([("e1", "plus 1", "someone new")])
    loaded.save(tmp_path / "last")
    assert models_in(tmp_path / "last") == ["part-2"]
    learner.save(tmp_path / "all", keep="last")  # what is asked for counts
    assert models_in(tmp_path / "all") == ["part-1"]


def test_a_save_does_not_read_earlier_parts(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not where the learner wrote them itself, or was measured since."""
    learner = taught(Learner.load(run, device="cpu"), evaluate=False)
    opened: list[Path] = []

    def watched(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(path: Path, *more: Any, **named: Any) -> Any:
            opened.append(path)
            return read(path, *more, **named)

        return reading

    monkeypatch.setattr("dicgrl.store.checkpoint.load_file", watched(load_file))
    for name in ("read_text", "read_bytes", "open"):
        monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
    for newest in ("part-1", "part-2"):
        opened.clear()
        learner.save(run)
        read = {path for path in opened if not path.name.startswith(".")}  # not being written
        parts = {path for path in read if path.parent.parent == run and path.parent.name[0] != "."}
        assert parts == {run / newest / "report.json"}
        learner.evaluate()
    monkeypatch.undo()
    learner.save(run)
    again = Learner.load(run, device="cpu")
    assert again.num_parts == 3 and again.tests == learner.tests != []


def test_a_run_is_read_again_where_its_model_is_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a service does that loads a run while a nightly job goes on with it."""
    writer = taught(learner_of("links"), 1)
    writer.save(tmp_path / "run", keep="last")
    asked: list[Path] = []

    def read(folder: Path, device: Any) -> Any:
        asked.append(folder)
        if len(asked) == 1:
            writer.learn(ring()[1])
            writer.save(tmp_path / "run", keep="last")
        return load_model(folder, device)

    monkeypatch.setattr("dicgrl.store.part_folder.load_model", read)
    assert Learner.load(tmp_path / "run", device="cpu").num_parts == 2
    assert len(asked) == 2


def test_a_model_that_is_lost_is_no_other_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught(learner_of("links"), 1).save(tmp_path / "run")

    def read(folder: Path, device: Any) -> Any:
        (folder / "model.safetensors").unlink()
        return load_model(folder, device)

    monkeypatch.setattr("dicgrl.store.part_folder.load_model", read)
    with pytest.raises(DataError, match=r"model\.safetensors"):
        Learner.load(tmp_path / "run", device="cpu")
