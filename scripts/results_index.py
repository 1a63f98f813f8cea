"""The index of docs/results.md: one line per claim, with its number and the section that shows it.

Numbers are computed from the measured files, so that the index always agrees with the tables below
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Report = dict[str, Any]
Claim = tuple[str, str]  # what is claimed, and the number that shows it


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading.

    Args:
        heading: Its text, without the signs before it.

    Example:
        >>> slug("Does disentangling mean something?")
        'does-disentangling-mean-something'
    """
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def heading_of(report: Report) -> str:
    """The heading of a reproduced section."""
    recipe = f", recipe {report['recipe']}" if report["recipe"] else ""
    return f"{report['title']}{recipe}"


def claims_of(report: Report) -> list[Claim]:
    """What a reproduced target shows; its title alone where it is not finished.

    Args:
        report: What `dicgrl reproduce` writes as JSON.
    """
    make = _CLAIMS.get((report["target"], report["recipe"]))
    try:
        return [] if make is None else make(report)
    except LookupError:  # filled in part: the rows that the claim is about are not there yet
        return [(report["title"], "")]


def index(entries: Iterable[tuple[Claim, str]]) -> str:
    """The index, as Markdown.

    Args:
        entries: Each claim and the heading of the section that shows it.
    """
    lines = ["| claim | number | section |", "| --- | --- | --- |"]
    for (claim, number), heading in entries:
        lines.append(f"| {claim} | {number} | [{heading}](#{slug(heading)}) |")
    return "\n".join(["## Index", "", *lines])


def merged_links(gaps: Sequence[float]) -> Claim:
    """How often the paper is reached on merged graphs.

    Args:
        gaps: Our MRR minus the paper's in each row, then the same of H@10.
    """
    rows = len(gaps) // 2
    mrr, hits = (sum(gap >= 0 for gap in part) for part in (gaps[:rows], gaps[rows:]))
    claim = "On merged graphs TransE and ConvKB mostly reach the paper's numbers"
    return claim, f"MRR in {mrr} of {rows} rows, H@10 in {hits} of {rows}"


def merged_nodes(rows: Sequence[tuple[float, float | None]]) -> Claim:
    """How often the paper is reached on merged networks.

    Args:
        rows: Our accuracy, and the paper's where it has one.
    """
    compared = [(ours, paper) for ours, paper in rows if paper is not None]
    reached = sum(ours >= paper for ours, paper in compared)
    claim = "On merged networks GAT reaches some of the paper's numbers"
    return claim, f"{reached} of {len(compared)} rows"


def aspects(rows: Sequence[Report]) -> Claim:
    """What routing finds.

    Args:
        rows: What benchmarks/aspects.py wrote.
    """
    learned, published = (
        " and ".join(
            f"{row['measured']['separation']['mean']:.2f}"
            for row in rows
            if row["routing"] == routing
        )
        for routing in ("learned", "published")
    )
    claim = "Learned routing finds the aspects of relations in part, published routing not at all"
    return claim, f"separation {learned}; published routing {published} (0.5 is chance)"


def activation(rows: Sequence[Report]) -> Claim:
    """How much of the history the paper's components activate.

    Args:
        rows: What benchmarks/activation_share.py wrote.
    """
    share = _row(rows, components="4 of 8", graph="FB15k-237")["order 1 or 2"]
    claim = "With the paper's components a part activates nearly the whole history"
    return claim, f"{share} % of FB15k-237"


def _row(rows: Sequence[Report], **wanted: str) -> Report:
    for row in rows:
        if all(row.get(key) == value for key, value in wanted.items()):
            return row
    raise LookupError(wanted)


def _mean(rows: Sequence[Report], metric: str, **wanted: str) -> float:
    value: float = _row(rows, **wanted)[metric]["mean"]
    return value


def _of_upper(rows: Sequence[Report]) -> str:
    """A and W of dicgrl in per cent of upper's, for each graph and model."""
    found = []
    for dataset, model in dict.fromkeys((row["dataset"], row["model"]) for row in rows):
        shares = (
            100
            * _mean(rows, judged, dataset=dataset, model=model, strategy="dicgrl")
            / _mean(rows, judged, dataset=dataset, model=model, strategy="upper")
            for judged in ("average", "whole")
        )
        row = _row(rows, dataset=dataset, model=model, strategy="dicgrl")
        number = " / ".join(f"{share:.1f}" for share in shares)
        found.append(f"{number} % ({dataset}, {model}{_stage([row])})")
    if not found:
        raise LookupError("no rows")
    return ", ".join(found)


def _stage(rows: Sequence[Report]) -> str:
    """What rows were measured with, where it was less than the strategy does."""
    return "".join(f", {stage}" for stage in sorted({r["stage"] for r in rows if "stage" in r}))


def _span(values: Sequence[float], digits: int = 1) -> str:
    if not values:
        raise LookupError("no rows")
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def _compared(report: Report) -> str:
    """How many of the paper's numbers are reached, from the report's own sentence."""
    found: list[str] = [note for note in report["notes"] if "reached in " in note]
    if not found:
        raise LookupError("nothing is compared")
    return found[0].rpartition("reached in ")[2].rstrip(".")


def _parts_of_links(report: Report) -> list[Claim]:
    (table,) = report["tables"]
    rows = table["rows"]
    kept = {
        name: _span([row["retention"]["mean"] for row in rows if row["strategy"] == name])
        for name in ("dicgrl", "upper")
    }
    return [
        ("dicgrl comes close to retraining: A / W in per cent of upper's", _of_upper(rows)),
        (
            "dicgrl keeps the first part's answers better than retraining does",
            f"retention {kept['dicgrl']} % (FB15k-237{_stage(rows)}), upper {kept['upper']} %",
        ),
        ("Most of the paper's numbers are reached or exceeded", _compared(report)),
    ]


def _parts_of_links_as_published(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    found = _row(rows, dataset="FB15k-237", model="transe", strategy="dicgrl")
    number = "FB15k-237: " + ", ".join(
        f"{name} {found[judged]['mean']:.1f} (paper {found[judged]['paper']:.1f})"
        for name, judged in (("A", "average"), ("W", "whole"))
    )
    replayed = f"{found['replayed']['mean']:,.0f} old triples replayed"
    return [
        ("As published, the method reaches the paper's W, but not its A", number),
        ("As published, the method replays nearly everything", replayed),
    ]


def _parts_of_networks(report: Report) -> list[Claim]:
    rows = report["tables"][1]["rows"]  # all edges known so far
    frozen, upper = (
        " / ".join(
            f"{_mean(rows, judged, dataset='cora', strategy=name):.1f}"
            for judged in ("average", "whole")
        )
        for name in ("frozen", "upper")
    )
    return [
        (
            "On networks dicgrl is on a par with retraining: A / W in per cent of upper's",
            _of_upper(rows),
        ),
        (
            "On networks a model that is never updated is hard to beat",
            f"Cora: A / W {frozen}, upper {upper}",
        ),
    ]


def _parts_of_networks_as_published(report: Report) -> list[Claim]:
    rows = report["tables"][1]["rows"]
    ours, frozen = (
        _mean(rows, "whole", dataset="cora", strategy=name) for name in ("dicgrl", "frozen")
    )
    number = f"Cora: W {ours:.1f}, frozen {frozen:.1f}"
    return [("With all edges the published update loses accuracy", number)]


def _merged_links(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    forms = {"relations": "disentangled", "nodes": "disentangled-nodes"}
    forms["triples"] = "disentangled-triple"
    number = ", ".join(
        f"{words} {_mean(rows, 'mrr', dataset='WN18RR', model='convkb', form=form):.1f}"
        for words, form in forms.items()
    )
    claim = "Of the three forms of attention, that of relations is best"
    return [(claim, f"WN18RR, ConvKB, MRR: {number}")]


def _merged_networks(report: Report) -> list[Claim]:
    claim = "On merged networks plain and disentangled GAT reach some of the paper's numbers"
    return [(claim, _compared(report))]


def _statistics(report: Report) -> list[Claim]:
    return [("The datasets are those of the paper", report["notes"][0].rstrip("."))]


def _curves(report: Report) -> list[Claim]:
    lines = report["tables"][0]["rows"]
    number = ", ".join(
        f"{name} {parts[0]['mean']:.1f} to {parts[-1]['mean']:.1f}"
        for name in ("dicgrl", "upper", "emr")
        for parts in [_row(lines, line=name)["parts"]]
    )
    claim = "From the first part to the last, dicgrl loses far less than replay alone"
    return [(claim, f"FB15k-237, TransE{_stage(lines)}, A: {number}")]


def _sensitivity(report: Report) -> list[Claim]:
    lines = report["tables"][1]["rows"]
    number = ", ".join(
        f"{name}: {_row(lines, line=name)['parts'][-1]['mean']:.1f}"
        for name in ("n = 1", "n = 4", "n = 8")
    )
    return [("One component is too few; from four on it hardly matters", f"Cora, K = 8, {number}")]


def _seconds(report: Report) -> list[Claim]:
    (table,) = report["tables"]
    spans = {
        name: _span([p["mean"] for p in _row(table["rows"], line=name)["parts"][1:]], digits)
        for name, digits in (("dicgrl", 2), ("upper", 1))
    }
    number = (
        f"FB15k-237, H200{_stage(table['rows'])}: {spans['dicgrl']} s, upper {spans['upper']} s"
    )
    return [("A later part takes a small share of retraining's time", number)]


def _case(report: Report) -> list[Claim]:
    first = report["tables"][0]["rows"][0]
    number = f"{first['activated']['1']} of {first['neighbours']} old neighbours activated"
    claim = "The published rule would activate most neighbours of a newcomer (2 of 8 components)"
    return [(claim, number)]


def _films(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    number = ", ".join(
        f"{name} {_mean(rows, 'whole', strategy=name):.1f}" for name in ("dicgrl", "emr", "upper")
    )
    return [("On the built-in films dicgrl lies between replay and retraining", f"W: {number}")]


def _share(row: Report, metric: str = "whole_share") -> float:
    value: float | None = row[metric]["mean"]
    if value is None:
        raise LookupError("retraining is not finished")
    return value


def _shares(rows: Sequence[Report], **wanted: str) -> str:
    """The span of W MRR in per cent of upper's."""
    chosen = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return _span([_share(row) for row in chosen])


def _growth(report: Report) -> list[Claim]:
    rows = [row for row in report["tables"][0]["rows"] if row["strategy"] == "fresh"]
    found = [
        f"{_share(row):.1f} % with {_share(row, 'positives_share'):.1f} % of the positives "
        f"({row['dataset']})"
        for row in rows
    ]
    if not found:
        raise LookupError("no rows")
    claim = "fresh compared with retraining on five kinds of growth: W MRR in per cent of upper's"
    return [(claim, ", ".join(found))]


def _ablation(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    fresh, dicgrl = (_shares(rows, variant=name) for name in ("fresh", "dicgrl"))
    claim = "What each ingredient gains on five kinds of growth: W MRR in per cent of upper's"
    return [(claim, f"fresh {fresh} %, dicgrl {dicgrl} %")]


def _effort(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    fresh, warm = (_shares(rows, strategy=name, effort="10%") for name in ("fresh", "warm"))
    claim = "fresh and warm at a tenth of retraining's positives: W MRR in per cent of upper's"
    return [(claim, f"fresh {fresh} %, warm {warm} %")]


def _continual(report: Report) -> list[Claim]:
    rows = [
        row
        for table in report["tables"]
        for row in table["rows"]
        if table["title"].startswith("With equal care") and row["protocol"] == "snapshot"
    ]
    best: dict[str, float] = {}
    for row in rows:
        known = row["whole"]["mrr"]["paper"]
        if known is not None:
            best[row["dataset"]] = max(known, best.get(row["dataset"], 0.0))
    found = [
        f"{row['dataset']} {row['whole']['mrr']['mean']:.1f} ({best[row['dataset']]:.1f})"
        for row in rows
        if row["strategy"] == "fresh" and row["dataset"] in best
    ]
    if not found:
        raise LookupError("no rows")
    claim = "W MRR of fresh where continual embeddings are compared (the best that was published)"
    return [(claim, ", ".join(found))]


def _decoders(report: Report) -> list[Claim]:
    claim = "Two kinds of decoder reach LibKGE's numbers, products do not"
    return [(claim, _compared(report))]


def _forgetting(report: Report) -> list[Claim]:
    rows = report["tables"][0]["rows"]
    found = {row["model"]: row for row in rows if row["dataset"] == "films"}
    if not found:
        raise LookupError("no rows")
    number = ", ".join(
        f"{kind} {found['replaced'][kind]['hits@10']['mean']:.1f} and "
        f"{found['never'][kind]['hits@10']['mean']:.1f}"
        for kind in ("removed", "kept", "added", "test")
    )
    claim = "A model that replaced wrong facts is close to one that never saw them"
    return [(claim, f"H@10, films: {number}")]


_CLAIMS: dict[tuple[str, str | None], Callable[[Report], list[Claim]]] = {
    ("table1", "best"): _parts_of_links,
    ("table1", "paper"): _parts_of_links_as_published,
    ("table2", "best"): _parts_of_networks,
    ("table2", "paper"): _parts_of_networks_as_published,
    ("table3", "best"): _merged_links,
    ("table4", "best"): _merged_networks,
    ("stats", None): _statistics,
    ("curves", "best"): _curves,
    ("sensitivity", "best"): _sensitivity,
    ("time", "best"): _seconds,
    ("case", "best"): _case,
    ("films", "best"): _films,
    ("growth", "best"): _growth,
    ("growth-effort", "best"): _effort,
    ("ablation", "best"): _ablation,
    ("ckge", "best"): _continual,
    ("forgetting", "best"): _forgetting,
    ("decoders", "best"): _decoders,
}
