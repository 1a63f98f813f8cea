"""`dicgrl similar`: vectors in the same direction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.helpers import Cli, refused

pytestmark = pytest.mark.usefixtures("trained_runs_here")


@pytest.mark.parametrize(("run", "label"), [("divided", "Number One"), ("nodes", "n3")])
def test_what_is_similar_points_in_the_same_direction(cli: Cli, run: str, label: str) -> None:
    assert cli("export", run, "--to", "vectors").code == 0
    name = "entities" if run == "divided" else "nodes"
    lines = Path(f"vectors/{name}.tsv").read_text(encoding="utf-8").splitlines()
    labels, names = zip(*(line.split("\t") for line in lines), strict=True)
    vectors = np.load(f"vectors/{name}.npy")
    for words, of in (((), vectors), (("--component", "0"), vectors[:, :1])):
        if words and run == "nodes":
            continue
        flat = of.reshape(len(of), -1)
        flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
        me = names.index(label)
        cosine = flat @ flat[me]
        best = np.sort(np.delete(cosine, me))[::-1][:3]
        found = json.loads(cli("similar", run, label, "-k", "3", *words, "--json").out)
        theirs = [cosine[labels.index(each["label"])] for each in found]
        assert [each["cosine"] for each in found] == pytest.approx(theirs, abs=1e-5)
        assert theirs == pytest.approx(best, abs=1e-5)  # nodes may have the same vectors
        assert len({me, *(labels.index(each["label"]) for each in found)}) == 4
    assert label in cli("similar", run, label).out
    refused(cli("similar", run, label, "--component", "9"), "component=9")
    refused(cli("similar", run, "nobody"), "'nobody'")
