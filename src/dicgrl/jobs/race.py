"""Chooses the decoder for a graph by a short race (`--model auto`).

Each decoder learns the first part for a fifth of the usual epochs; the best validation MRR wins. In
total this costs four fifths of the epochs of a first part, whatever the stream.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from dicgrl.errors import ModelWarning, UserError
from dicgrl.graph import Stream
from dicgrl.jobs.choose import Changes, chosen_recipe
from dicgrl.learner import Learner
from dicgrl.store.run_folder import RunFolder
from dicgrl.tasks import LinkPrediction, task_named
from dicgrl.training import Schedule

AUTO = "auto"
RUNNERS = ("transe", "rotate", "complex", "distmult")
_SHARE = 5  # one in so many epochs


@dataclass(frozen=True, slots=True)
class Race:
    """What a race found.

    Attributes:
        validation: The validation MRR of each decoder, the best first.
        seconds: How long it took.
    """

    validation: dict[str, float]
    seconds: float

    @property
    def winner(self) -> str:
        """The decoder to learn by."""
        return next(iter(self.validation))

    def __str__(self) -> str:
        found = ", ".join(f"{name} {100 * mrr:.1f}" for name, mrr in self.validation.items())
        return f"race of decoders, validation MRR: {found} ({self.seconds:.0f} s)"


def race(
    stream: Stream,
    source: str = "",
    *,
    recipe: str = "best",
    changes: Changes = (),
    seed: int = 0,
    device: str = "auto",
) -> Race:
    """Let decoders learn the first part of a stream for a while.

    Args:
        stream: The stream.
        source: Where it comes from, as for `plan_runs`.
        recipe: As for `plan_runs`.
        changes: As for `plan_runs`.
        seed: Seed of every random choice.
        device: auto, cpu or cuda.

    Raises:
        UserError: The stream is no knowledge graph, or its first part has no validation triples.
    """
    if stream.task != LinkPrediction.name:
        models = " or ".join(sorted(task_named(stream.task).models()))
        raise UserError(
            f"--model auto is for knowledge graphs; {stream.name} is not one: use {models}"
        )
    if not len(stream[0].valid):
        raise UserError(
            "--model auto compares decoders on validation triples, and the first part has none: "
            "hold some out, as in --valid 0.05"
        )
    started = time.perf_counter()
    found = {}
    for name in RUNNERS:
        chosen = chosen_recipe(
            stream, source, model=name, recipe=recipe, changes=changes, strategy="lower"
        ).settings
        epochs = chosen.of(Schedule).fitted(len(stream[0].train)).epochs
        short = {"epochs": max(epochs // _SHARE, 1), "patience": 0}
        learner = Learner(settings=chosen.changed(short), seed=seed, device=device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # that they know little is no surprise
            found[name] = learner.learn(stream[0]).validation or 0.0
    best = dict(sorted(found.items(), key=lambda pair: -pair[1]))
    return Race(best, time.perf_counter() - started)


def begun_with(out: Path | None, stream: Stream, *, resume: bool) -> str | None:
    """The model of a run of a stream that is to be resumed; None where there is none."""
    if out is None or not resume or not RunFolder(out).exists():
        return None
    config = RunFolder(out).config()
    return config["model"] if config.get("dataset") == stream.name else None
