"""Files among the data that are not read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dicgrl import DataError, DataWarning, KnowledgeStream, read_stream
from dicgrl.graph import SPLITS
from tests.readers.small_graph import (
    put,
    read_knowledge,
)
from tests.streams import labelled


class TestStrays:
    """What lies among the data and is not read."""

    def read(self, root: Path, *names: str) -> KnowledgeStream:
        for name in names:
            put(root / name, "a,r,b" if ".csv" in name else "a\tr\tb")
        return read_knowledge(root)

    @pytest.mark.parametrize("names", [("0/train.txt", "1.tsv"), ("0.tsv", "1/train.txt")])
    def test_folders_and_files(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        with pytest.raises(DataError, match="parts must be all folders, or all files"):
            self.read(tmp_path, *names)

    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt"])
    @pytest.mark.parametrize(
        "stray",
        [
            "1 (1).tsv",
            "2024-01-02.csv",
            "part2.txt.gz",
            "1.tsv.bz2",
            "1 copy/train.txt",
            "d3/TRAIN.csv",
        ],
    )
    def test_what_is_called_like_a_part(self, tmp_path: Path, first: str, stray: str) -> None:
        said = re.escape(f"'{stray.split('/')[0]}' looks like a part, but would not be read")
        with pytest.raises(DataError, match=f"^{tmp_path}: {said}"):
            self.read(tmp_path, first, stray)

    @pytest.mark.parametrize(
        ("stray", "name"),
        [
            ("dev.txt", "valid.txt"),
            ("vaild.tsv.gz", "valid.tsv.gz"),
            ("Validation.csv", "valid.csv"),
            ("val.txt", "valid.txt"),
            ("tests.txt", "test.txt"),
            ("testing.txt", "test.txt"),
        ],
    )
    def test_what_is_called_almost_like_a_set(self, tmp_path: Path, stray: str, name: str) -> None:
        for first in ("many/0", "one"):
            folder = tmp_path / first
            put(folder / "train.txt", "a\tr\tb")
            put(folder / stray, "a\tr\tb")
            said = rf"^{folder}: '{stray}' is not read; call it {name}, or move it away$"
            with pytest.raises(DataError, match=said):
                read_stream(tmp_path / first.split("/")[0])

    def test_training_without_train(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"'training\.txt' is not read; call it train\.txt"):
            self.read(tmp_path, "0/training.txt")

    def test_others_are_named_in_one_warning(self, tmp_path: Path) -> None:
        parts = [f"{i}/{split}.txt" for i in range(2) for split in SPLITS]
        strays = ["notes.txt", "0/dev.txt", "0/text_emnlp.txt", "1/labels.tsv", "1/train_small.csv"]
        with pytest.warns(DataWarning) as caught:
            stream = self.read(tmp_path, *parts, *strays)
        assert [str(w.message) for w in caught] == [f"{tmp_path}: not read: {', '.join(strays)}"]
        assert labelled(stream)[0]["valid"] == [("a", "r", "b")]
        with pytest.warns(
            DataWarning, match=r"not read: a\.txt, b\.txt, notes\.txt, 0/dev\.txt, .*, \.\.\.$"
        ):
            self.read(tmp_path, "a.txt", "b.txt")

    @pytest.mark.parametrize("name", ["sha256.txt", "WN18.txt", "stats_v2.csv", "3rdparty.txt"])
    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt"])
    def test_a_number_makes_no_part(self, tmp_path: Path, first: str, name: str) -> None:
        with pytest.warns(DataWarning, match=f"not read: {re.escape(name)}$"):
            assert len(self.read(tmp_path, first, name)) == 1

    @pytest.mark.parametrize("name", ["invalid.txt", "text.txt", "latest.txt", "rest.txt"])
    def test_other_words_are_no_sets(self, tmp_path: Path, name: str) -> None:
        with pytest.warns(DataWarning, match=f"not read: 0/{re.escape(name)}$"):
            self.read(tmp_path, "0/train.txt", f"0/{name}")

    def test_beside_files(self, tmp_path: Path) -> None:
        with pytest.warns(DataWarning, match=r": not read: notes\.tsv, train\.txt$"):
            self.read(tmp_path, "0.tsv", "notes.tsv", "train.txt")

    @pytest.mark.parametrize("first", ["0.tsv", "0/train.txt", "train.txt"])
    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_what_is_for_people_or_other_programs(self, tmp_path: Path, first: str) -> None:
        harmless = ["README.txt", "Readme.md", "LICENSE.txt", "licence.txt", ".1.tsv", "1.png"]
        harmless += ["CITATION.txt", "train2id.txt", "stats.json", ".git/1.tsv", "old/1.tsv"]
        place = Path(first).parent
        put(tmp_path / "labels.tsv", "a\tAlien")
        files = [first, *harmless, *(str(place / name) for name in harmless)]
        assert self.read(tmp_path, *files).names == {"a": "Alien"}

    @pytest.mark.filterwarnings("error::dicgrl.DataWarning")
    def test_the_same_file_compressed(self, tmp_path: Path) -> None:
        assert len(self.read(tmp_path, "0/train.txt", "0/train.txt.gz")) == 1
