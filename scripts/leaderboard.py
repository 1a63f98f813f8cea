"""Write docs/leaderboard.md and its picture: every strategy, decoder and stream, quality and cost.

    python scripts/leaderboard.py

It reads whatever files of docs/results have rows of strategies after the last part
(leaderboard_rows.py); a new file is there with the next call. Quality is A, the mean over the
parts' test sets, of MRR where it was kept and of H@10 or accuracy otherwise; cost is the positives
of later parts (examples x epochs) where they were counted, and else seconds of learning. On the
front of a stream is what nothing else beats in one of both and equals in the other; `frozen`, which
never learns and costs nothing, is a control and stands outside.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # whoever runs this file: its neighbours are here

from leaderboard_rows import Board, Entry, entries
from results_text import filled, table

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = "leaderboard.svg"
_COLUMNS = 3
_MILLIONS = "millions"  # what counts below a thousand are
_HEAD = """\
# Leaderboard: quality against cost

Every strategy that has been measured, its quality beside its cost. Written by
`python scripts/leaderboard.py` from the files in [results/](results)."""


def front(rows: Sequence[Entry]) -> list[Entry]:
    """Those that no other one beats, the cheapest first.

    Example:
        >>> board = ("x", "best", "MRR, A", "seconds")
        >>> values = (("a", 30.0, 1.0), ("b", 29.0, 2.0), ("c", 31.0, 9.0), ("frozen", 1.0, 0.0))
        >>> made = [Entry(board, name, quality, 0.0, cost, 1, "") for name, quality, cost in values]
        >>> [entry.label for entry in front(made)]
        ['a', 'c']
    """
    learns = [entry for entry in rows if not entry.is_control]
    kept = [entry for entry in learns if not any(other.beats(entry) for other in learns)]
    return sorted(kept, key=lambda entry: (entry.cost, -entry.quality))


def boards(found: Sequence[Entry]) -> dict[Board, list[Entry]]:
    """Entries that are compared with each other."""
    by_board: dict[Board, list[Entry]] = {}
    for entry in found:
        by_board.setdefault(entry.board, []).append(entry)
    return {board: rows for board, rows in sorted(by_board.items()) if len(rows) > 1}


def page(folder: Path) -> str:
    """The page, as Markdown.

    Args:
        folder: The folder of the reports.
    """
    found = boards(entries(folder))
    words = filled("""
        A strategy is on the Pareto front of its board (marked *front*) if no other one there is at
        least as good and at least as cheap. Quality is A, the mean over the parts' test sets after
        the last part (validation sets if a board says so). Cost is what later parts took: positives
        (examples times epochs, independent of the machine) if they were counted, otherwise seconds,
        which say little if runs shared a machine. For table1, table2 and films that is the mean of
        a later part, for cut graphs the sum of all parts, otherwise the sum of the later parts.
        All rows of a board have the same data, recipe, metric and measure of cost; numbers of
        different boards cannot be compared. `frozen`, which never learns after the first part and
        costs nothing, is a control outside the ranking. [results.md](results.md) says how equally
        the strategies were tuned.""")
    sections = [_HEAD, words, f"![Quality against cost](results/{PICTURE})", _summary(found)]
    for (which, recipe, metric, cost), rows in found.items():
        best = front(rows)
        header = ("strategy", metric, "W", cost, "seeds", "")
        lines = [
            (
                entry.label,
                f"{entry.quality:.1f}",
                f"{entry.whole:.1f}",
                _cost(entry),
                str(entry.seeds),
                "**front**" if entry in best else "control" if entry.is_control else "",
            )
            for entry in sorted(rows, key=lambda entry: -entry.quality)
        ]
        sources = sorted({entry.source for entry in rows})
        linked = ", ".join(f"[{name}](results/{name})" for name in sources)
        sections += [f"## {which}, recipe {recipe}", f"From {linked}.", table(header, lines)]
    return "\n\n".join(sections) + "\n"


def _cost(entry: Entry) -> str:
    digits = 0 if entry.cost >= 1000 else 1 if entry.cost >= 10 else 2
    unit = " s" if entry.board[3] == "seconds" else " M" if entry.cost < 1000 else ""
    return f"{entry.cost:,.{digits}f}{unit}"


def _summary(found: Mapping[Board, Sequence[Entry]]) -> str:
    """Who is on how many fronts."""
    fronts: dict[str, int] = {}
    present: dict[str, int] = {}
    for rows in found.values():
        best = front(rows)
        for entry in rows:
            if entry.is_control:
                continue
            present[entry.label] = present.get(entry.label, 0) + 1
            fronts[entry.label] = fronts.get(entry.label, 0) + (entry in best)
    names = sorted(present, key=lambda name: (-fronts[name] / present[name], -present[name], name))
    lines = [(name, f"{fronts[name]} of {present[name]}") for name in names]
    return "\n\n".join(["## On how many fronts", table(("strategy", "boards"), lines)])


def draw(folder: Path, path: Path) -> None:
    """The boards as small multiples, the front as a line; cost that varies is logarithmic.

    Args:
        folder: The folder of the reports.
        path: The SVG to write.
    """
    from matplotlib.figure import Figure  # only the picture needs it
    from matplotlib.ticker import NullFormatter

    from dicgrl.research.figures import save_figure

    found = boards(entries(folder))
    lines = -(-len(found) // _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 3.6 * lines), layout="constrained")
    axes = figure.subplots(lines, _COLUMNS, squeeze=False)
    for axis, ((which, recipe, metric, cost), rows) in zip(axes.flat, found.items(), strict=False):
        best = front(rows)
        least = min((entry.cost for entry in rows if entry.cost > 0), default=1.0) / 2
        most = max(entry.cost for entry in rows)
        varies = most > 10 * least
        middle = math.sqrt(least * most) if varies else (2 * least + most) / 2
        for entry in rows:
            at = (max(entry.cost, least), entry.quality)
            axis.plot(*at, "o", ms=5, color="C3" if entry in best else "0.6")
            right = at[0] > middle  # its name stands on the left
            axis.annotate(
                entry.label,
                at,
                fontsize=6,
                xytext=(-3 if right else 3, 3),
                textcoords="offset points",
                ha="right" if right else "left",
            )
        path_of = [(max(entry.cost, least), entry.quality) for entry in best]
        axis.plot(*zip(*path_of, strict=True), color="C3", lw=1, drawstyle="steps-post")
        if varies:
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
        axis.margins(x=0.15, y=0.1)
        axis.set_title(f"{which}, recipe {recipe}", fontsize=9)
        axis.set_ylabel(f"{metric}, %", fontsize=8)
        unit = f", {_MILLIONS}" if cost == "positives" and most < 1000 else ""
        axis.set_xlabel(f"{cost} of later parts{unit}", fontsize=8)
        axis.tick_params(labelsize=7)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    save_figure(figure, path)


def main() -> None:
    """Write the page and its picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page and results/")
    docs: Path = parser.parse_args().docs
    (docs / "leaderboard.md").write_text(page(docs / "results"), encoding="utf-8")
    draw(docs / "results", docs / "results" / PICTURE)


if __name__ == "__main__":
    main()
