"""Streams of FB15k-237 that grow in other ways than the paper's partition.

Four are those of the LKGE benchmark (Cui et al., AAAI 2023), on which continual embeddings of
knowledge graphs are compared; FastKGE's authors publish them as files. The nightly one is made of
the paper's FB15k-237, all parts merged and split anew: a first part of 75 %, then forty small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dicgrl.datasets.pins import Pin, pins_of
from dicgrl.datasets.published import differences
from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, Stream

REPOSITORY = "https://raw.githubusercontent.com/seukgcode/FastKGE"
REVISION = "53235b8e62d2e7eb932eba5ba06b3969d968d74d"  # pinned: a later push cannot change results


@dataclass(frozen=True, slots=True)
class LKGEDataset:
    """A stream of the LKGE benchmark.

    Attributes:
        name: Its name, also of its folder.
        about: What arrives.
        counts: New entities and triples of each part.
    """

    name: str
    about: str
    counts: Mapping[str, tuple[int, ...]]

    @property
    def folder(self) -> str:
        """Its folder in the repository."""
        return f"data/{self.name}"

    @property
    def address(self) -> str:
        """Where FastKGE's authors publish it."""
        return f"{REPOSITORY}/{REVISION}"

    @property
    def files(self) -> list[str]:
        """All files of the dataset, relative to its folder."""
        parts = range(len(self.counts["train"]))
        return [f"{i}/{split}.txt" for i in parts for split in SPLITS]

    @property
    def pins(self) -> Mapping[str, Pin]:
        """What each of its files holds."""
        return pins_of(self.name)

    def differences(self, description: Mapping[str, Any]) -> list[str]:
        """Where a description (see `describe`) differs from the published counts, in words."""
        return differences(self.counts, description)

    def check(self, stream: Stream) -> None:
        """Refuse what has the name but not the counts.

        Raises:
            UserError: It is another stream.
        """
        splits = {split: self.counts[split] for split in SPLITS}
        found = {
            split: tuple(len(getattr(part, split)) for part in stream.parts) for split in splits
        }
        for split, published in splits.items():
            if found[split] != published:
                raise UserError(
                    f"what lies under the name {self.name} is not the published stream: "
                    f"{split} {found[split]}, published {published}; name data of your own by its "
                    f"path, such as ./{self.name}"
                )


@dataclass(frozen=True, slots=True)
class DerivedDataset:
    """A stream that is made of another dataset whenever it is asked for.

    Attributes:
        name: Its name.
        about: What arrives.
        source: The dataset that it is made of, all parts merged.
        by: The way to split.
        parts: How many parts.
        first: Share of the first part.
        seed: Seed of the split.
    """

    name: str
    about: str
    source: str
    by: str
    parts: int
    first: float
    seed: int = 0

    def make(self, stream: Stream) -> Stream:
        """The stream, of its source."""
        return stream.split(self.by, parts=self.parts, first=self.first, seed=self.seed)


LKGE_DATASETS = {
    dataset.name: dataset
    for dataset in (
        LKGEDataset(
            "ENTITY",
            "FB15k-237 of LKGE: entities arrive",
            {
                "entities": (2_909, 2_908, 2_908, 2_908, 2_908),
                "train": (27_832, 43_265, 44_269, 42_302, 28_394),
                "valid": (9_278, 14_423, 14_758, 14_102, 9_466),
                "test": (9_278, 14_423, 14_758, 14_102, 9_466),
            },
        ),
        LKGEDataset(
            "RELATION",
            "FB15k-237 of LKGE: relations arrive",
            {
                "entities": (11_561, 1_783, 411, 632, 154),
                "train": (59_291, 56_119, 39_680, 18_018, 12_956),
                "valid": (19_764, 18_708, 13_228, 6_007, 4_319),
                "test": (19_764, 18_708, 13_228, 6_007, 4_319),
            },
        ),
        LKGEDataset(
            "FACT",
            "FB15k-237 of LKGE: facts arrive",
            {
                "entities": (10_513, 2_266, 807, 308, 647),
                "train": (37_214, 37_213, 37_213, 37_213, 37_213),
                "valid": (12_405,) * 5,
                "test": (12_405,) * 5,
            },
        ),
        LKGEDataset(
            "HYBRID",
            "FB15k-237 of LKGE: all three arrive",
            {
                "entities": (8_631, 1_412, 2_737, 1_615, 146),
                "train": (34_535, 12_523, 52_809, 62_003, 24_194),
                "valid": (11_513, 4_175, 17_604, 20_668, 8_066),
                "test": (11_513, 4_175, 17_604, 20_668, 8_066),
            },
        ),
    )
}
DERIVED_DATASETS = {
    dataset.name: dataset
    for dataset in (
        DerivedDataset(
            "FB15k-237-nightly",
            "FB15k-237: 75 %, then 40 small parts",
            source="FB15k-237",
            by="nightly",
            parts=41,
            first=0.75,
        ),
    )
}
