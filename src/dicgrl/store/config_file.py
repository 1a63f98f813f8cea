"""The configuration of a run, which says what its learner is, and the readable names beside it.

Names are in a file named after its content: a process that reads the configuration finds the names
that it speaks of, while another process replaces both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import as_json, write_json
from dicgrl.store.sealed import BEFORE, FORMAT, check_sum, read_json, read_sealed, write_sealed
from dicgrl.store.state import LearnerState

_NAMES = "names_sha256"


def read_config(path: Path, identity: str = "") -> dict[str, Any]:
    """Read what a learner is, as this version would have written it.

    Args:
        path: The file.
        identity: That of the learner whose run it must be; any unless given.

    Raises:
        DataError: It is missing, damaged, of a version that is not known or of another run.
    """
    config = read_sealed(path, {"identity": identity} if identity else None)
    if config["format"] == BEFORE:
        config |= {"format": FORMAT, "settings": _active_dim(config.get("settings"))}
    return config


def _active_dim(settings: Any) -> Any:
    """Settings in which `dim` was the length of a whole vector, as it is stored now."""
    match settings:
        case {"dim": int(dim), "components": int(count), "top": int(top)} if count > 0:
            return {**settings, "dim": dim * top // count}  # its components had one length
    return settings


def write_config(
    path: Path, state: LearnerState, about: Mapping[str, Any] | None, keep: str
) -> None:
    """Write what a learner is, without its parts.

    Args:
        path: The file; names go beside it.
        state: The learner.
        about: Further values.
        keep: Whose models stay in the folder.
    """
    config = {
        **(about or {}),
        "format": FORMAT,
        "identity": state.identity,
        "model": state.model_name,
        "strategy": state.strategy_name,
        "seed": state.seed,
        "settings": state.settings,
        "protocol": state.protocol,
        "keep": keep,
    }
    _write(path, config, state.names)


def update_names(path: Path, config: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Write names again that are no longer what they were.

    Those that the configuration named until now stay for whoever is just reading it; older ones go.
    """
    before, now = config.get(_NAMES, ""), _digest(names)
    if now == before:
        return
    _write(path, {key: value for key, value in config.items() if key != _NAMES}, names)
    needed = {_names_file(path.parent, digest) for digest in (before, now)}
    for place in set(path.parent.glob("names-*.json")) - needed:
        place.unlink(missing_ok=True)


def described(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `LearnerState` that its configuration and names give.

    Raises:
        KeyError: Something is missing in the configuration.
        DataError: The names are missing or damaged.
    """
    return {
        "identity": config["identity"],
        "model_name": config["model"],
        "strategy_name": config["strategy"],
        "seed": config["seed"],
        "settings": config["settings"],
        "protocol": config.get("protocol", {}),
        "names": _read_names(folder, config.get(_NAMES, "")),
    }


def _write(path: Path, config: Mapping[str, Any], names: Mapping[str, str]) -> None:
    digest = _digest(names)
    if digest:  # before the configuration, which says that there is a run here
        write_json(_names_file(path.parent, digest), dict(names))
    write_sealed(path, {**config, **({_NAMES: digest} if digest else {})})


def _read_names(folder: Path, digest: str) -> dict[str, str]:
    if not digest:
        return {}
    place = _names_file(folder, digest)
    if not place.exists() and (folder / "names.json").exists():  # an earlier version's
        place = folder / "names.json"
    check_sum(place, digest)
    names: dict[str, str] = read_json(place)
    return names


def _names_file(folder: Path, digest: str) -> Path:
    return folder / f"names-{digest[:8]}.json"


def _digest(names: Mapping[str, str]) -> str:
    """Checksum of the file of the names; empty where there are none."""
    return hashlib.sha256(as_json(dict(names)).encode()).hexdigest() if names else ""
