"""The snapshot protocol: every test set is ranked as if nothing had arrived after its part.

Published continual embeddings (LKGE, IncDE, FastKGE and what is compared with them) are measured
so: the newest model ranks the test set of part j among the entities that were known after part j,
and leaves out the true answers that were known then. What came later never competes, which is
kinder than ranking among all that is known now; it is measured beside that, under names that say
so (`mrr_snapshot`), and never instead of it.
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
    """Refuse a protocol that is not known, or is of another task.

    Args:
        protocol: seen, or snapshot, which is measured beside it.
        trainer: What holds the model.

    Raises:
        UserError: There is no such protocol, or it ranks what the task does not.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol == "snapshot" and not issubclass(trainer, LinkTrainer):
        raise UserError(
            "protocol snapshot ranks entities, as link prediction does; classes of nodes are "
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
        del metrics["mean_rank"]  # of a number of candidates that differs from set to set
        found.append({name + SNAPSHOT: value for name, value in metrics.items()})
    return found
