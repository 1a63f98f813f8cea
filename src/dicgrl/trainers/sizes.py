"""How much memory a part of a knowledge graph takes, and which settings would take less."""

from __future__ import annotations

from dicgrl.common.memory import Need, free_on_host
from dicgrl.common.options import Sections
from dicgrl.models import KnowledgeModel
from dicgrl.models.division import VectorSettings
from dicgrl.training.adam import state_bytes
from dicgrl.training.all_entities import step_bytes
from dicgrl.training.settings import LinkSchedule, LinkTraining

_NEGATIVE_BYTES = 20  # at least: its id twice, its score


def needs(
    model: KnowledgeModel, settings: Sections, schedule: LinkSchedule, entities: int, triples: int
) -> list[Need]:
    """Memory for new entities, and for steps on new triples.

    Args:
        model: The model.
        settings: Its settings.
        schedule: How it will be trained.
        entities: Number of new entities.
        triples: Number of triples.
    """
    table, vectors = model.entities, settings.of(VectorSettings)
    gained = table.gains(entities * model.count)
    now = (schedule.optimizer, vectors.precision)
    takes = {
        way: round(gained * table.width * state_bytes(table, *way, gained))
        for way in (now, ("rowwise", "float32"), ("rowwise", "bfloat16"))
    }
    less = [
        f"optimizer={rule} and precision={precision} {size / 1e9:,.1f} GB"
        for (rule, precision), size in takes.items()
        if size < 0.9 * takes[now]
    ]
    negatives, batch = settings.of(LinkTraining).negatives, min(schedule.batch, triples)
    if negatives:
        # On a GPU, kernels may only need ids and scores.
        negative = _NEGATIVE_BYTES if model.device.type == "cuda" else model.link_bytes()
        step = batch * negatives * negative
    else:
        on_gpu = model.device.type == "cuda"
        step = step_bytes(batch, model.num_entities + entities, model.length, on_gpu=on_gpu)
    whole = "" if model.length == vectors.dim else f" (vectors of {model.length:,} numbers)"
    return [
        Need(
            takes[now],
            f"dim={vectors.dim}{whole}, optimizer={schedule.optimizer} and "
            f"precision={vectors.precision} for {entities:,} new entities",
            _instead(less, model.device.type, takes[now]),
        ),
        Need(
            step,
            f"batch={schedule.batch} and negatives={negatives}",
        ),
    ]


def _instead(less: list[str], device: str, needed: int) -> str:
    """Suggest what would fit if a device is too small, for a message: other settings, or the host.

    Example:
        >>> _instead(["optimizer=rowwise and precision=float32 1.0 GB"], "cpu", 2_000_000_000)
        'with optimizer=rowwise and precision=float32 1.0 GB'
    """
    ways = [f"with {', '.join(less)}"] if less else []
    host = None if device == "cpu" else free_on_host()
    if host is not None and host > needed:
        ways.append(f"--device cpu has {host / 1e9:,.1f} GB free")
    return "; ".join(ways)
