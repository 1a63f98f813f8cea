from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dicgrl
from dicgrl.errors import DataError
from dicgrl.models import Components, KnowledgeModel
from dicgrl.store.checkpoint import load_model, save_model
from dicgrl.training import RowAdam

KINDS = {
    "plain": ("transe", None, {"p": 2}),
    "relation": ("transe", Components(4, 2), {}),
    "nodes": ("convkb", Components(4, 3, "nodes", "published", "weight"), {"filters": 3}),
    "triple": ("convkb", Components(2, 1, "triple"), {"filters": 2, "dropout": 0.3}),
}


def model_of(kind: str = "relation", *, trained: bool = True) -> KnowledgeModel:
    name, components, options = KINDS[kind]
    model = KnowledgeModel(name, 8, components, options, seed=5)
    model.grow(6, 2)
    optimiser = RowAdam(model.tables().values(), model.parameters(), lr=0.1)
    for _ in range(2 * trained):
        model.score(
            torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([2, 3])
        ).sum().backward()
        optimiser.step()
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save_model(model_of(), folder, {})
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A checkpoint to damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trained", [True, False])
def test_what_is_read_back_is_what_was_written(kind: str, trained: bool, tmp_path: Path) -> None:
    model = model_of(kind, trained=trained)
    save_model(model, tmp_path, {"dataset": "films", "more": [1, None, "ä"]})
    again, meta = load_model(tmp_path)
    assert meta == {"dataset": "films", "more": [1, None, "ä"]}
    assert again.configuration() == model.configuration()
    for name, table in model.tables().items():
        mine, theirs = table.snapshot(), again.tables()[name].snapshot()
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    for (name, mine_), (other, theirs_) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert name == other and torch.equal(mine_, theirs_)
    ids = torch.arange(6)
    with torch.no_grad():
        mine_, theirs_ = (m.eval().score(ids, ids % 2, ids.flip(0)) for m in (model, again))
    assert torch.equal(mine_, theirs_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_a_loaded_model_goes_on_as_the_one_that_was_saved(tmp_path: Path) -> None:
    model = model_of()
    save_model(model, tmp_path, {})
    again, _ = load_model(tmp_path)
    for each in (model, again):
        each.grow(3, 1)
        optimiser = RowAdam(each.tables().values(), lr=0.1)
        each.score(
            torch.tensor([0, 8]), torch.tensor([0, 2]), torch.tensor([2, 1])
        ).sum().backward()
        optimiser.step()
    for name, table in model.tables().items():
        assert torch.equal(table.rows, again.tables()[name].rows)
        assert len(again.tables()[name].rows.unique(dim=0)) == len(table)


def test_saving_again_replaces_what_was_there(folder: Path) -> None:
    other = model_of("plain")
    save_model(other, folder, {"second": True})
    again, meta = load_model(folder)
    assert again.configuration() == other.configuration() and meta == {"second": True}


def refused(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)
    return str(caught.value)


def test_a_folder_without_a_checkpoint(tmp_path: Path) -> None:
    assert "model.json is missing" in refused(tmp_path)
    assert "model.json is missing" in refused(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_that_was_cut_off(folder: Path, name: str, share: float) -> None:
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(folder)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_changed_bit_in_the_arrays(folder: Path, share: float) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)
    assert "checksum" in refused(folder)


def test_arrays_that_are_missing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    refused(folder)


def test_arrays_of_another_model(folder: Path, tmp_path: Path) -> None:
    save_model(model_of("plain"), tmp_path / "other", {})
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    assert "checksum" in refused(folder)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b'"text"', b"{}", b'{"format": "other-1"}', b"\xff\xfe\x00"]
)
def test_a_foreign_description(folder: Path, content: bytes) -> None:
    (folder / "model.json").write_bytes(content)
    refused(folder)


def change(path: list[str], value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(description: dict[str, Any]) -> None:
        at = description
        for key in path[:-1]:
            at = at[key]
        if value is ...:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return apply


@pytest.mark.parametrize(
    "damage",
    [
        change(["format"], "dicgrl-checkpoint-0"),
        change(["sha256"], ...),
        change(["sha256"], "0" * 64),
        change(["model"], ...),
        change(["model"], []),
        change(["meta"], ...),
        change(["model", "name"], "unknown"),
        change(["model", "name"], "convkb"),
        change(["model", "length"], 16),
        change(["model", "length"], 7),
        change(["model", "length"], "eight"),
        change(["model", "dim"], 8),
        change(["model", "components"], None),
        change(["model", "components"], "four"),
        change(["model", "components", "count"], 2),
        change(["model", "components", "top"], 9),
        change(["model", "components", "attention"], "nodes"),
        change(["model", "components"], {"unknown": 1}),
        change(["model", "options"], {"q": 1}),
        change(["model", "more"], 1),
    ],
)
def test_a_description_that_does_not_fit(
    folder: Path, damage: Callable[[dict[str, Any]], None]
) -> None:
    path = folder / "model.json"
    description = json.loads(path.read_text())
    damage(description)
    path.write_text(json.dumps(description))
    refused(folder)


def test_there_is_no_pickle_in_the_package() -> None:
    for path in Path(dicgrl.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                forbidden = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
                assert not forbidden & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Call):
                call = ast.unparse(node)
                assert not call.startswith(("torch.load(", "torch.save(")), path
                assert "allow_pickle=True" not in call, path
