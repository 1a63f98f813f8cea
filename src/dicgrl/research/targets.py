"""The paper's tables and figures, and some besides: datasets, models and settings of each."""

from __future__ import annotations

from dicgrl.datasets.paper import PAPER_DATASETS
from dicgrl.errors import unknown_name
from dicgrl.research.cells import FORMS, Cell
from dicgrl.research.ckge import Rivals
from dicgrl.research.forgetting_table import ForgettingTable
from dicgrl.research.growth import Ablation, EffortCurves, GrowthTable
from dicgrl.research.kinds import Curves, Panel, PartsTable, WholeTable
from dicgrl.research.rows import fair_cells, strategy_cells
from dicgrl.research.studies import CaseStudy, Statistics
from dicgrl.research.target import Target

KNOWLEDGE = ("FB15k-237", "WN18RR")
NETWORKS = ("cora", "citeseer", "pubmed")
MODELS = ("transe", "convkb")
GRAPHS = {  # the edges that messages pass: those of the released code, those that are known
    "graph=part": "newest part's edges only",
    "graph=accumulated": "all edges known so far",
}
GROWTH = ("ENTITY", "RELATION", "FACT", "HYBRID", "FB15k-237-nightly")
DECODERS = ("transe", "distmult", "complex", "rotate")
# MRR and H@10 of the best published settings of LibKGE, in per cent.
_LIBKGE = {
    "FB15k-237": ((31.3, 49.7), (34.3, 53.1), (34.8, 53.6), (33.3, 52.2)),
    "WN18RR": ((22.8, 52.0), (45.2, 53.1), (47.5, 54.7), (47.8, 55.3)),
}
EFFORTS = (1, 2, 5, 10, 20, 100)  # per cent of what retraining would process


def _with_fresh(cells: list[Cell]) -> list[Cell]:
    """The rows and those of warm and fresh, which are not the paper's."""
    first = cells[0]
    more = [Cell(first.dataset, first.model, name) for name in ("warm", "fresh")]
    return [*cells[:-2], *more, *cells[-2:]]


def _of_links(dataset: str, model: str) -> list[Cell]:
    """The rows of a knowledge graph; where its recipe has one, dicgrl's arrival alone as well."""
    cells = fair_cells(dataset, model)
    if dataset == "FB15k-237":
        cells.insert(-2, Cell(dataset, model, "arrival", "disentangled"))
    return cells


def _lines(dataset: str, model: str, *changes: str) -> dict[str, Cell]:
    return {str(cell.strategy): cell for cell in strategy_cells(dataset, model, *changes)}


def _sensitive(components: int, top: int) -> Cell:
    changes = (f"components={components}", f"top={top}")
    return Cell("cora", "gat", "dicgrl", "disentangled", changes=changes)


def _growing(dataset: str, strategy: str, *changes: str, divided: bool = False) -> Cell:
    """A cell of a stream that grows; in divided vectors a triple uses what plain ones have."""
    if not divided:
        return Cell(dataset, "transe", strategy, changes=changes)
    return Cell(dataset, "transe", strategy, "disentangled", changes=("dim=200", *changes))


def growth_rows(dataset: str) -> dict[str, Cell]:
    """Retraining and what updates instead."""
    rows = {name: _growing(dataset, name) for name in ("upper", "warm", "fresh")}
    return rows | {"dicgrl": _growing(dataset, "dicgrl", divided=True)}


def ablation_rows(dataset: str) -> dict[str, Cell]:
    """Each ingredient of fresh and of dicgrl, on and off."""
    rows = {name: _growing(dataset, name) for name in ("upper", "fresh")}
    for change in ("start=random", "passes=3", "passes=30", "old_pace=1"):
        rows[f"fresh, {change}"] = _growing(dataset, "fresh", change)
    rows["fresh, divided"] = _growing(dataset, "fresh", divided=True)
    rows["dicgrl"] = _growing(dataset, "dicgrl", divided=True)
    for changes in (
        ("components=1", "top=1"),
        ("selection=even",),
        ("shield=0",),
        ("arrive_epochs=0",),
        ("start=random",),
    ):
        label = f"dicgrl, {' '.join(changes)}"
        rows[label] = _growing(dataset, "dicgrl", *changes, divided=True)
    return rows


_ALL = (
    PartsTable(
        "table1",
        "Link prediction after the last part",
        "Table 1",
        {"Knowledge graphs": [c for d in KNOWLEDGE for m in MODELS for c in _of_links(d, m)]},
        "hits@10",
    ),
    PartsTable(
        "table2",
        "Node classification after the last part",
        "Table 2",
        {
            f"Networks, {words}": [c for d in NETWORKS for c in fair_cells(d, "gat", graph)]
            for graph, words in GRAPHS.items()
        },
        "accuracy",
    ),
    WholeTable(
        "table3",
        "Link prediction, all parts merged",
        "Table 3, appendix A",
        [Cell(d, m, form=form) for d in KNOWLEDGE for m in MODELS for form in FORMS],
        ("mrr", "hits@10"),
    ),
    WholeTable(
        "table4",
        "Node classification, all parts merged",
        "Table 4, appendix A",
        [Cell(d, "gat", form=form) for d in NETWORKS for form in FORMS[:2]],
        ("accuracy",),
    ),
    Statistics(
        "stats",
        "Statistics of the datasets",
        "Tables 5 and 6, appendix C",
        tuple(PAPER_DATASETS[name] for name in (*KNOWLEDGE, *NETWORKS)),
    ),
    Curves(
        "curves",
        "Average performance after each part",
        "Figures 4, 5 and 9",
        [
            Panel(f"{d}, {m}", _lines(d, m), metric, "links", paper=metric == "hits@10")
            for d in KNOWLEDGE
            for m in MODELS
            for metric in ("hits@10", "mrr")
        ]
        + [
            Panel(f"{d}, {words}", _lines(d, "gat", graph), "accuracy", "nodes", paper=True)
            for d in NETWORKS
            for graph, words in GRAPHS.items()
        ],
    ),
    Curves(
        "sensitivity",
        "Sensitivity to K and n",
        "Figure 6",
        [
            Panel(
                "cora, n = 2",
                {f"K = {k}": _sensitive(k, 2) for k in (2, 4, 6, 8, 10)},
                "accuracy",
            ),
            Panel(
                "cora, K = 8",
                {f"n = {n}": _sensitive(8, n) for n in (1, 2, 4, 6, 8)},
                "accuracy",
            ),
        ],
    ),
    Curves(
        "time",
        "Seconds of learning",
        "Figure 7",
        [
            Panel(
                "FB15k-237, transe",
                _lines("FB15k-237", "transe"),
                "seconds",
                quality="hits@10",
            )
        ],
    ),
    CaseStudy(
        "case",
        "Case study",
        "Figure 8",
        Cell(
            "FB15k-237",
            "transe",
            "dicgrl",
            "disentangled",
            changes=("orders=2",),  # what the paper's figure shows
            case=("Robert Clohessy", "United Kingdom", "Jack Huston", "Dominic Chianese"),
        ),
    ),
)
_BEYOND = (
    PartsTable(
        "films",
        "The built-in films after the last part",
        "",
        {"Films": _with_fresh(fair_cells("films", "transe"))},
        "hits@10",
    ),
    WholeTable(
        "decoders",
        "Decoders, all parts merged",
        "",
        [Cell(d, m) for d in KNOWLEDGE for m in DECODERS],
        ("mrr", "hits@1", "hits@10"),
        "LibKGE",
        {
            (dataset, model): {"mrr": mrr, "hits@10": hits}
            for dataset, rows in _LIBKGE.items()
            for model, (mrr, hits) in zip(DECODERS, rows, strict=True)
        },
    ),
    GrowthTable("growth", "Kinds of growth", "", {name: growth_rows(name) for name in GROWTH}),
    EffortCurves(
        "growth-effort",
        "Kinds of growth, quality over effort",
        "",
        {name: _growing(name, "upper") for name in GROWTH},
        {name: {s: _growing(name, s) for s in ("fresh", "warm")} for name in GROWTH},
        EFFORTS,
        "fresh",
    ),
    ForgettingTable(
        "forgetting",
        "Wrong facts, learned and replaced",
        "",
        tuple(Cell(name, "transe", "fresh", wrong=5.0) for name in ("films", "FB15k-237")),
    ),
    Rivals("ckge", "Continual embeddings of knowledge graphs, and all rivals", "", GROWTH[:4]),
    Ablation("ablation", "What each ingredient earns", "", {n: ablation_rows(n) for n in GROWTH}),
)
TARGETS: dict[str, Target] = {target.name: target for target in (*_ALL, *_BEYOND)}


def targets(name: str) -> list[Target]:
    """The target of a name; for `all` every target of the paper.

    Example:
        >>> [target.where for target in targets("table1")]
        ['Table 1']
    """
    if name == "all":
        return list(_ALL)
    if name not in TARGETS:
        raise unknown_name("target", name, [*TARGETS, "all"])
    return [TARGETS[name]]
