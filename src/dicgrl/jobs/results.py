"""The results of a run: what it is, and what was measured after each of its parts."""

from __future__ import annotations

from typing import Any

from dicgrl.common.devices import device_name, peak_memory
from dicgrl.graph import Stream
from dicgrl.learner import Learner, part_results
from dicgrl.recipes import Recipe
from dicgrl.store.run_folder import configuration


def about_run(stream: Stream, recipe: Recipe) -> dict[str, Any]:
    """What a run says of its data and recipe, in config.json and results.json."""
    return {
        "dataset": stream.name,
        "task": str(stream.task),
        "recipe": recipe.name,
        "published": recipe.published,
    }


def results_of(learner: Learner, about: dict[str, Any]) -> dict[str, Any]:
    """What results.json says.

    Args:
        learner: A learner that was evaluated after each part.
        about: What `about_run` says.
    """
    config = configuration(learner)
    found = learner.evaluations()
    last = found[-1]
    return {
        **about,
        "model": config["model"],
        "strategy": config["strategy"],
        "seed": learner.seed,
        "device": device_name(learner.run.device),
        "settings": config["settings"],
        "protocol": config["protocol"],
        "parts": [part_results(*entry) for entry in zip(learner.reports, found, strict=True)],
        "forgetting": last.forgetting,
        "backward_transfer": last.backward_transfer,
        "forward_transfer": last.forward_transfer,
        "retention": last.retention,
        "peak_memory_bytes": peak_memory(learner.run.device),
    }
