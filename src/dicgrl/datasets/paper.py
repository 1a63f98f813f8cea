"""The paper's five datasets: where the authors publish them and what appendix C counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dicgrl.datasets.pins import Pin, pins_of
from dicgrl.datasets.published import differences
from dicgrl.graph import KnowledgeStream, NetworkStream

REPOSITORY = "https://raw.githubusercontent.com/KXY-PUBLIC/DiCGRL"
REVISION = "c900674c68b8ca94543807b07d22a2981e1e0762"  # pinned: a later push cannot change results


@dataclass(frozen=True, slots=True)
class PaperDataset:
    """One dataset as the paper's appendix C describes it.

    Attributes:
        name: The dataset's name, also of its folder.
        task: Name of what it is for.
        folder: Its folder in the authors' repository.
        counts: Appendix C: one value per part for each row of the table.
        classes: Number of classes of a network.
    """

    name: str
    task: str
    folder: str
    counts: Mapping[str, tuple[int, ...]]
    classes: int | None = None

    @property
    def address(self) -> str:
        """Where the authors publish it."""
        return f"{REPOSITORY}/{REVISION}"

    @property
    def num_parts(self) -> int:
        """Number of parts."""
        return len(self.counts["train"])

    @property
    def pins(self) -> Mapping[str, Pin]:
        """What each of its files holds."""
        return pins_of(self.name)

    @property
    def files(self) -> list[str]:
        """All files of the dataset, relative to its folder."""
        if self.task == KnowledgeStream.task:
            shared: list[str] = []
            per_part = ["entity2id", "relation2id", "train", "valid", "test"]
        else:
            shared = ["features.txt", "labels.txt"]
            per_part = ["edgelist", "train", "valid", "test"]
        return shared + [f"{i}/{name}.txt" for i in range(self.num_parts) for name in per_part]

    def differences(self, description: Mapping[str, Any]) -> list[str]:
        """Where a description (see `describe`) differs from appendix C, in words."""
        found = differences(self.counts, description)
        if self.classes is not None and description.get("classes") != self.classes:
            found.append(f"{description.get('classes')} classes; published: {self.classes}")
        return found


def _knowledge(name: str, **counts: tuple[int, ...]) -> PaperDataset:
    return PaperDataset(name, KnowledgeStream.task, f"data/{name}", counts)


def _network(name: str, classes: int, **counts: tuple[int, ...]) -> PaperDataset:
    return PaperDataset(name, NetworkStream.task, f"NE/data/{name}", counts, classes)


PAPER_DATASETS = {
    dataset.name: dataset
    for dataset in (
        _knowledge(
            "FB15k-237",
            entities=(11_632, 727, 727, 727, 728),
            relations=(236, 236, 236, 236, 237),
            train=(178_274, 20_347, 23_317, 26_325, 23_852),
            valid=(11_726, 1_263, 1_382, 1_635, 1_529),
            test=(13_681, 1_556, 1_642, 1_801, 1_786),
            accumulated_entities=(11_632, 12_359, 13_086, 13_813, 14_541),
            accumulated_relations=(236, 236, 236, 236, 237),
        ),
        _knowledge(
            "WN18RR",
            entities=(32_754, 2_047, 2_047, 2_047, 2_048),
            relations=(11, 11, 11, 11, 11),
            train=(54_570, 7_442, 8_727, 8_195, 7_901),
            valid=(1_899, 269, 272, 309, 285),
            test=(1_970, 273, 321, 284, 286),
            accumulated_entities=(32_754, 34_801, 36_848, 38_895, 40_943),
            accumulated_relations=(11, 11, 11, 11, 11),
        ),
        _network(
            "cora",
            classes=7,
            nodes=(1_895, 271, 271, 271),
            edges=(2_475, 764, 1_046, 1_144),
            train=(568, 81, 81, 81),
            valid=(379, 54, 54, 54),
            test=(948, 136, 136, 136),
            accumulated_nodes=(1_895, 2_166, 2_437, 2_708),
            accumulated_edges=(2_475, 3_239, 4_285, 5_429),
        ),
        _network(
            "citeseer",
            classes=6,
            nodes=(2_328, 333, 333, 333),
            edges=(2_347, 685, 742, 958),
            train=(698, 99, 99, 99),
            valid=(466, 67, 67, 67),
            test=(1_164, 167, 167, 167),
            accumulated_nodes=(2_328, 2_661, 2_994, 3_327),
            accumulated_edges=(2_347, 3_032, 3_774, 4_732),
        ),
        _network(
            "pubmed",
            classes=3,
            nodes=(13_801, 1_972, 1_972, 1_972),
            edges=(22_287, 6_272, 7_533, 8_246),
            train=(4_140, 591, 591, 591),
            valid=(2_760, 395, 395, 395),
            test=(6_901, 986, 986, 986),
            accumulated_nodes=(13_801, 15_773, 17_745, 19_717),
            accumulated_edges=(22_287, 28_559, 36_092, 44_338),
        ),
    )
}
