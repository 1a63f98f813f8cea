"""Where datasets are looked for, and in which order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dicgrl.datasets.locate import cache_folder, find_dataset, find_names
from dicgrl.errors import UserError

ARCHIVES = ["cora.tar.gz", "cora.tgz", "cora.tar.xz", "cora.tar"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("DICGRL_DATA", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and no variable that says where caches are."""
    for variable in ("DICGRL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_variable_names_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DICGRL_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="each system has its own place")
def test_cache_on_linux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == home / ".cache" / "dicgrl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert cache_folder() == home / "xdg" / "dicgrl"
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # set but empty counts as unset
    assert cache_folder() == home / ".cache" / "dicgrl"


def test_other_systems_keep_the_cache_where_it_was(home: Path) -> None:
    mac = pytest.importorskip("platformdirs.macos").MacOS("dicgrl", appauthor=False)
    assert mac.user_cache_path == home / "Library" / "Caches" / "dicgrl"


def test_a_machine_without_platformdirs_has_a_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert cache_folder() == home / ".cache" / "dicgrl"


def test_an_empty_variable_counts_as_unset(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DICGRL_CACHE", "")
    monkeypatch.setenv("DICGRL_DATA", "")
    assert cache_folder() == home / ".cache" / "dicgrl"
    assert find_dataset("cora") is None


def test_nothing_is_found_in_empty_folders(data: Path) -> None:
    assert find_dataset("cora") is None
    assert find_names("cora") is None


def test_a_cache_that_does_not_exist_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DICGRL_DATA", raising=False)
    monkeypatch.setenv("DICGRL_CACHE", str(tmp_path / "never made"))
    assert find_dataset("cora") is None
    assert not (tmp_path / "never made").exists()


def test_a_folder_is_found(data: Path) -> None:
    (data / "cora").mkdir()
    assert find_dataset("cora") == data / "cora"
    assert find_dataset("pubmed") is None


@pytest.mark.parametrize("archive", ARCHIVES)
def test_an_archive_is_found(data: Path, archive: str) -> None:
    (data / archive).touch()
    assert find_dataset("cora") == data / archive


@pytest.mark.parametrize("other", ["cora.zip", "cora.tar.gz.part", ".cora.partial", "xcora.tar"])
def test_other_names_are_not_the_dataset(data: Path, other: str) -> None:
    (data / other).touch()
    (cache_folder() / other).mkdir()
    assert find_dataset("cora") is None


def test_a_folder_counts_before_its_archive(data: Path) -> None:
    (data / "cora.tar.gz").touch()
    (data / "cora").mkdir()
    assert find_dataset("cora") == data / "cora"


def test_the_data_folder_counts_before_the_cache(data: Path) -> None:
    (cache_folder() / "cora").mkdir()
    assert find_dataset("cora") == cache_folder() / "cora"
    (data / "cora.tar.gz").touch()
    assert find_dataset("cora") == data / "cora.tar.gz"


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz"])
def test_names_lie_beside_the_dataset(data: Path, ending: str) -> None:
    in_cache = cache_folder() / f"WN18RR-labels.{ending}"
    in_cache.touch()
    found = find_names("WN18RR")
    assert found is not None and found.label == str(in_cache)
    in_data = data / f"WN18RR-labels.{ending}"
    in_data.touch()
    found = find_names("WN18RR")
    assert found is not None and found.label == str(in_data)


def test_a_data_variable_that_is_no_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (cache_folder() / "cora").mkdir()  # not used silently instead
    for wrong in (tmp_path / "absent", tmp_path / "file"):
        monkeypatch.setenv("DICGRL_DATA", str(wrong))
        for find in (find_dataset, find_names):
            with pytest.raises(UserError, match="DICGRL_DATA") as error:
                find("cora")
            assert str(wrong) in str(error.value)
