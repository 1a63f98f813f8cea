"""Tables and curves of runs, as they look."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from dicgrl.learner import Prediction
from dicgrl.report.answers_table import answers_table
from dicgrl.report.comparison_table import comparison_table
from dicgrl.report.curves import draw_curves
from dicgrl.report.part_table import part_table
from dicgrl.report.results_text import run_labels


def text_of(content: RenderableType, width: int = 200) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(content)
    return file.getvalue()


def results_of(parts: int = 2, **changes: Any) -> dict[str, Any]:
    """Results in which every number tells where it belongs."""

    def part(number: int) -> dict[str, Any]:
        tests = [
            {"part": j, "count": 1000 + j, "mrr": 0.1, "hits@1": 0.05}
            | {"hits@10": (10 * number + j) / 100}
            for j in range(number + 1)
        ]
        return {
            "part": number,
            "learn_seconds": 12.34,
            "epochs": 7,
            "new_examples": 5000,
            "replayed_examples": 700 * number,
            "candidates": 900 * number,
            "activated": 800 * number,
            "tests": tests,
            "whole": {"mrr": 0.31, "hits@1": 0.2, "hits@10": 0.41},
            "average": {"mrr": 0.32, "hits@1": 0.2, "hits@10": 0.42},
            "forgetting": 0.057 if number else None,
            "retention": 0.9,
        }

    return {
        "dataset": "films",
        "model": "transe",
        "strategy": "dicgrl",
        "recipe": "best",
        "seed": 0,
        "settings": {"components": 8, "lr": 0.1, "budget": "10%", "model": "transe"},
        "parts": [part(number) for number in range(parts)],
        "forgetting": 0.057,
        "retention": 0.9,
    } | changes


def test_the_table_of_a_part_says_which_new_classes_are_hardly_learned() -> None:
    results = results_of()
    results["parts"][-1]["new_classes"] = {
        "red": {"right": 3, "of": 20},
        "blue": {"right": 19, "of": 20},
    }
    told = text_of(part_table(results))
    assert "class 'red' is hardly learned: 3 of its 20 training nodes are right" in told
    assert "blue" not in told


def bare(results: dict[str, Any]) -> dict[str, Any]:
    """The same without test sets."""
    found = copy.deepcopy(results)
    for part in found["parts"]:
        part |= {"tests": [], "whole": {}, "average": {}, "forgetting": None, "retention": None}
    return found | {"forgetting": None, "retention": None}


def test_the_table_of_a_part_shows_the_newest_part_in_per_cent() -> None:
    lines = text_of(part_table(results_of())).splitlines()
    assert lines[0] == "films, transe disentangled, dicgrl, after part 1, in per cent"
    assert lines[-1] == (
        "learned 5,000 new and 700 old examples in 12.3 s; 800 of 900 old neighbours share a "
        "component and are activated; forgetting 5.7"
    )
    cells = [line.strip("│ ").replace("│", " ").split() for line in lines if line.startswith("│")]
    assert ["part", "0", "1,000", "10.0", "5.0", "10.0"] in cells
    assert ["part", "1", "1,001", "10.0", "5.0", "11.0"] in cells
    assert ["whole", "2,001", "31.0", "20.0", "41.0"] in cells
    assert ["average", "32.0", "20.0", "42.0"] in cells
    assert len(cells) == 4


@pytest.mark.parametrize(
    ("drift", "shown"),
    [
        (
            {"mean": 0.0345, "largest": 0.51, "rows": 12345},
            "12,345 old components moved by 3.5 % of their length on average, 51 % at most",
        ),
        (
            {"mean": 0.012, "largest": 0.9, "nodes": 1},
            "1 old node changed class, probabilities moved by 1.2 % on average",
        ),
    ],
)
def test_a_part_says_how_far_what_is_old_has_moved(drift: dict[str, Any], shown: str) -> None:
    results = results_of()
    results["parts"][-1]["drift"] = drift
    assert f"activated; {shown}; forgetting" in text_of(part_table(results), 240)
    results["parts"][-1]["drift"] = {"mean": 0.0, "largest": 0.0, "rows": 0}
    assert "moved" not in text_of(part_table(results))


def test_a_part_that_was_not_learned_says_so() -> None:
    results = results_of(strategy="frozen")
    results["parts"][-1] |= {"epochs": 0, "replayed_examples": 0, "candidates": 0}
    text = text_of(part_table(results))
    assert "learned nothing of 5,000 new examples; forgetting" in text
    results["parts"][-1] |= {"new_examples": 0}  # there was nothing to learn
    assert "learned 0 new examples in" in text_of(part_table(results))


def test_what_was_not_measured_is_not_shown() -> None:
    text = text_of(part_table(bare(results_of())))
    assert "nothing was measured" in text and "learned 5,000 new" in text
    assert "whole" not in text and "0.0" not in text
    first = text_of(part_table(results_of(1)))
    assert "forgetting" not in first and "old" not in first and "neighbours" not in first


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_stay_within_the_terminal(width: int) -> None:
    answers = [Prediction("q1", "[bold]Alien[/bold] :smile:", -1.0, True)]
    for content in (
        part_table(results_of()),
        comparison_table([results_of(), results_of(strategy="lower")]),
        answers_table("[x] -- genre -- ?", answers),
    ):
        assert all(len(line) <= width for line in text_of(content, width).splitlines())
    question = "[x] -- genre -- ?"
    assert text_of(answers_table(question, answers)).startswith(question)


def test_runs_are_labelled_by_what_tells_them_apart() -> None:
    one = results_of()
    other = results_of(strategy="lower")
    assert run_labels([one, other]) == ["dicgrl", "lower"]
    assert run_labels([one, results_of(seed=3)]) == ["dicgrl, seed 0", "dicgrl, seed 3"]
    tuned = results_of(settings=one["settings"] | {"lr": 0.2})
    assert run_labels([one, tuned]) == ["dicgrl, lr=0.1", "dicgrl, lr=0.2"]
    assert run_labels([one, one]) == ["dicgrl (1)", "dicgrl (2)"]
    older = one | {"settings": one["settings"] | {"options": {"p": 1}, "strength": 1.0}}
    assert run_labels([older, one]) == ["dicgrl (1)", "dicgrl (2)"]  # they learned alike
    assert run_labels([one]) == ["dicgrl"]
    mixed = [one, other, tuned, results_of(dataset="cora"), one, results_of(recipe="paper")]
    assert len(set(run_labels(mixed))) == len(mixed)


def test_a_comparison_has_a_row_for_every_run() -> None:
    runs = [results_of(3), results_of(1, strategy="lower"), bare(results_of(strategy="emr"))]
    lines = text_of(comparison_table(runs)).splitlines()
    assert lines[0] == "films: after the last part, in per cent"
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells[0] == [
        "dicgrl",
        "41.0",
        "42.0",
        "31.0",
        "32.0",
        "5.7",
        "90.0",
        "2,100",
        "",
        "12.3",
    ]
    assert cells[1] == ["lower", "41.0", "42.0", "31.0", "32.0", "", "90.0", "0", "", ""]
    assert cells[2] == ["emr", "", "", "", "", "", "", "700", "", "12.3"]
    assert lines[-1] == "emr: nothing was measured"


def test_a_comparison_shows_the_last_measurement_and_says_that_it_is_not_of_the_last_part() -> None:
    run = results_of(3)
    run["parts"][-1] = bare(results_of(3))["parts"][-1]
    run["parts"][1]["whole"]["hits@10"] = 0.77
    lines = text_of(comparison_table([run, results_of(strategy="lower")])).splitlines()
    row = [line for line in lines if line.startswith("│ dicgrl")]
    assert "77.0" in row[0] and "2,100" in row[0]  # the cost is that of all parts
    assert lines[-1].startswith("dicgrl: measured after part 1 and not since; `dicgrl learn`")


def test_tables_say_what_learning_cost_whatever_the_machine() -> None:
    run = results_of(3)
    for part, counts in zip(run["parts"], [(9_000_000, 0), (400, 0), (900, 700)], strict=True):
        part["positives"] = dict(zip(("new", "old"), counts, strict=True))
    assert "examples in 12.3 s (positives: 1.6k, 44 % old); 1,600 of" in text_of(part_table(run))
    lines = text_of(comparison_table([run, results_of(3, strategy="lower")])).splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert [row[8] for row in cells] == ["1.0k, 35 % old", ""]  # 2,000 in two later parts
    run["parts"][-1] |= {"positives": {"new": 0, "old": 0}, "epochs": 0}
    assert "positives" not in text_of(part_table(run))  # it has learned nothing, and says so


def test_what_a_sample_says_is_labelled_and_the_time_is_said() -> None:
    run = results_of()
    newest = run["parts"][-1]
    newest["evaluate_seconds"] = 2.345
    assert text_of(part_table(run)).endswith("forgetting 5.7; measured in 2.3 s\n")
    newest["tests"][0]["sampled"], newest["tests"][1]["sampled"], newest["sampled"] = 62, 63, 125
    lines = text_of(part_table(run)).splitlines()
    assert lines[-1].endswith("; measured on 125 of 2,001 test examples in 2.3 s")
    shown = [line for line in lines if " of " in line and line.startswith("│")]
    assert [line.split("│")[2].strip() for line in shown] == [
        "62 of 1,000",
        "63 of 1,001",
        "125 of 2,001",
    ]
    compared = text_of(comparison_table([run, results_of(strategy="lower")])).splitlines()
    assert compared[-1] == "dicgrl: measured on 125 of 2,001 test examples"
    without = bare(run)
    without["parts"][-1] |= {"evaluate_seconds": 0.0, "sampled": None}
    text = text_of(part_table(without))
    assert "nothing was measured" in text and "no test set" not in text and "in 0.0" not in text


@pytest.mark.parametrize(
    ("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_curves_are_drawn_in_the_format_of_their_name(
    ending: str, begins: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"new folder/curves.{ending}"
    draw_curves([results_of(), results_of(strategy="lower")], path)
    assert path.read_bytes().startswith(begins)
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_curves_show_every_run_and_metric(tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    runs = [results_of(seed=seed) for seed in range(9)]
    draw_curves(runs, path)
    text = path.read_text(encoding="utf-8")
    for words in [*run_labels(runs), "H@10, whole", "H@10, average", "MRR, whole", "MRR, average"]:
        assert f"<!-- {words} -->" in text
    draw_curves([bare(results_of())], path)
    assert "nothing was measured" in path.read_text(encoding="utf-8")
    draw_curves([bare(results_of()), results_of(strategy="lower")], path)  # one has no test sets
    assert "<!-- H@10, whole -->" in path.read_text(encoding="utf-8")
