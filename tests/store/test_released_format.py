"""Runs that releases wrote: they are read as they are, and converted by the first save.

`released/` has a run of two parts in each format, written by the release itself, with names: plain
and divided, with and without a strategy's state, with the models of all parts or of the last.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from dicgrl import Learner
from dicgrl.common.atomic import as_json
from dicgrl.errors import DataError
from dicgrl.jobs.changing import ChangeOptions
from dicgrl.jobs.learn import learn_facts
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.sealed import checksum
from tests.learner.helpers import assert_same
from tests.runs import files_in, read_json, recipe_of, run
from tests.stores import kept, same_bits, tensors_of
from tests.tiny import stream_of, taught

ARCHIVES = sorted((Path(__file__).parent / "released").glob("*.tar.gz"))
MODEL = ("model.json", "model.safetensors", "strategy.safetensors")


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    (place,) = tmp_path.iterdir()
    return place.rename(tmp_path / "run")


def kind_of(folder: Path) -> tuple[str, str]:
    """Kind and strategy of a run."""
    config = read_json(folder / "config.json")
    return "links" if config["model"] == "transe" else "nodes", config["strategy"]


def as_written(folder: Path) -> dict[int, dict[str, object]]:
    """The tensors of all models in a folder of then."""
    found = {}
    for path in folder.glob("part-*/model.safetensors"):
        kept = load_file(path.with_name("strategy.safetensors"))
        tensors = load_file(path) | {f"strategy/{name}": t for name, t in kept.items()}
        found[int(path.parent.name.removeprefix("part-")) + 1] = tensors
    return found


def test_there_is_a_run_of_every_released_format() -> None:
    assert {path.name[:5] for path in ARCHIVES} == {"run-2", "run-3"} and len(ARCHIVES) == 8


def test_it_is_read_as_it_is(folder: Path) -> None:
    before, results = files_in(folder), read_json(folder / "results.json")
    kind, strategy = kind_of(folder)
    learner = Learner.load(folder, device="cpu")
    assert (learner.num_parts, learner.version) == (2, 2)
    assert learner.settings.strategy == strategy
    assert learner.names["e1" if kind == "links" else "n1"] == "the first"
    assert learner.tests[-1] == results["parts"][-1]["tests"]
    written = as_written(folder)[2]
    for name, table in learner.trainer.model.tables().items():
        mine = {f"table/{name}/{key}": values for key, values in table.snapshot().items()}
        assert same_bits(mine, {key: written[key] for key in mine})  # type: ignore[misc]
    if kind == "links":
        assert learner.predict("the first", "plus 1")
        assert learner.settings.dim == recipe_of(kind, strategy).settings.dim
    else:
        assert learner.predict(node="the first")
    told = RunFolder(folder).results()
    assert told["parts"] == results["parts"]
    overview = RunFolder(folder).overview()
    assert len(overview["parts"]) == 2
    assert overview["settings"].get("dim") == told["settings"].get("dim")
    assert files_in(folder) == before


def test_it_is_converted_by_the_first_save(folder: Path) -> None:
    written, results = as_written(folder), read_json(folder / "results.json")
    trace = (folder / "trace.jsonl").read_bytes()
    learner = Learner.load(folder, device="cpu")
    learner.save(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"store.sqlite", "tensors", "results.json", "trace.jsonl"}
    assert kept(folder) == sorted(written)
    for number, tensors in written.items():
        assert same_bits(tensors_of(folder, number), tensors)  # type: ignore[arg-type]
    assert_same(Learner.load(folder, device="cpu"), learner)
    assert RunFolder(folder).results()["parts"] == results["parts"]
    taught(learner).save(folder)
    again = Learner.load(folder, device="cpu")
    assert_same(again, learner)
    assert again.names == learner.names and again.version == 3
    assert RunFolder(folder).verify().clean
    assert (folder / "trace.jsonl").read_bytes() == trace


def test_it_is_resumed(folder: Path) -> None:
    kind, strategy = kind_of(folder)
    before, trace = read_json(folder / "results.json"), (folder / "trace.jsonl").read_text()
    keep = read_json(folder / "config.json")["keep"]
    whole = run(stream_of(kind), recipe_of(kind, strategy), out=folder, resume=True)
    assert len(whole["parts"]) == 3
    for mine, theirs in zip(whole["parts"], before["parts"], strict=False):
        assert {key: mine[key] for key in theirs} == theirs
    told = read_json(folder / "results.json")["parts"]
    assert told == json.loads(json.dumps(whole["parts"]))
    assert (folder / "trace.jsonl").read_text().startswith(trace)
    assert kept(folder) == ([3] if keep == "last" else [1, 2, 3])


def test_facts_become_its_next_part(folder: Path, tmp_path: Path) -> None:
    if kind_of(folder)[0] == "nodes":
        return
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\tnewcomer\n", encoding="utf-8")
    results = learn_facts(folder, facts, ChangeOptions("cpu")).results
    assert len(results["parts"]) == 3 and len(RunFolder(folder).results()["parts"]) == 3
    assert Learner.load(folder, device="cpu").predict("e1", "likes")


def test_a_changed_byte_is_found(folder: Path) -> None:
    for path, content in files_in(folder).items():
        if path.name in ("results.json", "trace.jsonl"):
            continue
        if path.parent.name == "part-0" and path.name in MODEL:  # not read
            continue
        damaged = bytearray(content)
        damaged[len(content) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            Learner.load(folder, device="cpu")
        path.write_bytes(content)


def test_damage_of_earlier_models_stops_the_conversion_and_nothing_is_lost(folder: Path) -> None:
    path = folder / "part-0" / "model.safetensors"
    if not path.exists():
        return
    learner = Learner.load(folder, device="cpu")
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    before = files_in(folder)
    with pytest.raises(DataError, match=r"part-0/model\.safetensors"):
        learner.save(folder)
    assert {path: before[path] for path in before} == {
        path: content for path, content in files_in(folder).items() if path in before
    }
    path.write_bytes(content)
    learner.save(folder)
    assert_same(Learner.load(folder, device="cpu"), learner)


@pytest.mark.parametrize("name", ["config.json", "part-1/labels.json", "part-1/model.safetensors"])
def test_pipes_are_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)  # who opens it waits for ever
    with pytest.raises(DataError):
        Learner.load(folder, device="cpu")


def test_a_missing_part_is_found(folder: Path) -> None:
    shutil.move(folder / "part-1", folder.parent / "elsewhere")
    missing = r"part-1: damaged run: this part is missing, results\.json knows 2"
    with pytest.raises(DataError, match=missing):
        Learner.load(folder, device="cpu")


def reseal(path: Path, changes: dict[str, Any]) -> None:
    """Change a sealed file as somebody would who knows how its checksum is made."""
    content = {k: v for k, v in read_json(path).items() if k != "sha256"} | changes
    digest = hashlib.sha256(as_json(content).encode()).hexdigest()
    path.write_text(as_json(content | {"sha256": digest}), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config.json", {"names_sha256": 5}),
        ("config.json", {"names_sha256": "../../etc/passwd"}),
        ("config.json", {"settings": 5}),
        ("config.json", {"model": ["transe"]}),
        ("part-1/part.json", {"files": []}),
        ("part-1/part.json", {"files": 5}),
        ("part-1/part.json", {"files": {"../../x": "0" * 64}}),
        ("part-1/part.json", {"files": {"model.json": 5}}),
    ],
    ids=str,
)
def test_what_was_sealed_again_is_refused_in_one_message(
    folder: Path, name: str, changes: dict[str, Any]
) -> None:
    reseal(folder / name, changes)
    with pytest.raises(DataError):
        Learner.load(folder, device="cpu")
    assert not RunFolder(folder).verify().clean or name == "config.json"


def test_labels_without_model_rows_are_refused(folder: Path) -> None:
    index = read_json(folder / "part-1" / "part.json")["files"]
    labels = folder / "part-1" / "labels.json"
    content = read_json(labels)
    kind = min(content)
    labels.write_text(json.dumps(content | {kind: [*content[kind], "nobody"]}), encoding="utf-8")
    reseal(folder / "part-1" / "part.json", {"files": index | {"labels.json": checksum(labels)}})
    with pytest.raises(DataError):
        Learner.load(folder, device="cpu")
