"""`dicgrl explain`: components of a triple, and what it would activate."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dicgrl import Learner
from tests.cli.helpers import Cli

pytestmark = pytest.mark.usefixtures("trained_runs_here")


def test_explain_names_components_and_neighbours_that_share_them(cli: Cli) -> None:
    words = ("explain", "divided", "--triple", "e1", "plus 2", "e3")
    found = json.loads(cli(*words, "--json", "-k", "99").out)
    assert found["triple"] == ["Number One", "plus 2", "Number Three"] and found["known"]
    assert len(found["components"]) == 2
    assert sum(found["activated"].values()) == len(found["best"]) <= found["candidates"]
    for entry in found["best"]:
        assert entry["shared"] and {str(c) for c in entry["shared"]} <= found["components"].keys()
        near = {"Number One", "Number Three"} & {entry["triple"][0], entry["triple"][2]}
        assert bool(near) == (entry["order"] == 1)
    assert found["triple"] not in [entry["triple"] for entry in found["best"]]
    merits = [entry["merit"] for entry in found["best"]]
    assert merits == sorted(merits, reverse=True)
    code, out, err = cli(*words)
    assert (code, err) == (0, "")
    assert "Number One -- plus 2 -- Number Three\n" in out
    assert "known" in out and "Would activate" in out


def test_explain_says_that_nothing_speaks_for_a_triple(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = Learner.explain
    monkeypatch.setattr(Learner, "explain", lambda *a, **k: replace(explain(*a, **k), support=[]))
    code, out, _ = cli("explain", "plain", "--triple", "e1", "plus 2", "e3")
    assert code == 0 and "Three\nno known fact speaks for it\nscore" in out
    assert "contribution" not in out
