"""Weights of triples in training: by how often they are asked, how often or when they arrived."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dicgrl.graph import KnowledgeGraph
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.times import NEVER
from dicgrl.training.known import times_asked


def weighs_arrivals(weighting: str) -> bool:
    """Whether a weighting depends on how often, or when, triples arrived."""
    return weighting in ("count", "recency")


def weights_of(
    graph: KnowledgeGraph, weighting: str, examples: Tensor, relations: int = 0
) -> Tensor | None:
    """Weights of training triples, scaled to mean 1, [n]; None if all are equal.

    - `frequency`: lower, the more often their questions are asked: with counts over all known
      triples, 1 / sqrt(4 + #(h, r, ?) + #(?, r, t)), after RotatE (Sun et al. 2019), which has 6
      instead of 4;
    - `count`: 1 + ln(how often they arrived);
    - `recency`: 1 / sqrt(1 + their age in parts).

    Args:
        graph: The graph.
        weighting: One of these, or `even`.
        examples: The triples.
        relations: Number of relations if the triples are all those of the graph, which are then
            counted on their device.
    """
    if weighting == "even":
        return None
    if weighs_arrivals(weighting):
        triples = examples.cpu().numpy()
        if weighting == "count":
            each = 1 + np.log(graph.arrivals(triples)[0])
        else:
            each = 1 / np.sqrt(1 + ages(graph, triples))
        return torch.from_numpy((each / each.mean()).astype(np.float32)).to(examples.device)
    if relations:
        asked = times_asked(examples, relations)
    else:
        counted = graph.times_asked(examples.cpu().numpy())
        asked = torch.from_numpy(counted).to(examples.device)
    weight = (4.0 + asked).rsqrt()
    return weight / weight.mean()


def ages(graph: KnowledgeGraph, triples: IntArray) -> npt.NDArray[np.float64]:
    """Age of training triples in parts.

    Counts the parts since a triple last arrived. If it has a date, its age is the time until the
    newest date known, scaled so that the whole time span has as many parts as there are.
    """
    found = (graph.num_parts - 1 - graph.arrivals(triples)[1]).astype(np.float64)
    first, last = graph.period()
    if last > first:
        dates = graph.dates(triples)
        dated = dates != NEVER
        found[dated] = (last - dates[dated]) / (last - first) * graph.num_parts
    return found
