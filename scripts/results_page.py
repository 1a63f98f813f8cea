"""Write docs/results.md and its pictures from the measured files in docs/results.

    python scripts/results_page.py

Numbers come from the files; only the date, which no file holds, is said here. The paper's tables
and figures have a section for each reproduce-*.json, which `dicgrl reproduce` writes: copy it with
its SVG to docs/results. Comments on reproduce-X.json go to notes-X.md beside it, with the sources
of their numbers (docs_numbers.py). results_index.py makes the index at the top, results_studies.py
the sections on routing and activation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # whoever runs this file: its neighbours are here

import results_index
from results_studies import (
    ACTIVATION,
    ACTIVATION_TITLE,
    ASPECT_TITLE,
    ASPECTS,
    TRIALS_TITLE,
    activation_section,
    aspect_section,
    trial_claim,
    trial_sections,
)
from results_text import all_of, filled, table

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINKS = "link-prediction-whole.jsonl"
CURVES = "link-prediction-whole.png"
NODES = "node-classification-whole.json"
TRIED = "archive/tried-merged.md"
LINK_TITLE = "Link prediction, merged graph"
NODE_TITLE = "Node classification, merged graph"
MEASURED = "15 November 2026, several runs at a time on the one card"
DATASETS = ("FB15k-237", "WN18RR")
MODELS = {"transe": "TransE", "convkb": "ConvKB", "gat": "GAT", "sage": "GraphSAGE"}
Result = dict[str, Any]


def page(folder: Path) -> str:
    """The page, as Markdown.

    Args:
        folder: The folder with the measured files.
    """
    links, aspects = read_links(folder), _json(folder / ASPECTS)
    shares, stored = _json(folder / ACTIVATION), read_reports(folder)
    nodes = _json(folder / NODES) if (folder / NODES).is_file() else []
    trials = [_json(path) for path in sorted(folder.glob("trials-*.json"))]
    sections = [_HEAD, index_section(links, nodes, aspects, shares, trials, stored)]
    sections += link_sections(links)
    if nodes:
        sections.append(node_section(nodes))
    sections += [aspect_section(aspects), activation_section(shares), *trial_sections(folder)]
    sections += reproduced_sections(folder, stored)
    return "\n\n".join(sections) + "\n"


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


_HEAD = """\
# Results: measured numbers beside the published ones

Written by `python scripts/results_page.py` from the files in [results/](results). Numbers are in
per cent unless said otherwise; a difference is ours minus the paper's."""


def index_section(
    links: Sequence[Result],
    nodes: Sequence[Result],
    aspects: Sequence[Result],
    shares: Sequence[Result],
    trials: Sequence[Result],
    stored: Sequence[Result],
) -> str:
    """One line per claim of the page, in its order."""
    gaps = [gap(result, metric) for metric in ("mrr", "hits@10") for result in links]
    entries = [(results_index.merged_links(gaps), LINK_TITLE)]
    if nodes:
        compared = [(accuracy(row), published_accuracy(row)) for row in nodes]
        entries.append((results_index.merged_nodes(compared), NODE_TITLE))
    entries.append((results_index.aspects(aspects), ASPECT_TITLE))
    entries.append((results_index.activation(shares), ACTIVATION_TITLE))
    for file in trials:
        title = f"{TRIALS_TITLE}: {file['dataset']}, {file['model']}"
        entries.append((trial_claim(file), title))
    for report in stored:
        heading = results_index.heading_of(report)
        entries += [(claim, heading) for claim in results_index.claims_of(report)]
    return results_index.index(entries)


def read_links(folder: Path) -> list[Result]:
    """The results of link prediction in the order of the paper's table."""
    lines = (folder / LINKS).read_text(encoding="utf-8").splitlines()
    return sorted(
        (json.loads(line) for line in lines),
        key=lambda result: (
            DATASETS.index(result["dataset"]),
            list(MODELS).index(result["model"]),
            is_disentangled(result),
        ),
    )


def is_disentangled(result: Result) -> bool:
    """Whether vectors were divided into components."""
    return bool(result["settings"]["components"])


def form_of(result: Result) -> str:
    """The form of a model in words."""
    from dicgrl.models.components import Components  # it takes PyTorch seconds to load

    settings = result["settings"]
    if not is_disentangled(result):
        return f"plain, d = {settings['dim']}"
    count, top = settings["components"], settings["top"]
    size = Components(count, top).size(settings["dim"])
    return f"K = {count}, n = {top}: {top * size} of d = {count * size}"


def is_current(result: Result) -> bool:
    """Whether the recipe still says what the result was measured with."""
    from dicgrl.recipes import load_recipe
    from dicgrl.settings import Settings

    recipe = load_recipe(
        result["recipe"],
        result["dataset"],
        result["model"],
        disentangled=is_disentangled(result),
    )
    now, then = recipe.settings, Settings.from_dict(result["settings"])  # younger ones by default
    later = now.later_names | then.later_names
    values = then.as_dict()
    return all(values.get(key) == each for key, each in now.as_dict().items() if key not in later)


def ours(result: Result, metric: str) -> float:
    """A test metric as it is printed."""
    value: float = result["test"][metric]
    return round(100 * value, 1)


def gap(result: Result, metric: str) -> float:
    """What is printed as the difference to the paper."""
    published: float = result["published"][metric]
    return round(ours(result, metric) - published, 1)


def command_of(result: Result) -> str:
    """The command that measured it."""
    words = ["dicgrl run", result["dataset"], "--merged --model", result["model"]]
    words += ["--disentangled"] if is_disentangled(result) else []
    words += ["--recipe", result["recipe"]]
    words += ["--seed", str(result["seed"])] if result["seed"] else []
    return " ".join(words)


def link_sections(results: Sequence[Result]) -> list[str]:
    """Table, curves and what is missing.

    Args:
        results: What `read_links` gives.
    """
    header = (
        *("dataset", "model", "form", "ours, MRR / H@10", "paper, MRR / H@10", "difference"),
        *("best epoch", "seconds", "command"),
    )
    rows = [
        (
            result["dataset"],
            MODELS[result["model"]],
            form_of(result) + ("" if is_current(result) else " *"),
            f"{ours(result, 'mrr'):.1f} / {ours(result, 'hits@10'):.1f}",
            f"{result['published']['mrr']:.1f} / {result['published']['hits@10']:.1f}",
            f"{gap(result, 'mrr'):+.1f} / {gap(result, 'hits@10'):+.1f}",
            f"{result['best_epoch']} of {result['epochs']}",
            f"{result['learn_seconds']:.0f}",
            f"`{command_of(result)}`",
        )
        for result in results
    ]
    watched = sorted({result["settings"]["validate_at_most"] for result in results})
    (device,) = {result["device"] for result in results}
    (seed,) = {result["seed"] for result in results}
    protocol = filled(f"""
        All parts merged, one model (the paper's appendix A). Filtered ranks, head and tail side,
        realistic ties; candidates are all entities. The epoch is selected on the MRR of
        {" or ".join(f"{count:,}" for count in watched)} validation triples; the test triples
        are read at the end. Disentangled forms have longer vectors, of which a triple uses about
        as many coordinates as the plain form has. One seed ({seed}) per row.
        Device: {device}; {MEASURED}. Seconds are those of training, without validation. Rows with
        an asterisk were measured with an earlier recipe. Full settings:
        [results/{LINKS}](results/{LINKS}).""")
    return [
        f"## {LINK_TITLE}",
        protocol,
        table(header, rows),
        f"![Validation MRR by epoch](results/{CURVES})",
        "The ring is the epoch that was kept, the dashed line the paper's test MRR.",
        shortfall(results),
    ]


def shortfall(results: Sequence[Result]) -> str:
    """Where the numbers fall short, and by how much."""
    names = all_of(name_of(result) for result in results if gap(result, "hits@10") >= 0)
    mrr, hits = (sum(gap(r, metric) >= 0 for r in results) for metric in ("mrr", "hits@10"))
    total = len(results)
    summary = f"""
        The paper's MRR is reached in {mrr} of {total} rows and its H@10 in {hits} of {total}:
        {names}. MRR falls short by {_short(results, "mrr")}; H@10 by {_short(results, "hits@10")}.
        H@1 of TransE on WN18RR is {_first(results)} on test triples: more than a third of them are
        of symmetric relations, for which a translation puts the entity of the question itself
        first. We believe that this bounds its MRR, and do not know how the paper's was reached.
        The paper's numbers come from the authors' evaluation, whose handling of ties we do not
        know. What was tried: [archive/tried-merged.md]({TRIED})."""
    return "\n\n".join(["### Where it falls short", filled(summary)])


def _first(results: Sequence[Result]) -> str:
    """H@1 of the forms of TransE on WN18RR."""
    chosen = [r for r in results if (r["model"], r["dataset"]) == ("transe", "WN18RR")]
    return all_of(f"{100 * r['test']['hits@1']:.1f}" for r in chosen)


def name_of(result: Result) -> str:
    """A row in words."""
    form = "disentangled" if is_disentangled(result) else "plain"
    return f"{MODELS[result['model']]} {form} on {result['dataset']}"


def _short(results: Iterable[Result], metric: str) -> str:
    """What falls short, and by how much."""
    short = [result for result in results if gap(result, metric) < 0]
    return all_of(f"{-gap(result, metric):.1f} ({name_of(result)})" for result in short)


def read_reports(folder: Path) -> list[Result]:
    """What `dicgrl reproduce` wrote, in the order of the paper."""
    from dicgrl.research.targets import TARGETS  # it takes PyTorch seconds to load

    stored = [_json(path) for path in folder.glob("reproduce-*.json")]
    order = list(TARGETS)
    return sorted(stored, key=lambda report: (order.index(report["target"]), report["name"]))


def reproduced_sections(folder: Path, stored: Sequence[Result]) -> list[str]:
    """The paper's tables and figures, in its order; none where nothing was reproduced."""
    if not stored:
        return []
    from dicgrl.research.report import markdown  # it takes PyTorch seconds to load

    sections = ["## The paper's tables and figures, measured again"]
    for report in stored:
        drawn = [f for f in report["figures"] if (folder / f"{f['file']}.svg").is_file()]
        sections.append(markdown(report | {"figures": drawn}, level=3, pictures="results/"))
        notes = folder / f"{report['name'].replace('reproduce', 'notes', 1)}.md"
        if notes.is_file():
            sections.append(notes.read_text(encoding="utf-8").strip())
    return sections


def accuracy(row: Result) -> float:
    """The accuracy as it is printed, in per cent."""
    mean: float = row["accuracy_mean"]
    return round(mean * (100 if mean <= 1 else 1), 1)  # shares or per cent


def published_accuracy(row: Result) -> float | None:
    """The paper's accuracy in per cent, where it has one."""
    published = row["published"]
    found: float | None = published.get("accuracy") if isinstance(published, dict) else published
    return found


def node_section(rows: Sequence[Result]) -> str:
    """Accuracy beside the published one.

    Args:
        rows: What was measured.
    """
    header = (
        *("dataset", "model", "form", "ours", "paper", "difference"),
        *("seeds", "seconds", "command"),
    )
    cells = []
    for row in rows:
        scale = 100 if row["accuracy_mean"] <= 1 else 1
        mean, published = accuracy(row), published_accuracy(row)
        cells.append(
            (
                row["dataset"],
                str(MODELS.get(row["model"], row["model"])),
                row["form"],
                f"{mean:.1f} ± {scale * row['accuracy_std']:.1f}",
                "" if published is None else f"{published:.1f}",
                "" if published is None else f"{mean - published:+.1f}",
                str(row["seeds"] if isinstance(row["seeds"], int) else len(row["seeds"])),
                f"{row['learn_seconds']:.1f}",
                f"`{row['command'].replace('--whole', '--merged')}`",  # its name today
            )
        )
    text = filled(f"""
        All parts merged. Accuracy on the test nodes, mean ± standard deviation over seeds; the
        epoch is selected on the validation nodes. Seconds are those of training one seed. Full
        settings: [results/{NODES}](results/{NODES}). All rows: `python
        benchmarks/node_classification.py --json docs/results/{NODES}`, on a CPU, one thread. The
        paper has no GraphSAGE.""")
    words = filled(f"""
        The standard error of the test sample is about 1 point on Cora and CiteSeer and 0.4 on
        PubMed. All settings were chosen on validation nodes, by their accuracy over 2 seeds; test
        nodes were read for recipes only, after these were chosen. The disentangled GAT on PubMed
        was measured before the layer worked in blocks: the same function, with other random
        numbers. What was tried: [archive/tried-merged.md]({TRIED}).""")
    return "\n\n".join([f"## {NODE_TITLE}", text, table(header, cells), words])


def draw(results: Sequence[Result], path: Path) -> None:
    """Validation curves as small multiples, a row per dataset.

    Args:
        results: What `read_links` gives.
        path: The PNG to write.
    """
    from matplotlib.figure import Figure  # only the picture needs it

    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots(len(DATASETS), len(results) // len(DATASETS), squeeze=False)
    for axis, result in zip(axes.flat, results, strict=True):
        epochs, values = zip(*result["curve"], strict=True)
        kept = epochs.index(result["best_epoch"])
        axis.plot(epochs, [100 * value for value in values], marker=".", color="C0")
        axis.plot(epochs[kept], 100 * values[kept], "o", ms=9, mfc="none", color="C3")
        axis.axhline(result["published"]["mrr"], ls="--", lw=1, color="0.5")
        form = "disentangled" if is_disentangled(result) else "plain"
        axis.set_title(f"{result['dataset']}, {MODELS[result['model']]}, {form}", fontsize=9)
        axis.set_xlim(left=0)
        axis.tick_params(labelsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("validation MRR, %", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("epoch", fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write the page and its pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of results.md and results/")
    docs: Path = parser.parse_args().docs
    (docs / "results.md").write_text(page(docs / "results"), encoding="utf-8")
    draw(read_links(docs / "results"), docs / "results" / CURVES)


if __name__ == "__main__":
    main()
