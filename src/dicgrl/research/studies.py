"""Two targets of their own kind: the counts of appendix C and the case study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dicgrl.datasets import load_stream
from dicgrl.datasets.paper import PaperDataset
from dicgrl.graph import describe
from dicgrl.research.cells import Cell
from dicgrl.research.figures import draw_activation, draw_heat, short_relation
from dicgrl.research.tables import Table
from dicgrl.research.target import Content, Found, Options, Picture, Target


@dataclass(frozen=True)
class Statistics(Target):
    """Counts of streams part by part, beside the published ones; nothing is trained.

    Attributes:
        datasets: Streams with their published counts.
    """

    datasets: Sequence[PaperDataset]

    @override
    def content(self, options: Options, found: Found) -> Content:
        del options, found
        content = Content()
        wrong = 0
        for dataset in self.datasets:
            table, differences = count_table(dataset, describe(load_stream(dataset.name))["parts"])
            content.tables.append(table)
            wrong += differences
        total = sum(len(table.cells) for table in content.tables)
        content.notes.append(f"{total - wrong} of {total} rows are those of the paper.")
        return content


def count_table(dataset: PaperDataset, parts: Sequence[dict[str, Any]]) -> tuple[Table, int]:
    """Our counts beside the paper's, and in how many rows they differ."""
    header = ["", *(f"part {i}" for i in range(len(parts))), "paper", "difference"]
    table = Table(dataset.name, header)
    wrong = 0
    for row, published in dataset.counts.items():
        ours = [int(part[row]) for part in parts]
        apart = [a - b for a, b in zip(ours, published, strict=False)]
        same = ours == list(published)
        wrong += not same
        paper = "the same" if same else " ".join(f"{value:,}" for value in published)
        table.add(
            [
                row.replace("_", " "),
                *(f"{value:,}" for value in ours),
                paper,
                "0" if same else " ".join(f"{value:+,}" for value in apart),
            ],
            {"count": row, "ours": ours, "paper": list(published), "difference": apart},
        )
    return table, wrong


@dataclass(frozen=True)
class CaseStudy(Target):
    """What a newcomer activates and what an entity's relations attend to.

    Attributes:
        cell: The cell of the study.
    """

    cell: Cell
    one_seed: ClassVar[bool] = True

    @override
    def templates(self) -> list[Cell]:
        return [self.cell]

    @override
    def content(self, options: Options, found: Found) -> Content:
        runs = options.found(self.cell, found)
        if not runs:
            return Content()
        results = runs[0].results
        content = Content([activation_table(results)], notes=_notes(results))
        if results["new"]:
            content.pictures.append(
                Picture(
                    f"What {results['newcomer']} activates",
                    lambda: draw_activation(results["new"], results["newcomer"]),
                    "activation",
                )
            )
        content.pictures.append(
            Picture(
                f"Attention of the relations of {results['heat']['entity']}",
                lambda: draw_heat(results["heat"]),
                "attention",
            )
        )
        return content


def activation_table(results: dict[str, Any]) -> Table:
    """New triples and the old ones of highest merit that each activates."""
    title = f"{results['newcomer']}, new with part {results['part']} of {results['dataset']}"
    header = ["head", "relation", "tail", "", "components", "merit"]
    table = Table(title, header, labels=5)
    for entry in results["new"]:
        head, relation, tail = entry["triple"]
        used = ", ".join(entry["components"])
        table.add([head, short_relation(relation), tail, "new", used, ""], dict(entry))
        for old in entry["shown"]:
            head, relation, tail = old["triple"]
            shared = ", ".join(map(str, old["shared"]))
            cells = [head, short_relation(relation), tail, f"order {old['order']}", shared]
            table.add([*cells, f"{old['merit']:.4f}"], dict(old))
    return table


def _notes(results: dict[str, Any]) -> list[str]:
    notes = []
    for entry in results["new"]:
        head, relation, tail = entry["triple"]
        activated = entry["activated"]
        share = 100 * sum(activated.values()) / max(entry["old"], 1)
        near, around = activated["1"], entry["neighbours"]
        closed = ", ".join(sorted({short_relation(name) for name in entry["closed"]})) or "none"
        notes.append(
            f"({head}, {short_relation(relation)}, {tail}) would activate {near:,} of its "
            f"{around:,} old neighbours, and {activated['2']:,} triples of order 2: "
            f"{share:.1f}% of all old triples. Neighbours that stay closed have the relations: "
            f"{closed}."
        )
    if results["separation"] is not None:
        notes.append(
            "The chance that two relations of one domain share more components than two of "
            f"different domains is {results['separation']:.2f} (0.5 without any meaning)."
        )
    return notes
