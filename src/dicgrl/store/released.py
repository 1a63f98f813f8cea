"""Reads runs in the formats of earlier releases, dicgrl-run-2 and dicgrl-run-3, as they are.

    config.json      the settings of the learner
    names-*.json     readable names
    part-0/          one folder per part:
        part.json              checksums of the other files
        labels.json, data.safetensors, report.json
        model.*, strategy.safetensors    while the model of the part is kept
    results.json     what was measured after each part
    trace.jsonl      a line per epoch

Every JSON file contains its own checksum and the identity of the run. In dicgrl-run-2, `dim` meant
the length of a whole vector, even of one that is divided into components.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from dicgrl.errors import DataError
from dicgrl.graph.change import LEARN
from dicgrl.store.checkpoint import read_arrays, read_model
from dicgrl.store.content import Content, parts_of
from dicgrl.store.records import digest_of
from dicgrl.store.sealed import BEFORE, FORMAT, check_sum, read_json, read_sealed
from dicgrl.store.version import ModelTensors, Version
from dicgrl.tasks import task_of_model

STRATEGY = "strategy/"  # before the names of a strategy's tensors
_CONFIG, _RESULTS, _TRACE = "config.json", "results.json", "trace.jsonl"
_NAMES = "names_sha256"
_DATA, _LABELS, _STRATEGY = "data.safetensors", "labels.json", "strategy.safetensors"
_MODEL = ("model.json", "model.safetensors", _STRATEGY)


def is_released(folder: Path) -> bool:
    """Whether a folder holds a run of an earlier format."""
    return (folder / _CONFIG).is_file()


def is_of_release(folder: Path) -> bool:
    """The same, of this package and not of somebody else."""
    with contextlib.suppress(DataError):
        return read_json(folder / _CONFIG).get("format") in (FORMAT, BEFORE)
    return False


def files_of(folder: Path) -> list[Path]:
    """What an earlier format keeps in a folder; config.json last, which says that it is there."""
    found = [*folder.glob("part-*"), *folder.glob("names*.json")]
    parts = [path for path in found if path.name.endswith(".json") or _number(path) is not None]
    return [*parts, folder / _CONFIG]


def has_parts(folder: Path) -> bool:
    """Whether there are parts of a run, with or without its configuration."""
    return any(_number(path) is not None for path in folder.glob("part-*"))


class ReleasedRun:
    """A run of an earlier format.

    Args:
        folder: Its folder.

    Raises:
        DataError: It is damaged or not of this package.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = read_sealed(folder / _CONFIG)
        if config["format"] == BEFORE:
            config |= {"format": FORMAT, "settings": _active_dim(config.get("settings"))}
        self._config = config

    @property
    def config(self) -> dict[str, Any]:
        """What the run is."""
        return {key: value for key, value in self._config.items() if key != _NAMES}

    def versions(self) -> list[Version]:
        """All parts as versions, oldest first; their files are checked but for the models.

        Raises:
            DataError: A file is missing, damaged or of another run.
        """
        numbers = sorted(n for p in self.folder.glob("part-*") if (n := _number(p)) is not None)
        results = self._results()
        entries = results.pop("parts", None) or []
        for expected, found in enumerate(numbers):
            if expected != found:
                raise DataError(
                    self.folder / f"part-{expected}", "damaged run: this part is missing"
                )
        if len(numbers) < len(entries):  # a part was written before the results that it led to
            raise DataError(
                self.folder / f"part-{len(numbers)}",
                f"damaged run: this part is missing, results.json knows {len(entries)}; put it "
                f"back, or remove results.json to go on after {len(numbers)}",
            )
        return [
            self._version(number, results, entries[number] if number < len(entries) else None)
            for number in numbers
        ]

    def content(self, version: Version) -> Content:
        """Arrays and labels that a version brought."""
        arrays, labels = self._part_content(version.number - 1)
        return arrays, {"part": labels, "change": {}}

    def contents(self, versions: Sequence[Version]) -> list[Content]:
        """The same of several versions, oldest first."""
        return [self.content(version) for version in versions]

    def names(self, at: int) -> dict[str, str]:
        """Readable names by label; there is only one state of them."""
        del at
        digest = self._config.get(_NAMES, "")
        if not digest:
            return {}
        place = self.folder / f"names-{str(digest)[:8]}.json"
        if not place.exists() and (self.folder / "names.json").exists():  # before dicgrl-run-3
            place = self.folder / "names.json"
        check_sum(place, digest)
        names: dict[str, str] = read_json(place)
        return names

    def tags(self) -> dict[str, int]:
        """Versions by their tags: there were none."""
        return {}

    def models(self) -> dict[int, int]:
        """The versions whose model was kept."""
        places = {n: p for p in self.folder.glob("part-*") if (n := _number(p)) is not None}
        kept = [n for n, place in places.items() if _MODEL[0] in self._index(place)["files"]]
        return {number + 1: number + 1 for number in kept}

    def model(self, number: int) -> ModelTensors | None:
        """The model after a part; None where it was not kept.

        Raises:
            DataError: A file is missing or damaged.
        """
        place = self.folder / f"part-{number - 1}"
        if _MODEL[0] not in self._index(place)["files"]:
            return None
        self._check_files(place, _MODEL)
        configuration, tensors = read_model(place)
        kept: dict[str, Tensor] = read_arrays(place / _STRATEGY)
        return ModelTensors(
            configuration, tensors | {STRATEGY + name: tensor for name, tensor in kept.items()}
        )

    def trace(self) -> dict[int, list[dict[str, Any]]]:
        """The records of epochs, by version; empty if the file is damaged."""
        found: dict[int, list[dict[str, Any]]] = {}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            for line in (self.folder / _TRACE).read_text(encoding="utf-8").splitlines():
                epoch = json.loads(line)
                found.setdefault(epoch.pop("part") + 1, []).append(epoch)
        return found

    def _version(
        self, number: int, summary: Mapping[str, Any], entry: dict[str, Any] | None
    ) -> Version:
        place = self.folder / f"part-{number}"
        files = self._index(place)["files"]
        self._check_files(place, [name for name in files if name not in _MODEL])
        report = read_sealed(place / "report.json", self._key(number))
        content = self._part_content(number)
        try:
            if entry is not None:
                entry = {key: value for key, value in entry.items() if key != "tests"}
            kind = task_of_model(self._config["model"]).part_type
            (part,) = parts_of(kind, [content], first=number)
            brought = {f"new_{name}": len(labels) for name, labels in content[1].items()}
            return Version(
                number + 1,
                number,
                LEARN,
                counts={"facts": part.facts, **brought},
                data=digest_of((content[0], {"part": content[1], "change": {}})),
                report=report["report"],
                before=report["before"],
                retention=report["retention"],
                answers=report["answers"],
                tests=report["tests"],
                results=None if entry is None else {"summary": dict(summary), "entry": entry},
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise DataError(place, f"damaged run ({error})") from error

    def _results(self) -> dict[str, Any]:
        """Measured results; empty if they cannot be read, as they can be measured again."""
        with contextlib.suppress(DataError, TypeError, KeyError, AttributeError):
            path = self.folder / _RESULTS
            results = read_json(path) if path.is_file() else {}
            if all(isinstance(entry, dict) for entry in results.get("parts", [])):
                if "dim" in self._config["settings"]:  # it had another meaning in dicgrl-run-2
                    results["settings"]["dim"] = self._config["settings"]["dim"]
                return results
        return {}

    def _part_content(self, number: int) -> Content:
        place = self.folder / f"part-{number}"
        return read_arrays(place / _DATA), read_json(place / _LABELS)

    def _index(self, place: Path) -> dict[str, Any]:
        number = _number(place)
        index = read_sealed(place / "part.json", self._key(-1 if number is None else number))
        if not isinstance(index.get("files"), dict):
            raise DataError(place / "part.json", "damaged: expected checksums of files")
        return index

    def _check_files(self, place: Path, names: Any) -> None:
        files = self._index(place)["files"]
        for name in names:
            if Path(name).name != name:
                raise DataError(place / "part.json", f"damaged: {name!r} is no name of a file")
            check_sum(place / name, files.get(name))

    def _key(self, number: int) -> dict[str, Any]:
        return {"identity": self._config.get("identity"), "part": number}


def _number(path: Path) -> int | None:
    name = path.name.removeprefix("part-")
    return int(name) if name.isdecimal() and path.is_dir() else None


def _active_dim(settings: Any) -> Any:
    """Settings in which `dim` was the length of a whole vector, as it is stored now."""
    match settings:
        case {"dim": int(dim), "components": int(count), "top": int(top)} if count > 0:
            return {**settings, "dim": dim * top // count}  # its components had one length
    return settings
