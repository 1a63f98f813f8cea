"""The results of a run: what it is, and what was measured after each of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicgrl.common.devices import device_name, peak_memory
from dicgrl.graph import Stream
from dicgrl.learner import Learner
from dicgrl.recipes import Recipe
from dicgrl.store.results import earlier, newest_parts


def about_run(stream: Stream, recipe: Recipe) -> dict[str, Any]:
    """What a run says of its data and recipe, in its configuration and in results.json."""
    return {
        "dataset": stream.name,
        "task": stream.task,
        "recipe": recipe.name,
        "published": recipe.published,
    }


def results_of(learner: Learner, about: Mapping[str, Any]) -> dict[str, Any]:
    """What results.json says: of the newest parts, so that it does not grow for ever.

    Args:
        learner: A learner that was evaluated after each part.
        about: What `about_run` says.
    """
    shown = newest_parts(learner.tests)
    found = learner.evaluations()[-shown:]
    last = found[-1]
    return {
        **about,
        "model": learner.settings.model,
        "strategy": learner.settings.strategy,
        "seed": learner.seed,
        "device": device_name(learner.trainer.device),
        "settings": learner.settings.as_dict(),
        "protocol": learner.strategy.describe_protocol(learner.trainer),
        **earlier(len(learner.reports), shown),
        "parts": [
            report.results(after)
            for report, after in zip(learner.reports[-shown:], found, strict=True)
        ],
        "forgetting": last.forgetting,
        "backward_transfer": last.backward_transfer,
        "forward_transfer": last.forward_transfer,
        "retention": last.retention,
        "peak_memory_bytes": peak_memory(learner.trainer.device),
    }
