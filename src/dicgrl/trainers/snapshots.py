"""The snapshot protocol: every test set is ranked as if nothing had arrived after its part.

Published continual embeddings (LKGE, IncDE, FastKGE and what they are compared with) are measured
like this: the newest model ranks the test set of part j among the entities that were known after
part j, and filters by the facts known then. Later entities never compete, which is more lenient
than ranking among everything known now. It is reported in addition, under names that say so
(`mrr_snapshot`), and never instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dicgrl.errors import UserError, unknown_name
from dicgrl.evaluation import Ranker, ranking_metrics
from dicgrl.evaluation.metrics import SNAPSHOT
from dicgrl.evaluation.ranks import Ranks
from dicgrl.graph.part import SPLITS
from dicgrl.trainers.links import LinkTrainer
from dicgrl.trainers.trainer import Trainer

PROTOCOLS = ("seen", "snapshot")


def check_protocol(protocol: str, trainer: type[Trainer]) -> None:
    """Refuse a protocol that is unknown, or that does not apply to the task.

    Args:
        protocol: seen, or snapshot, which is reported in addition.
        trainer: The type of trainer.

    Raises:
        UserError: There is no such protocol, or it does not apply.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol == "snapshot" and not issubclass(trainer, LinkTrainer):
        raise UserError(
            "protocol snapshot ranks entities, as in link prediction; classes of nodes are "
            "measured by protocol seen"
        )


def snapshot_ranks(trainer: LinkTrainer, part: int, triples: Tensor) -> Ranks:
    """Ranks of triples among the entities known after a part, filtered by what was known then."""
    known = torch.cat([trainer.examples(split, 0, part + 1) for split in SPLITS])
    ranker = Ranker(known, trainer.model.num_relations, retired=trainer.retired)
    return ranker.rank(trainer.model, triples, range(entities_after(trainer, part)))


def entities_after(trainer: LinkTrainer, part: int) -> int:
    """How many entities were known after a part."""
    stop: int = trainer.taken[part].new_entities.stop  # type: ignore[attr-defined]
    return stop


def snapshot_metrics(
    trainer: Trainer, parts: Sequence[int], sets: Sequence[Tensor]
) -> list[dict[str, float]]:
    """Metrics of each part's test set, under names that end with `_snapshot`."""
    check_protocol("snapshot", type(trainer))
    assert isinstance(trainer, LinkTrainer)
    found = []
    for part, triples in zip(parts, sets, strict=True):
        metrics = ranking_metrics(snapshot_ranks(trainer, part, triples))
        del metrics["mean_rank"]  # the number of candidates differs from set to set
        found.append({name + SNAPSHOT: value for name, value in metrics.items()})
    return found
