"""Two streams that are learned in a blink: a ring of entities, and two circles of nodes."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from dicgrl import KnowledgeStream, Learner, NetworkStream
from dicgrl.readers import read_stream

LINKS = {"dim": 8, "batch": 16, "epochs": 3, "negatives": 4, "validate_every": 1, "lr": 0.05}
NODES = {"epochs": 3, "hidden": 4, "lr": 0.05}
DIVIDED = {"components": 4, "top": 2}
STRATEGIES = ("frozen", "lower", "upper", "warm", "ewc", "emr", "gem", "dicgrl", "fresh")
RIVALS = ("lkge", "incde", "fastkge")  # of links and plain vectors alone


def write_ring(folder: Path, parts: int = 3) -> Path:
    """Entities in a circle, three relations; the last ten arrive five at a time."""
    given: list[list[str]] = [[] for _ in range(parts)]
    for i in range(10 + 5 * parts):
        for step in (1, 2, 5):
            later = i + step
            if later < 10 + 5 * parts:
                number = max(0, (later - 10) // 5)
                given[number].append(f"e{i}\tplus {step}\te{later}\n")
    for number, rows in enumerate(given):
        place = folder / str(number)
        place.mkdir(parents=True)
        sets = {"valid": rows[3::9], "test": rows[5::9]}
        sets["train"] = [row for row in rows if row not in sets["valid"] + sets["test"]]
        for name, lines in sets.items():
            (place / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def write_circles(folder: Path) -> Path:
    """Two circles of nodes, a class each; a third class arrives with the last part."""
    folder.mkdir(parents=True)
    rows = ["node,class,part,split,size,side\n"]
    for i in range(40):
        name = "green" if i > 35 else ("red", "blue")[i % 2]
        split = ("train", "train", "valid", "test")[i // 2 % 4]
        rows.append(f"n{i},{name},{min(2, i // 16)},{split},{i % 3},{i % 2}\n")
    (folder / "nodes.csv").write_text("".join(rows), encoding="utf-8")
    edges = [f"n{i},n{(i + 2) % 40}\n" for i in range(40)]
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges), encoding="utf-8")
    return folder


def write_growing_circles(folder: Path) -> tuple[Path, Path]:
    """The circles but for their last part, and that part alone, whose edges name old nodes."""
    whole = write_circles(folder / "whole")
    head, *rows = (whole / "nodes.csv").read_text(encoding="utf-8").splitlines()
    nodes = [row.split(",") for row in rows]  # node, class, part, split, features
    edges = (whole / "edges.csv").read_text(encoding="utf-8").splitlines()[1:]
    last = {node for node, _, part, *_ in nodes if part == "2"}
    places = folder / "circles", folder / "more"
    for place, late in zip(places, (False, True), strict=True):
        place.mkdir()
        kept = [
            f"{node},{cls},{0 if late else part},{','.join(others)}"
            for node, cls, part, *others in nodes
            if (node in last) == late
        ]
        links = [edge for edge in edges if bool(last & set(edge.split(","))) == late]
        (place / "nodes.csv").write_text("\n".join([head, *kept]), encoding="utf-8")
        (place / "edges.csv").write_text("\n".join(["source,target", *links]), encoding="utf-8")
    return places


@cache
def ring() -> KnowledgeStream:
    with tempfile.TemporaryDirectory() as place:
        stream = read_stream(write_ring(Path(place) / "ring"))
    assert isinstance(stream, KnowledgeStream)
    return stream


@cache
def circles() -> NetworkStream:
    with tempfile.TemporaryDirectory() as place:
        stream = read_stream(write_circles(Path(place) / "circles"))
    assert isinstance(stream, NetworkStream)
    return stream


def learner_of(kind: str, strategy: str = "lower", seed: int = 0, **changes: Any) -> Learner:
    """A small learner of links (plain or divided) or nodes."""
    settings = {
        "links": LINKS,
        "divided": LINKS | DIVIDED,
        "nodes": NODES | DIVIDED,
    }[kind] | changes
    if strategy == "dicgrl":  # whose recipe learns later parts in 50 epochs and more
        brief = {"later_epochs": 4} if kind == "nodes" else {"arrive_epochs": 3, "later_epochs": 4}
        settings = brief | settings | DIVIDED
    model = "gat" if kind == "nodes" else "transe"
    return Learner(model, strategy, seed=seed, device="cpu", **settings)


def stream_of(kind: str) -> KnowledgeStream | NetworkStream:
    return circles() if kind == "nodes" else ring()


def taught(learner: Learner, parts: int = 3, *, evaluate: bool = True) -> Learner:
    """The learner after so many parts of its stream."""
    stream = stream_of("nodes" if learner.trainer.metric == "accuracy" else "links")
    for number in range(learner.num_parts, parts):
        learner.learn(stream[number], probe=True)
        if evaluate:
            learner.evaluate()
    return learner
