"""One part in a run folder: its data, what learning it took, and the model after it.

    part.json         checksums of the files beside it
    data.safetensors  the part's triples, or nodes and edges, in ids of the graph
    labels.json       labels that were new
    report.json       what learning it took and what was measured after it
    model.*           the model after this part (see `dicgrl.store.checkpoint`)
    strategy.safetensors  what the strategy keeps

The folder is written under another name and renamed when it is complete. report.json is the only
file that may change afterwards, and with `keep="last"` the model goes once there is a newer one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dicgrl.common.atomic import new_folder, remove_leftovers, write_json
from dicgrl.common.tensors import write_tensors
from dicgrl.errors import DataError, UserError
from dicgrl.store.checkpoint import load_model, read_arrays, save_model
from dicgrl.store.content import Content, part_content, same_content
from dicgrl.store.sealed import (
    FORMAT,
    check_sum,
    checksum,
    read_json,
    read_sealed,
    sealed,
    write_sealed,
)
from dicgrl.store.state import LearnerState

_DATA, _LABELS, _STRATEGY = "data.safetensors", "labels.json", "strategy.safetensors"
_MODEL = ("model.json", "model.safetensors", _STRATEGY)


class PartFolder:
    """Where a part of a run lies.

    Args:
        run: The run folder.
        number: Number of the part.
    """

    def __init__(self, run: Path, number: int) -> None:
        self.path = run / f"part-{number}"
        self.number = number
        self._index = self.path / "part.json"
        self._report = self.path / "report.json"

    @staticmethod
    def numbers(run: Path) -> list[int]:
        """Numbers of the parts that lie in a run folder, in order."""
        there = [p.name.removeprefix("part-") for p in run.glob("part-*") if p.is_dir()]
        return sorted(int(name) for name in there if name.isdecimal())

    def write(self, state: LearnerState) -> None:
        """Write the part, and the model with it where the part is the newest.

        A part that is there already is left as it is; only its report may be another by now.
        """
        report = _report_of(state, self.number)
        if not self.path.exists():
            with new_folder(self.path) as temporary:
                _write_part(state, self.number, temporary)
                write_sealed(temporary / self._report.name, report)
        elif read_json(self._report) != sealed(report):
            write_sealed(self._report, report)

    def check_same(self, state: LearnerState) -> None:
        """Refuse a part that is there and is not the state's.

        Raises:
            DataError: It is damaged, or of another run.
            UserError: Something else was learned as this part.
        """
        if not self.path.exists():
            return
        read_sealed(self._index, self._key(state.identity))
        if not same_content(part_content(state.parts[self.number]), self.content()):
            raise UserError(
                f"{self.path}: another part {self.number} was learned and saved here; choose "
                "another folder"
            )

    def verify(self, identity: str, *, newest: bool) -> None:
        """Check the files; a model that is not the newest one is not read.

        Raises:
            DataError: A file is missing, damaged or of another run.
        """
        for name, expected in read_sealed(self._index, self._key(identity))["files"].items():
            if newest or name not in _MODEL:
                check_sum(self.path / name, expected)
        if newest and not (self.path / _MODEL[0]).exists():
            raise DataError(self.path, "no model beside the newest part")

    def content(self) -> Content:
        """Arrays and new labels of the part."""
        return read_arrays(self.path / _DATA), self.labels()

    def labels(self) -> dict[str, Any]:
        """Labels that were new, by kind."""
        return read_json(self.path / _LABELS)

    def report(self, identity: str) -> dict[str, Any]:
        """What learning the part took and what was measured after it."""
        return read_sealed(self._report, self._key(identity))

    def peek_report(self) -> dict[str, Any]:
        """The same, of whatever run and unchecked."""
        return read_json(self._report)

    def model(self, device: torch.device) -> tuple[Any, dict[str, Tensor]]:
        """The model after the part and what the strategy keeps, on a device."""
        model, _ = load_model(self.path, device)
        kept = read_arrays(self.path / _STRATEGY)
        return model, {name: values.to(device) for name, values in kept.items()}

    def data_checksums(self) -> tuple[str, str]:
        """Checksums of the arrays and labels; equal where the data is."""
        files = read_sealed(self._index)["files"]
        return files[_DATA], files[_LABELS]

    def drop_model(self, identity: str) -> None:
        """Remove the model; part.json stops naming it first: what it names is always there."""
        left = [self.path / name for name in _MODEL if (self.path / name).exists()]
        if not left:
            return
        remove_leftovers(self.path)
        described = read_sealed(self._index, self._key(identity))
        named = {name: value for name, value in described["files"].items() if name not in _MODEL}
        if named != described["files"]:
            write_sealed(self._index, described | {"files": named})
        for path in left:
            path.unlink()

    def _key(self, identity: str) -> dict[str, Any]:
        return {"identity": identity, "part": self.number}


def _write_part(state: LearnerState, number: int, place: Path) -> None:
    arrays, labels = part_content(state.parts[number])
    write_tensors(arrays, place / _DATA)
    write_json(place / _LABELS, labels)
    if number == len(state.parts) - 1:
        assert state.model is not None
        save_model(state.model, place, {"part": number})
        kept = {name: values.cpu().contiguous() for name, values in state.strategy.items()}
        write_tensors(kept, place / _STRATEGY)
    sums = {path.name: checksum(path) for path in sorted(place.iterdir())}
    key = {"identity": state.identity, "part": number}
    write_sealed(place / "part.json", {"format": FORMAT, **key, "files": sums})


def _report_of(state: LearnerState, number: int) -> dict[str, Any]:
    answers = state.first_answers if number == 0 else None
    return {
        "format": FORMAT,
        "identity": state.identity,
        "part": number,
        "report": state.reports[number],
        "tests": state.tests[number],
        "before": state.before[number],
        "retention": state.retention[number],
        "answers": None if answers is None else "".join(map(str, answers.int().tolist())),
    }


def answers_of(report: dict[str, Any]) -> Tensor | None:
    """Which questions a report of the first part says were answered, bool [questions]."""
    answers = report["answers"]
    return None if answers is None else torch.tensor([sign == "1" for sign in answers])
