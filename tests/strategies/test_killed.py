"""Every decoder under every strategy: killed while it writes, and gone on with as if it had not."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from dicgrl.jobs.stream import run_stream
from dicgrl.recipes import Recipe
from tests.children import begin, ended
from tests.faults import Fault
from tests.growing import LINK_FORMS, RIVALS, STRATEGIES, settings_of, stream_of
from tests.runs import measured
from tests.stores import assert_same_stores

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")

PLAIN = ("transe", "convkb", "distmult", "complex", "rotate")
DIVIDED = ("transe-divided", "convkb-divided", "distmult-divided", "complex-divided")
DIVIDED = (*DIVIDED, "complex-all-divided", "rotate-divided")
CELLS = [(form, name) for form in PLAIN for name in (*STRATEGIES, *RIVALS) if name != "dicgrl"]
CELLS += [(form, "dicgrl") for form in DIVIDED]
CELLS += [("complex-all", name) for name in ("upper", "fresh", "emr", "lkge")]
STEPS = range(30, 90)  # of writing: about the end of the first part until that of the last


def learn(form: str, name: str, out: str) -> object:
    """Learn the stream of three parts, from where the folder ends."""
    changes = {"arrive_epochs": 1} if name == "dicgrl" else {}
    recipe = Recipe("default", settings_of(form, name, epochs=2, **changes))
    place = Path(out)
    return measured(run_stream(stream_of(form), recipe, device="cpu", out=place, resume=True))


def test_every_decoder_meets_every_strategy() -> None:
    models = {LINK_FORMS[form]["model"] for form in (*PLAIN, *DIVIDED)}
    assert models == {"transe", "convkb", "distmult", "complex", "rotate"}
    for model in models:
        met = {name for form, name in CELLS if LINK_FORMS[form]["model"] == model}
        assert met == {*STRATEGIES, *RIVALS}


@pytest.mark.parametrize(("form", "name"), CELLS, ids=lambda text: text)
def test_a_killed_run_ends_as_one_that_nobody_disturbed(
    form: str, name: str, tmp_path: Path
) -> None:
    log, out, steady = tmp_path / "log", tmp_path / "killed", tmp_path / "steady"
    at = random.Random(f"{form} {name}").choice(STEPS)
    child = begin(log, learn, form, name, str(out), fault=Fault("kill", at))
    expected = learn(form, name, str(steady))
    assert ended(child) == -signal.SIGKILL, log.read_text()
    assert learn(form, name, str(out)) == expected
    assert_same_stores(out, steady)
