"""Writes what a target found: JSON for programs, Markdown for people, PNG and SVG of figures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dicgrl.common.atomic import replacing_file, write_json
from dicgrl.research.cells import Cell, Finished, load_cell
from dicgrl.research.detail import run_detail
from dicgrl.research.figures import save_figure
from dicgrl.research.target import Content, Options, Target


def load_found(target: Target, options: Options, folder: Path) -> dict[Cell, Finished]:
    """The cells of a target that are finished."""
    stored = {cell: load_cell(folder, cell) for cell in target.cells(options)}
    return {cell: done for cell, done in stored.items() if done is not None}


def write_report(target: Target, options: Options, folder: Path) -> tuple[dict[str, Any], Content]:
    """Write the report of what is finished.

    Args:
        target: The target.
        options: What was chosen.
        folder: Where the cells are and the report goes.

    Returns:
        The report, as written to JSON, and the tables and figures behind it.
    """
    options = target.options(options)
    found = load_found(target, options, folder)
    content = target.content(options, found)
    report = describe_report(target, options, found, content)
    for picture, entry in zip(content.pictures, report["figures"], strict=True):
        figure = picture.draw()
        for ending in ("png", "svg"):
            save_figure(figure, folder / f"{entry['file']}.{ending}")
    write_json(folder / f"{report['name']}.json", report)
    with replacing_file(folder / f"{report['name']}.md") as temporary:
        temporary.write_text(markdown(report, level=1) + "\n", encoding="utf-8")
    return report, content


def describe_report(
    target: Target, options: Options, found: dict[Cell, Finished], content: Content
) -> dict[str, Any]:
    """A report, ready for JSON."""
    cells = target.cells(options)
    name = f"reproduce-{target.name}"
    if cells:  # what is only counted has no recipe
        name += f"-{Path(options.recipe).stem}"
    days = sorted({done.finished[:10] for done in found.values()})
    return {
        "name": name,
        "target": target.name,
        "title": target.title,
        "paper": target.where,
        "command": command_of(target, options, bool(cells)),
        "recipe": options.recipe if cells else None,
        "seeds": options.seeds,
        "changes": list(options.changes),
        "date": days or [datetime.now(UTC).date().isoformat()],
        "devices": sorted({done.results["device"] for done in found.values()}),
        "at_once": sorted({done.at_once for done in found.values()}),
        "missing": list(dict.fromkeys(str(cell) for cell in cells if cell not in found)),
        "tables": [
            {"title": t.title, "markdown": t.markdown(), "rows": t.data} for t in content.tables
        ],
        "figures": [
            {"title": p.title, "file": f"{name}-{p.name}" if p.name else name}
            for p in content.pictures
        ],
        "notes": content.notes,
        "runs": [
            {
                "cell": str(cell),
                "seed": cell.seed,
                "finished": done.finished,
                "device": done.results["device"],
                "settings": done.results["settings"],
                **(run_detail(done.results) if target.keeps_runs else {}),
            }
            for cell, done in found.items()
        ],
    }


def command_of(target: Target, options: Options, has_cells: bool) -> str:
    """The command that makes the report again."""
    words = ["dicgrl reproduce", target.name]
    if has_cells:
        words += ["--recipe", options.recipe]
        words += [] if target.one_seed else ["--seeds", str(options.seeds)]
        words += [f"--set {text}" for text in options.changes]
        words += [f"--protocol {options.protocol}"] if options.protocol != "seen" else []
    return " ".join(words)


def markdown(report: dict[str, Any], level: int = 2, pictures: str = "") -> str:
    """A report as a section of a page.

    Args:
        report: What `describe_report` gives.
        level: Level of its heading.
        pictures: Folder of the pictures, as the page sees it, such as `results/`.
    """
    recipe = f", recipe {report['recipe']}" if report["recipe"] else ""
    where = f"{report['paper']} of the paper" if report["paper"] else "Not in the paper"
    about = [f"{where}. Command: `{report['command']}`."]
    if report["runs"]:
        seeds = report["seeds"]
        about.append(
            f"Recipe {report['recipe']}; {seeds} seed{'s' if seeds > 1 else ''}"
            + (", mean ± standard deviation" if seeds > 1 else "")
            + ("; a difference is ours minus the paper's." if report["paper"] else ".")
        )
        devices, most = ", ".join(report["devices"]), max(report["at_once"])
        shared = f"up to {most} runs at a time, whose seconds are those of a shared device."
        about.append(f"Device: {devices}; {shared if most > 1 else 'one run at a time.'}")
    about.append(f"Measured {' to '.join(dict.fromkeys((report['date'][0], report['date'][-1])))}.")
    blocks = [f"{'#' * level} {report['title']}{recipe}", " ".join(about)]
    for table in report["tables"]:
        blocks += [f"**{table['title']}**", table["markdown"]]
    blocks += [f"![{f['title']}]({pictures}{f['file']}.svg)" for f in report["figures"]]
    blocks += report["notes"]
    if report["missing"]:
        blocks.append(f"Not measured yet: {len(report['missing'])} runs.")
    return "\n\n".join(blocks)
