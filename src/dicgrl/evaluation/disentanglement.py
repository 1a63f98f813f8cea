"""Is routing meaningful? Compares the components of relations with their true aspects."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from dicgrl.graph.arrays import FloatArray, IntArray


def overlap(chosen: IntArray, count: int) -> FloatArray:
    """Share of components that relations have in common, [relations, relations] (Jaccard).

    Args:
        chosen: Components of each relation, [relations, n].
        count: Number of components, K.
    """
    member = np.zeros((len(chosen), count), dtype=np.float32)
    np.put_along_axis(member, chosen, 1.0, axis=1)
    common = member @ member.T
    size = member.sum(1)
    jaccard: FloatArray = common / (size[:, None] + size[None] - common)
    return jaccard


def recovery(chosen: IntArray, count: int, aspect_of: IntArray) -> dict[str, float]:
    """How well components distinguish relations of one aspect from those of another.

    Returns:
        `separation`: chance that two relations of one aspect overlap more than two of different
        aspects (ties half; 0.5 is chance, 1 is perfect). `rand`: adjusted Rand index between the
        aspects and as many clusters of relations by overlap (0 is chance, 1 is perfect).

    Example:
        >>> recovery(np.array([[0, 1], [0, 1], [2, 3], [2, 3]]), 4, np.array([0, 0, 1, 1]))
        {'separation': 1.0, 'rand': 1.0}
    """
    shared = overlap(chosen, count)
    first, second = np.triu_indices(len(chosen), 1)
    same = aspect_of[first] == aspect_of[second]
    value = shared[first, second]
    difference = value[same][:, None] - value[~same][None]
    separation = float((difference > 0).mean() + (difference == 0).mean() / 2)
    tree = linkage(squareform(1 - shared, checks=False), method="average")
    count = len(np.unique(aspect_of))
    clusters = fcluster(tree, t=count, criterion="maxclust").astype(np.int64)
    return {"separation": separation, "rand": adjusted_rand(aspect_of, clusters)}


def adjusted_rand(first: IntArray, second: IntArray) -> float:
    """Agreement of two groupings, corrected for chance (Hubert and Arabie 1985)."""
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)

    def pairs(counts: FloatArray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    together, rows, columns = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = rows * columns / pairs(np.array([table.sum()]))
    most = (rows + columns) / 2
    return 1.0 if most == expected else (together - expected) / (most - expected)
