"""Sets triples or nodes aside for validation and testing, seeded."""

from __future__ import annotations

import numpy as np

from dicgrl.errors import UserError
from dicgrl.graph.arrays import BoolArray, IntArray
from dicgrl.graph.knowledge import triple_keys


def hold_out(
    triples: IntArray,
    valid: float,
    test: float,
    generator: np.random.Generator,
    taught: BoolArray | None = None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Choose positions of train, valid and test triples; each keeps the order of the rows.

    A triple that is the only one left to mention an entity or a relation stays in train, so that
    nothing is asked about that was never taught; so does one that is there more than once, since
    its copy would give the answer away, and one that was `taught` before. Fewer triples than asked
    for are set aside where the graph is too sparse.

    Example:
        >>> rows = np.array([[0, 0, 1], [1, 0, 0], [0, 0, 2], [2, 0, 0]])
        >>> [len(part) for part in hold_out(rows, 0.25, 0.25, np.random.default_rng(0))]
        [2, 1, 1]
    """
    check_shares(valid, test)
    order = generator.permutation(len(triples))
    shuffled = triples[order]
    needed = np.zeros(len(triples), dtype=np.bool_)
    # The first triple (in random order) that mentions something is the one that teaches it.
    ends = shuffled[:, [0, 2]].ravel()
    needed[np.unique(ends, return_index=True)[1] // 2] = True
    needed[np.unique(shuffled[:, 1], return_index=True)[1]] = True
    _, group, copies = np.unique(triple_keys(shuffled), return_inverse=True, return_counts=True)
    needed |= copies[group] > 1
    if taught is not None:
        needed |= taught[order]
    return _divide(order, ~needed, valid, test)


def hold_out_nodes(
    labels: IntArray, valid: float, test: float, generator: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Choose positions of train, valid and test nodes; one node of every class stays in train.

    Nodes without a class (label -1) are in none of the three.

    Example:
        >>> labels = np.array([0, 0, 1, 1, -1])
        >>> [len(part) for part in hold_out_nodes(labels, 0.25, 0.25, np.random.default_rng(0))]
        [2, 1, 1]
    """
    check_shares(valid, test)
    order = generator.permutation(np.flatnonzero(labels >= 0))
    needed = np.zeros(len(order), dtype=np.bool_)
    needed[np.unique(labels[order], return_index=True)[1]] = True
    return _divide(order, ~needed, valid, test)


def check_shares(valid: float, test: float) -> None:
    """Refuse shares that leave nothing to learn from."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise UserError(
            f"valid={valid} and test={test}: shares are at least 0 and together below 1"
        )


def _divide(
    order: IntArray, free: BoolArray, valid: float, test: float
) -> tuple[IntArray, IntArray, IntArray]:
    eligible = order[free]
    count_valid, count_test = round(valid * len(order)), round(test * len(order))
    if count_valid + count_test > len(eligible):  # share out what there is in the same proportion
        count_valid = round(len(eligible) * count_valid / (count_valid + count_test))
        count_test = len(eligible) - count_valid
    held = count_valid + count_test
    return (
        np.sort(np.concatenate([order[~free], eligible[held:]])),
        np.sort(eligible[:count_valid]),
        np.sort(eligible[count_valid:held]),
    )
