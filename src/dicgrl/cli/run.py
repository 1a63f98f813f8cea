"""`dicgrl run`: learn a stream part by part, or all of it at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicgrl.cli import processes
from dicgrl.cli.console import interruptible, show, show_json, warn
from dicgrl.cli.options import (
    Changes,
    Device,
    Disentangled,
    Json,
    Keep,
    Merged,
    ModelOrRace,
    Plain,
    Protocol,
    RecipeName,
    Seed,
    Source,
    Test,
    Valid,
    is_divided,
)
from dicgrl.cli.reading import AS_IT_IS, reads_facts
from dicgrl.datasets import load_stream
from dicgrl.readers import Reading
from dicgrl.report.terminal import counted
from dicgrl.tasks import DEFAULT_STRATEGY, task_named

if TYPE_CHECKING:  # PyTorch is imported by the commands that need it
    from dicgrl.jobs.plan import Plan, PlannedRun


@reads_facts
def run(
    source: Source,
    model: ModelOrRace = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="frozen, lower, upper, warm, ewc, emr, gem, lkge, incde, fastkge, arrival, dicgrl "
            "or fresh; several separated by commas.",
            show_default=DEFAULT_STRATEGY,
        ),
    ] = None,
    merged: Merged = False,
    disentangled: Disentangled = False,
    plain: Plain = False,
    recipe: RecipeName = "best",
    changes: Changes = None,
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run: models, results, curves.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    keep: Keep = None,
    protocol: Protocol = "seen",
    valid: Valid = 0.0,
    test: Test = 0.0,
    reading: Reading = AS_IT_IS,
    as_json: Json = False,
) -> None:
    """Train on a stream of data part by part, and measure the model after each part.

    Several processes can learn one graph together: torchrun --nproc-per-node 2 -m dicgrl run.
    """
    divided = is_divided(disentangled, plain)
    if model == "auto":
        processes.refuse("--model auto", "name the model")
    resume = resume or (processes.restarted() and out is not None and not merged)
    stream = load_stream(source, valid=valid, test=test, seed=seed, reading=reading)
    taught, tests = stream.taught_tests()
    if taught:
        warn(
            f"{taught:,} of {counted(tests, 'test triple')} are training triples, too: results "
            "look better than they are"
        )
    from dicgrl.jobs.plan import plan_runs
    from dicgrl.jobs.race import AUTO, begun_with, race

    if model == AUTO:
        model = begun_with(out, stream, resume=resume)
        if model is None:
            found = race(
                stream, source, recipe=recipe, changes=changes or [], seed=seed, device=device
            )
            typer.echo(str(found), err=True)
            model = found.winner
    plan = plan_runs(
        stream,
        source,
        model=model,
        strategies=None if strategy is None else [name.strip() for name in strategy.split(",")],
        recipe=recipe,
        disentangled=divided,
        changes=changes or [],
        merged=merged,
        out=out,
        resume=resume,
        keep=keep,
        seed=seed,
        device=device,
        protocol=protocol,
    )
    if merged:
        _run_merged(plan.runs[0], as_json)
    else:
        _run_parts(plan, as_json)


def _run_merged(planned: PlannedRun, as_json: bool) -> None:
    from dicgrl.report.merged_table import merged_table
    from dicgrl.report.progress_bars import training_bar, units
    from dicgrl.training import Schedule

    examples = sum(len(part.train) for part in planned.stream)
    epochs = planned.recipe.settings.of(Schedule).fitted(examples).epochs
    with training_bar(planned.title, epochs, *units(task_named(planned.stream.task))) as on_epoch:
        results = planned.execute(on_epoch=lambda _, report: on_epoch(report))
    if as_json:
        show_json(results)
    else:
        show(merged_table(results))


def _run_parts(plan: Plan, as_json: bool) -> None:
    from dicgrl.report.comparison_table import comparison_table
    from dicgrl.report.curves import draw_curves
    from dicgrl.report.reliability_picture import draw_reliability
    from dicgrl.store.run_folder import RunFolder as Folder

    every = []
    for planned in plan.runs:
        results = _watched(planned, as_json)
        every.append(results)
        if planned.out is not None and processes.writes():
            draw_curves([results], Folder(planned.out).curves_file)
            draw_reliability(results, Folder(planned.out).reliability_file)
    several = len(every) > 1
    if not processes.writes():
        return
    if several and plan.out is not None:
        draw_curves(every, Folder(plan.out).curves_file)
    if as_json:
        show_json(every if several else every[0])
        return
    if several:
        show(comparison_table(every))
    if plan.out is None:
        show("No model was kept; --out FOLDER keeps it.")
    else:
        show(f"The curves are in {Folder(plan.out).curves_file}")


def _watched(planned: PlannedRun, as_json: bool) -> dict[str, Any]:
    """Execute a run under a progress bar, with a table after every part."""
    from dicgrl.report.part_table import part_table
    from dicgrl.report.progress_bars import parts_bar, units

    parts = len(planned.stream)
    is_shown = as_json
    bar = parts_bar(planned.title, parts, *units(task_named(planned.stream.task)))
    with interruptible(planned.what_is_kept), bar as (on_epoch, pause):

        def on_part(results: dict[str, Any]) -> None:
            nonlocal is_shown
            if not as_json:
                is_shown = True
                with pause():
                    show(part_table(results))

        results = planned.execute(on_part=on_part, on_epoch=on_epoch)
    if not is_shown:  # the run that was to be resumed had come to its end
        show(part_table(results))
    return results
