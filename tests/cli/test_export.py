"""`dicgrl export`: vectors, attention and labels in files."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file

from dicgrl import (
    Learner,
)
from dicgrl.errors import UserError
from tests.children import ended, start
from tests.cli.helpers import DIVIDED, Cli, refused
from tests.faults import Fault
from tests.tiny import (
    learner_of,
    taught,
)

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_exported_vectors_give_the_models_scores(cli: Cli) -> None:
    code, out, err = cli("export", "plain", "--to", "vectors")
    assert (code, err) == (0, "")
    files = {path.name for path in Path("vectors").iterdir()}
    assert files == {
        "entities.npy",
        "entities.tsv",
        "relations.npy",
        "relations.tsv",
        "vectors.safetensors",
    }
    assert all(name in out for name in files)
    arrays = load_file("vectors/vectors.safetensors")
    rows: dict[str, dict[str, int]] = {}
    for name in ("entities", "relations"):
        assert np.array_equal(np.load(f"vectors/{name}.npy"), arrays[name])
        lines = Path(f"vectors/{name}.tsv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(arrays[name])
        rows[name] = {line.split("\t")[0]: i for i, line in enumerate(lines)}
    entity, relation = arrays["entities"].squeeze(1), arrays["relations"].squeeze(1)
    away = (
        entity[rows["entities"]["e3"]]
        + relation[rows["relations"]["plus 2"]]
        - entity[rows["entities"]["e9"]]
    )
    score = Learner.load("plain", device="cpu").score([("e3", "plus 2", "e9")])[0]
    assert -np.abs(away).sum() == pytest.approx(score, rel=1e-5)
    assert "e1\tNumber One" in Path("vectors/entities.tsv").read_text(encoding="utf-8")


def test_an_option_that_no_written_format_heeds_is_refused(cli: Cli) -> None:
    export = ("export", "plain", "--to", "never")
    refused(
        cli(*export, "--neighbours", "3"),
        "neighbours has no effect with format arrays; choose parquet",
    )
    formats = ("--format", "npy,parquet")
    refused(
        cli(*export, *formats, "--license", "mit"),
        "license has no effect with format npy, parquet; choose safetensors",
    )
    for option in ("--neighbours", "--license"):
        refused(cli(*export, "--index", "faiss", option, "3"), option, "leave out --index")
    assert not Path("never").exists()
    since = ("--since", "1", "--neighbours", "1")  # rows that changed come as Parquet, too
    assert cli("export", "plain", "--to", "changed", *since).code == 0


@pytest.mark.parametrize("option", [{"neighbours": 3}, {"license": "mit"}])
def test_python_refuses_such_an_option_too(option: dict[str, Any], tmp_path: Path) -> None:
    learner = Learner.load("plain", device="cpu")
    with pytest.raises(UserError, match=f"{next(iter(option))} has no effect with format npy"):
        learner.export(tmp_path / "never", format="npy", **option)
    assert not (tmp_path / "never").exists()


def test_vectors_are_exported_from_python(tmp_path: Path) -> None:
    learner = taught(learner_of("links"), 1)
    for place in (str(tmp_path / "text"), tmp_path / "path"):
        assert set(learner.export(place)) == {path.name for path in Path(place).iterdir()}


def test_networks_and_divided_models_are_exported(cli: Cli) -> None:
    assert cli("export", "nodes", "--to", "x/nodes").code == 0
    arrays = load_file("x/nodes/vectors.safetensors")
    assert len(arrays["nodes"]) == 40 and len(arrays["classes"]) == 3
    assert len(Path("x/nodes/nodes.tsv").read_text().splitlines()) == 40
    assert arrays["attention_weight"].shape == (2, 2, 4)
    assert cli("export", "divided", "--to", "x/divided").code == 0
    arrays = load_file("x/divided/vectors.safetensors")
    assert arrays["entities"].shape[1:] == (4, 4)
    assert arrays["attention"].shape == (3, 4)
    assert arrays["attention"].sum(1) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("kind", ["nodes", "triple"])
@pytest.mark.parametrize("routing", ["learned", "published"])
def test_exported_attention_is_that_of_the_model(cli: Cli, kind: str, routing: str) -> None:
    """The weights of every triple's components, by the formula of docs/data.md."""
    words = ("--set", f"attention={kind}", "--set", f"routing={routing}", "--strategy", "lower")
    assert cli("run", "ring", *DIVIDED, *words, "--out", "run").code == 0
    assert cli("export", "run", "--to", "x").code == 0
    arrays = load_file("x/vectors.safetensors")
    assert "attention" not in arrays
    assert np.array_equal(np.load("x/attention_weight.npy"), arrays["attention_weight"])
    rows = {}
    for name in ("entities", "relations"):
        lines = Path(f"x/{name}.tsv").read_text(encoding="utf-8").splitlines()
        rows[name] = dict(zip((line.split("\t")[0] for line in lines), arrays[name], strict=True))
    for head, relation, tail in (("e3", "plus 1", "e9"), ("e12", "plus 5", "e4")):
        seen = [rows["entities"][head], rows["entities"][tail]]  # [K, size] each
        if kind == "triple":
            own = rows["relations"][relation]
            seen.append(np.broadcast_to(own, (4, own.shape[1])))
        logits = np.maximum(np.concatenate(seen, 1) @ arrays["attention_weight"], 0)
        alpha = np.exp(logits) / np.exp(logits).sum()
        found = json.loads(cli("explain", "run", "--triple", head, relation, tail, "--json").out)
        for component, weight in found["components"].items():
            assert weight == pytest.approx(alpha[int(component)], rel=1e-5)


def test_what_cannot_be_written_is_one_message(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise SafetensorError("No space left on device (os error 28)")

    monkeypatch.setattr("dicgrl.common.tensors.save_file", full)
    code, _, err = cli("export", "divided", "--to", "vectors")
    assert code == 1 and "vectors.safetensors: cannot be written (No space left" in err
    assert err.count("\n") == 1 and not Path("vectors").exists()


def test_arrays_are_for_everyone_whom_the_umask_allows(cli: Cli) -> None:
    before = os.umask(0o027)
    try:
        assert cli("export", "divided", "--to", "vectors").code == 0
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in Path("vectors").iterdir()} == {0o640}


def test_what_a_killed_export_left_goes_with_the_next(tmp_path: Path) -> None:
    """Unless its process is still there."""
    left = []
    for at in (1, 4, 7):
        words = ("export", "plain", "--to", "vectors")
        assert ended(start(tmp_path / "log", *words, fault=Fault("kill", at))) == -signal.SIGKILL
        left += Path().glob(".vectors.*")
        assert not Path("vectors").exists()
    assert left
    busy = Path(f".vectors.{os.getpid():08x}01234567")
    busy.mkdir()
    assert ended(start(tmp_path / "log", *words)) == 0
    assert list(Path().glob(".vectors.*")) == [busy] and Path("vectors").exists()
