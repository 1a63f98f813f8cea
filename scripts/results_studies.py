"""Sections of docs/results.md on two studies: what routing finds, what a part activates."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results_text import all_of, filled, spread, table

ASPECTS = "aspects.json"
ACTIVATION = "activation.json"
ASPECT_TITLE = "Does disentangling mean something?"
ACTIVATION_TITLE = "How much of the history does a part activate?"
TRIALS_TITLE = "Trials of settings"
Result = dict[str, Any]


def aspect_section(rows: Sequence[Result]) -> str:
    """What the components of relations have to do with their aspects."""
    columns = ("start", "separation", "rand", "mrr", "hits@10")
    header = ("K", "n", "routing", "separation at the start", "separation", "rand", "MRR", "H@10")
    cells = [
        (
            str(row["components"]),
            str(row["top"]),
            row["routing"],
            *(spread(row["measured"][column]) for column in columns),
        )
        for row in rows
    ]
    seeds = rows[0]["seeds"]
    text = f"""\
## {ASPECT_TITLE}

A synthetic knowledge graph has four independent aspects, and each of its 20 relations belongs to
one of them. After training, do relations of one aspect attend to the same components?

- *Separation*: the chance that two relations of one aspect share more components than two relations
  of different aspects, ties counting half. 0.5 is chance, 1 is perfect.
- *Rand*: the adjusted Rand index between the aspects and as many clusters of relations, made by
  shared components. 0 is chance, 1 is perfect.

Mean (standard deviation) of {seeds} seeds, as shares of 1, on a CPU; MRR and H@10 are those of the
test triples: `python benchmarks/aspects.py --seeds {seeds} --json docs/results/{ASPECTS}`."""
    return "\n\n".join([text, table(header, cells), aspect_words(rows)])


def aspect_words(rows: Sequence[Result]) -> str:
    """What the table says."""

    def values(routing: str, metric: str) -> str:
        return all_of(
            f"{row['measured'][metric]['mean']:.2f}" for row in rows if row["routing"] == routing
        )

    forms = all_of(f"K = {count}" for count in dict.fromkeys(row["components"] for row in rows))
    ceiling = statistics.mean(row["measured"]["ceiling"]["mean"] for row in rows)
    return filled(f"""
        In part. For {forms}, learned routing raises the separation
        from {values("learned", "start")} to {values("learned", "separation")}, but the clusters
        agree with the aspects only with a Rand index of {values("learned", "rand")}. With published
        routing, where only the normalisation loss trains the attention, nothing is found: the
        separation is {values("published", "start")} at the start
        and {values("published", "separation")} at the end, as the random choice of the start stays.
        Test MRR is {values("learned", "mrr")} with learned and
        {values("published", "mrr")} with published routing. Even a model that knew how the graph
        was made would only reach {ceiling:.2f}, since many entities answer a question equally
        well.""")


def activation_section(rows: Sequence[Result]) -> str:
    """How much of the history a part concerns."""
    text = f"""\
## {ACTIVATION_TITLE}

The share of all old triples that a part activates, in per cent, over the four later parts: those
near its new triples that use a component which these use as well. Order 1 are the triples that
share an entity with a new one, order 2 the next ones. Relations attend at random, as before
training; with 1 of 1 components all neighbours are activated. There is no budget, and all
neighbours are considered (`fan=0`): `python benchmarks/activation_share.py --json
docs/results/{ACTIVATION}`."""
    words = filled("""
        With the paper's 4 of 8 components next to nothing is left out: two random sets of 4 share a
        component 98.6 times in 100, and most of the graph is near what a part of 5 % mentions. So
        the published method replays almost all of FB15k-237 and costs as much as retraining. To
        make an update cheap takes a budget, spent on the examples that the part says most about
        ([beyond.md](beyond.md)).""")
    header = list(rows[0])
    return "\n\n".join([text, table(header, [list(row.values()) for row in rows]), words])


def trial_sections(folder: Path) -> list[str]:
    """The trials of settings that every strategy had on validation data, a section per file.

    Args:
        folder: The folder with the files that benchmarks/trials.py wrote.
    """
    found = sorted(folder.glob("trials-*.json"))
    return [trial_section(json.loads(path.read_text(encoding="utf-8")), path) for path in found]


def trial_section(file: Result, path: Path) -> str:
    """The best trial of each row beside the recipe, and how many there were."""
    metric = file["metric"]
    shown = f"A / W of {_metric(file)}"
    rows = _rows_of(file)
    most = max(len(trials) for trials in rows.values())
    short = [row for row in file["planned"] if len(rows.get(row, ())) < most]
    late = f"These rows are not finished yet: {'; '.join(short)}." if short else ""
    header = ("row", "active", "trials", f"recipe: {shown}", f"best: {shown}", "its settings")
    cells = []
    for row, trials in rows.items():
        best = _best(trials, metric)
        changes = " ".join(f"{key}={value}" for key, value in best["values"].items())
        first = next(each for each in trials if not each["values"])
        numbers = (_pair(first, metric), _pair(best, metric))
        cells.append(
            (row, str(best["active"]), str(len(trials)), *numbers, changes or "the recipe's")
        )
    words = filled(f"""
        Would the other strategies be better with other settings? Each row was tried with the recipe
        of that time, with twice its learning rate from the first part on, and with one change of
        its own. The table has the validation results of seed {file["seed"]} after the last part, in
        per cent. All rows have about the same active size, the same epochs for the first part, the
        same budget, and may start newcomers from their neighbours. A setting with an x is a
        multiple of the recipe's. {late}""")
    source = filled(f"""
        `{file["command"]} --json docs/results/{path.name}` measures the rows, and continues a file
        that exists. All trials: [results/{path.name}](results/{path.name}).""")
    title = f"## {TRIALS_TITLE}: {file['dataset']}, {file['model']}"
    return "\n\n".join([title, words, source, table(header, cells)])


def trial_claim(file: Result) -> tuple[str, str]:
    """What equal trials say of retraining and of what updates."""
    rows, metric = _rows_of(file), file["metric"]
    best = {row: 100 * _best(trials, metric)["average"][metric] for row, trials in rows.items()}
    claim = f"With equal trials on {file['dataset']}, validation: A of {_metric(file)}"
    names = ("fresh", "dicgrl", "emr", "upper")
    return claim, ", ".join(f"{name} {best[name]:.1f}" for name in names if name in best)


def _rows_of(file: Result) -> dict[str, list[Result]]:
    by_row: dict[str, list[Result]] = {}
    for each in file["trials"]:
        by_row.setdefault(each["row"], []).append(each)
    return by_row


def _best(trials: list[Result], metric: str) -> Result:
    """The trial with the highest average; of equal ones the first."""
    return max(trials, key=lambda each: each["average"][metric])


def _metric(file: Result) -> str:
    return "MRR" if file["metric"] == "mrr" else str(file["metric"])


def _pair(trial: Result, metric: str) -> str:
    return " / ".join(f"{100 * trial[judged][metric]:.1f}" for judged in ("average", "whole"))
