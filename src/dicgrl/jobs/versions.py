"""Compares versions of a run (what changed, which rows to upsert), and verifies the run."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, Graph, KnowledgeGraph, KnowledgePart, NetworkGraph
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.times import NEVER
from dicgrl.graph.times import told as moment_told
from dicgrl.learner import Learner
from dicgrl.store.run_folder import RunFolder
from dicgrl.store.tensors import changed_rows
from dicgrl.store.verify import Findings


class FactRows(NamedTuple):
    """Facts of a graph.

    Attributes:
        rows: Their ids, [n, fields].
        fields: The vocabulary of each field.
        dates: The date of each fact, as far as it is known, [n].
    """

    rows: IntArray
    fields: tuple[str, ...]
    dates: IntArray


class Pair(NamedTuple):
    """What two versions of a run knew.

    Attributes:
        before: The graph of the first.
        after: That of the second.
        same_line: Whether one was made from the other; then ids mean the same in both.
    """

    before: Graph[Any]
    after: Graph[Any]
    same_line: bool

    def earlier(self, name: str, ids: IntArray) -> IntArray:
        """Ids of the first version in terms of the second; below 0 where they are not known there.

        Different ones stay different.
        """
        mine, theirs = (graph.vocabularies()[name] for graph in self[:2])
        if self.same_line:
            return np.where(ids < len(theirs), ids, -1 - ids)
        found = theirs.found(mine, ids)
        return np.where(found < 0, -1 - ids, found)


class Models(NamedTuple):
    """Two versions of a run whose models were kept.

    Attributes:
        before: The first.
        after: The second.
        known: What they knew.
    """

    before: Learner
    after: Learner
    known: Pair

    @classmethod
    def loaded(cls, folder: Path, before: int | str, after: int | str | None) -> Models:
        """Both versions of a run.

        Raises:
            UserError: There is no such version, or its model was not kept.
        """
        one, other = (Learner.load(folder, at=at, device="cpu") for at in (before, after))
        same_line = _same_line(RunFolder(folder), one.version, other.version)
        return cls(one, other, Pair(one.trainer.graph, other.trainer.graph, same_line))


def _same_line(run: RunFolder, before: int, after: int) -> bool:
    one, other = ([version.number for version in run.line(at)] for at in (before, after))
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def difference(folder: Path, before: int | str, after: int | str, *, k: int = 10) -> dict[str, Any]:
    """What changed between two versions, ready for JSON.

    Facts and labels are those of any version; vectors can only be compared if both models were
    kept, and `not_kept` names the versions whose model was not.

    Args:
        folder: The run.
        before: A version, or a tag.
        after: Another one.
        k: How many facts, and rows that moved farthest, to name.

    Raises:
        UserError: There is no such version.
    """
    run = RunFolder(folder)
    one, other = (run.number(at) for at in (before, after))
    with run.source() as source:
        missing = [number for number in (one, other) if number not in source.models()]
    if missing:
        known = Pair(_graph_at(run, one), _graph_at(run, other), _same_line(run, one, other))
        vectors = {}
    else:
        models = Models.loaded(folder, one, other)
        known, vectors = models.known, _vector_difference(models, k)
    return {
        "from": one,
        "to": other,
        "facts": _fact_difference(known, k),
        "labels": {name: _label_difference(known, name) for name in known.after.vocabularies()},
        "vectors": vectors,
        "not_kept": missing,
    }


def _graph_at(run: RunFolder, number: int) -> Graph[Any]:
    """What a version knew; that needs no model."""
    history = run.history(number)
    first = next(change.part for change in history if change.part is not None)
    kind: Any = KnowledgeGraph if isinstance(first, KnowledgePart) else NetworkGraph
    graph: Graph[Any] = kind.for_part(first)
    graph.replay(history)
    return graph


def verified(folder: Path) -> Findings:
    """Check a run: what its store says, and that its newest version can be loaded.

    Raises:
        DataError: There is no run.
    """
    run = RunFolder(folder)
    found = run.verify()
    if found.clean and found.versions:
        found.tried("loading", lambda: Learner.load(folder, device="cpu"))
    return found


def compacted(folder: Path, keep: str | None = None, wait: float = 0.0) -> dict[str, int]:
    """Compact a run, and say how many bytes it took before and takes now.

    Args:
        folder: The run.
        keep: Which versions keep their model from now on; by default as before.
        wait: Seconds to wait for another process that is writing.

    Raises:
        BusyError: Another process is writing to the folder.
    """
    run = RunFolder(folder)
    before = run.overview()["bytes"]
    run.compact(keep, wait)
    return {"bytes_before": before, "bytes": run.overview()["bytes"]}


@singledispatch
def _facts(graph: Any) -> list[FactRows]:
    """The facts of a graph, of each kind that it has."""
    raise UserError(f"there is no difference of a {type(graph).__name__}")


@_facts.register
def _(graph: KnowledgeGraph) -> list[FactRows]:
    rows = np.concatenate([graph.rows(split) for split in SPLITS])
    return [FactRows(rows, ("entities", "relations", "entities"), graph.dates(rows))]


@_facts.register
def _(graph: NetworkGraph) -> list[FactRows]:
    labelled = np.flatnonzero(graph.labels >= 0)
    classes = np.stack([labelled, graph.labels[labelled]], axis=1)
    return [
        FactRows(rows, ("nodes", other), np.full(len(rows), NEVER))
        for rows, other in ((graph.edges, "nodes"), (classes, "classes"))
    ]


def _fact_difference(pair: Pair, k: int) -> dict[str, Any]:
    sides = ("added", "removed")
    told: dict[str, Any] = {side: {"count": 0, "some": [], "dates": []} for side in sides}
    told["redated"] = 0
    graphs = pair[:2]
    for mine, theirs in zip(*map(_facts, graphs), strict=True):
        earlier = np.stack(
            [pair.earlier(name, mine.rows[:, i]) for i, name in enumerate(mine.fields)], axis=1
        )
        removed, added = _apart(earlier, theirs.rows)
        told["redated"] += _redated(FactRows(earlier, mine.fields, mine.dates), theirs)
        for side, facts, rows, graph in (
            ("removed", mine, removed, graphs[0]),
            ("added", theirs, added, graphs[1]),
        ):
            told[side]["count"] += len(rows)
            rows = rows[: k - len(told[side]["some"])]
            some = facts.rows[rows]
            words = [
                graph.vocabularies()[name].labels(some[:, i]) for i, name in enumerate(facts.fields)
            ]
            told[side]["some"] += [list(fact) for fact in zip(*words, strict=True)]
            told[side]["dates"] += [moment_told(date) for date in facts.dates[rows].tolist()]
    return told


def _redated(one: FactRows, other: FactRows) -> int:
    """How many facts both have, each with a date of its own."""
    if not ((one.dates != NEVER).any() or (other.dates != NEVER).any()):
        return 0
    before, after = (
        {(*row, date) for row, date in zip(facts.rows.tolist(), facts.dates.tolist(), strict=True)}
        for facts in (one, other)
    )
    both = {fact[:-1] for fact in before} & {fact[:-1] for fact in after}
    return sum(fact[:-1] in both for fact in after - before)


def _apart(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of rows that only one of two arrays has, each row once."""
    every, which = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    which = which.reshape(-1)
    first, second = which[: len(one)], which[len(one) :]
    known = np.zeros((2, len(every)), dtype=np.bool_)
    known[0, first], known[1, second] = True, True
    alone = []
    for rows, there in ((first, known[1]), (second, known[0])):
        _, once = np.unique(rows, return_index=True)
        alone.append(np.sort(once[~there[rows[once]]]))
    return alone[0], alone[1]


def _label_difference(pair: Pair, name: str) -> dict[str, int]:
    mine, theirs = (graph.vocabularies()[name] for graph in pair[:2])
    before, after = list(mine), list(theirs)
    told = {
        "added": len(set(after) - set(before)),
        "removed": len(set(before) - set(after)),
        "renamed": 0,
    }
    if pair.same_line:
        told["renamed"] = sum(a != b for a, b in zip(before, after, strict=False))
    return told


def _vector_difference(models: Models, k: int) -> dict[str, Any]:
    (mine, _), (theirs, labels) = (learner.ask.arrays() for learner in models[:2])
    told = {}
    for name, vocabulary in labels.items():
        ids, at = _in_both(models.known, name, len(mine[name]))
        before, after = mine[name][ids].flatten(1), theirs[name][at].flatten(1)
        changed = changed_rows(before, after)
        distance = (after[changed].double() - before[changed].double()).norm(dim=1)
        far = distance.topk(min(k, len(distance)))
        movers = vocabulary.labels(at[changed[far.indices]].numpy())
        told[name] = {
            "rows": len(theirs[name]),
            "changed": len(changed),
            "new": len(theirs[name]) - len(at),
            "total": float(distance.sum()),
            "movers": [
                {"label": label, "name": models.after.names.of(label), "distance": moved}
                for label, moved in zip(movers, far.values.tolist(), strict=True)
            ],
        }
    return told


def _in_both(pair: Pair, name: str, rows: int) -> tuple[Tensor, Tensor]:
    """Rows of what both versions know, in ids of either."""
    ids = np.arange(rows)
    at = pair.earlier(name, ids)
    return torch.from_numpy(ids[at >= 0]), torch.from_numpy(at[at >= 0])


def changed_ids(models: Models, name: str) -> Tensor:
    """Rows that are other than before, or new, in ids of the later version, rising.

    What is no answer any more has no row to take; what is one again has.
    """
    (mine, _), (theirs, _) = (learner.ask.arrays() for learner in models[:2])
    pair = models.known
    ids, at = _in_both(pair, name, len(mine[name]))
    same = torch.zeros(len(theirs[name]), dtype=torch.bool)
    same[at] = True
    same[at[changed_rows(mine[name][ids].flatten(1), theirs[name][at].flatten(1))]] = False
    if pair.same_line:  # what was renamed has another key elsewhere
        before, after = (list(graph.vocabularies()[name]) for graph in pair[:2])
        renamed = [i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
        same[renamed] = False
    back = pair.earlier(name, pair.before.retired(name))
    same[torch.from_numpy(back[back >= 0])] = False
    same[torch.from_numpy(pair.after.retired(name))] = True
    return (~same).nonzero()[:, 0]


def gone_labels(pair: Pair, name: str) -> list[str]:
    """Labels that are not known any more, or that no fact speaks of."""
    before, after = (_answering(graph, name) for graph in pair[:2])
    return sorted(before - after)


def _answering(graph: Graph[Any], name: str) -> set[str]:
    labels = graph.vocabularies()[name]
    return set(labels.labels(np.setdiff1d(np.arange(len(labels)), graph.retired(name))))
