"""The trace of a run, added to and mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicgrl.errors import DataError
from dicgrl.jobs.learn import learn_facts
from dicgrl.store.run_folder import RunFolder
from dicgrl.training import EpochReport
from tests.runs import recipe_of, run, unchanged
from tests.tiny import ring


def test_a_trace_is_added_to_and_replaced_only_where_lines_are_dropped(tmp_path: Path) -> None:
    path, reports = tmp_path / "trace.jsonl", [EpochReport(1, 0.5, 10.0), EpochReport(2, 0.4, 9.0)]
    RunFolder(tmp_path).append_trace(0, reports)
    file = path.stat().st_ino
    for part in (1, 2):
        RunFolder(tmp_path).append_trace(part, reports)
    assert path.stat().st_ino == file
    whole = path.read_bytes()
    RunFolder(tmp_path).append_trace(2, reports)
    assert path.stat().st_ino != file and path.read_bytes() == whole
    parts = [json.loads(line)["part"] for line in whole.splitlines()]
    assert parts == [0, 0, 1, 1, 2, 2]


def test_a_trace_that_was_not_written_to_its_end_is_gone_on_with(tmp_path: Path) -> None:
    path, reports = tmp_path / "trace.jsonl", [EpochReport(1, 0.5, 10.0), EpochReport(2, 0.4, 9.0)]
    RunFolder(tmp_path).append_trace(0, reports)
    saved = len(path.read_bytes())
    RunFolder(tmp_path).append_trace(1, reports)
    whole = path.read_bytes()
    for length in range(saved, len(whole)):
        path.write_bytes(whole[:length])
        RunFolder(tmp_path).check_new(resume=True)
        RunFolder(tmp_path).append_trace(1, reports)
        assert path.read_bytes() == whole


def test_a_damaged_trace_is_found_before_anything_is_learned(begun: Path) -> None:
    path = begun / "trace.jsonl"
    whole = path.read_bytes()
    for content in (b"\xff", b"[]\n", b'{"part": 0', whole[:-5] + b"\x00" + whole[-4:]):
        path.write_bytes(content)
        unchanged(begun, "trace.jsonl", "damaged")
    path.unlink()
    run(ring(), recipe_of("links"), out=begun, resume=True)


def test_facts_are_not_learned_beside_a_damaged_trace(begun: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.tsv"
    facts.write_text("e1\tlikes\te2\n")
    (begun / "trace.jsonl").write_text('{"part": 0')
    epochs: list[int] = []
    with pytest.raises(DataError, match=r"trace\.jsonl: damaged"):
        learn_facts(begun, facts, device="cpu", on_epoch=lambda part, _: epochs.append(part))
    assert not epochs and not (begun / "part-2").exists()
