"""How far old points of a map move while a graph grows, and what it keeps of neighbourhoods.

    python benchmarks/stable_map.py RUN [--hold 0.03 0.01 0.1] [--rivals]
    python benchmarks/stable_map.py --size 100000 [--length 200] [--json FILE]

The first form follows the versions of a run whose models are kept, such as that of `dicgrl run
films`. After each it prints, for the map that goes on from the one before, for fresh ones of the
same vectors, and with `--rivals` for those of scikit-learn and openTSNE: how far old points are
from where they were on the map before of the same kind (half of them, 95 % of them, in units of its
spread); how far from where they were first; the share of the 15 nearest neighbours that are among
the 15 nearest on the map; trustworthiness; seconds. Fresh maps are turned, mirrored and shifted to
lie on the one before as well as they can, and scaled to its size. The second form times synthetic
groups of vectors, a first map and one with 5 % newcomers, in seconds and in those of the processor,
and the memory that it takes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dicgrl.learner import Learner
from dicgrl.maps import HOLD, NEIGHBOURS, layout, movement
from dicgrl.maps.layout import directions
from dicgrl.maps.movement import aligned, kept
from dicgrl.maps.neighbours import nearest
from dicgrl.store.run_folder import RunFolder

Points = NDArray[np.float32]
Fresh = Callable[[Tensor], Points]
Row = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description="Stable maps, measured.")
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--hold", type=float, nargs="*", default=[HOLD])
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--length", type=int, default=200, help="of a vector, with --size")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.size:
        found = measure_size(given.size, given.length)
    elif given.run is not None:
        found = measure_run(given.run, given.hold, rivals=given.rivals)
    else:
        parser.error("name a run, or --size")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def measure_run(folder: Path, holds: list[float], *, rivals: bool) -> dict[str, Row]:
    vectors = [_flat(Learner.load(folder, at=n, device="cpu")) for n in _versions(folder)]
    print(
        "| map | version | vectors | moved, half | moved, 95 % | since arrival, half | "
        "neighbours kept | trustworthiness | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    found: dict[str, Row] = {}
    for hold in holds:
        found |= _follow(f"stable, hold {hold:g}", vectors, hold=hold)
    found |= _follow("afresh", vectors, layout)
    if rivals:
        found |= _follow("scikit-learn, afresh", vectors, _scikit)
        found |= _follow("openTSNE, afresh", vectors, _open)
    if len(vectors) > 1 and len(vectors[-1]) > len(vectors[-2]):
        found["newcomers"] = {"among newcomers": _newcomers(vectors)}
    return found


def _newcomers(versions: list[Tensor]) -> float:
    """How close newcomers are to each other, in the vectors themselves."""
    old, count = len(versions[-2]), len(versions[-1])
    near = nearest(directions(versions[-1]), torch.arange(old, count), NEIGHBOURS).ids
    share = float((near >= old).mean())
    print(
        f"of the {NEIGHBOURS} nearest vectors of the newest version's {count - old:,} newcomers "
        f"{share:.0%} are newcomers"
    )
    return share


def _follow(
    name: str, versions: list[Tensor], fresh: Fresh | None = None, hold: float = 0
) -> dict[str, Row]:
    """A row for each version: of maps that go on from each other, or of fresh ones."""
    rows: dict[str, Row] = {}
    points: Points | None = None
    first = np.empty((0, 2), dtype=np.float32)  # where each was when it arrived
    for number, vectors in enumerate(versions):
        before, started = points, time.perf_counter()
        if fresh:
            points = fresh(vectors)
        else:
            earlier = versions[number - 1] if number else None
            points = layout(vectors, before, earlier, hold=hold)
        seconds = time.perf_counter() - started
        row: Row = {"vectors": len(vectors)}
        if before is not None:
            points = aligned(before, points) if fresh else points
            step, whole = movement(before, points), movement(first, points)
            row |= {"half": step.median, "most": step.most, "since arrival": whole.median}
        first = np.concatenate([first, points[len(first) :]])
        quality = kept(vectors, points)
        row |= {"kept": quality.recall, "trust": quality.trust, "seconds": seconds}
        rows[f"{name}, version {number + 1}"] = row
        told = [
            f"{row[each]:.1%}" if each in row else "" for each in ("half", "most", "since arrival")
        ]
        cells = [name, str(number + 1), f"{len(vectors):,}", *told]
        cells += [f"{quality.recall:.3f}", f"{quality.trust:.3f}", f"{seconds:.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    return rows


def measure_size(count: int, length: int) -> dict[str, Row]:
    random = torch.Generator().manual_seed(0)
    centres = torch.randn(max(2, count // 300), 32, generator=random)
    group = torch.randint(len(centres), (count,), generator=random)
    vectors = centres[group] + 0.7 * torch.randn(count, 32, generator=random)
    vectors = vectors @ torch.randn(32, length, generator=random)
    old = count - count // 20
    before, first = _timed(lambda: layout(vectors[:old]))
    after, later = _timed(lambda: layout(vectors, before, vectors[:old]))
    moved, quality = movement(before, after), kept(vectors, after)
    row: Row = {
        "vectors": count,
        "length": length,
        "threads": torch.get_num_threads(),
        "first": first[0],
        "first, processor": first[1],
        "later": later[0],
        "later, processor": later[1],
        "half": moved.median,
        "kept": quality.recall,
        "trust": quality.trust,
        "GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    print(
        f"{old:,} vectors of {length} numbers afresh: {first[0]:.0f} s ({first[1]:.0f} s of the "
        f"processor); with {count - old:,} newcomers: {later[0]:.0f} s ({later[1]:.0f} s); half of "
        f"the old moved {moved.median:.1%} at most, {quality.recall:.3f} of neighbours kept, "
        f"trustworthiness {quality.trust:.3f}; {row['threads']} threads, at most "
        f"{row['GiB']:.1f} GiB in the process"
    )
    return {f"size {count}": row}


def _timed(work: Callable[[], Points]) -> tuple[Points, tuple[float, float]]:
    """What a function gives, with seconds and processor seconds that it took."""
    started = time.perf_counter(), time.process_time()
    found = work()
    return found, (time.perf_counter() - started[0], time.process_time() - started[1])


def _scikit(vectors: Tensor) -> Points:
    from sklearn.manifold import TSNE

    made = TSNE(init="pca", metric="cosine", random_state=0).fit_transform(vectors.numpy())
    return np.asarray(made, dtype=np.float32)


def _open(vectors: Tensor) -> Points:
    from openTSNE import TSNE

    made = TSNE(metric="cosine", random_state=0, n_jobs=torch.get_num_threads()).fit(
        vectors.numpy()
    )
    return np.asarray(made, dtype=np.float32)


def _versions(folder: Path) -> list[int]:
    run = RunFolder(folder)
    with run.source() as source:
        models = source.models()
    return [version.number for version in run.line() if version.number in models]


def _flat(learner: Learner) -> Tensor:
    return learner.ask.vectors()[1].detach().flatten(1).clone()


if __name__ == "__main__":
    main()
