"""What a retraining gains, and what tells it beforehand: the retrain signal against the truth.

    python benchmarks/retrain_signal.py [--only films] [--device auto] [--json FILE]

Streams that grow in several ways are learned night by night (`benchmarks/nights.py`), by updates
that keep much and by one that forgets; at some nights a copy is retrained for real. For each kind
of evidence, and for pairs, ln(retrained / nightly) of the MRR is fitted on all streams but one and
predicted for that one. Prints the truth of each night, the error of each, and the numbers of
`dicgrl/nights/retraining.py`.

    python benchmarks/retrain_signal.py --full --device cuda    # FB15k-237 as a whole
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from machine import name_of

from dicgrl.common.devices import pick_device
from dicgrl.errors import ModelWarning
from nights import Night, Setting, lived

_SMALL = ("dim=32", "epochs=30")
STREAMS = [
    Setting("films", "nightly", 12, 0.4, changes=_SMALL),
    Setting("films", "nightly", 12, 0.4, strategy="lower", changes=_SMALL),
    Setting("films", "facts", 8, 0.4, changes=_SMALL),
    Setting("films", "entities", 6, 0.4, changes=_SMALL, every=3),
    Setting("films", "hybrid", 6, 0.4, strategy="lower", changes=_SMALL, every=3),
    Setting("films", "nightly", 30, 0.2, changes=_SMALL, every=10),
    Setting("films", "nightly", 12, 0.4, strategy="warm", changes=_SMALL),
    Setting("FB15k-237", "nightly", 8, 0.4, 0.35, changes=_SMALL, every=4),
    Setting("FB15k-237", "entities", 6, 0.4, 0.35, changes=_SMALL, every=3),
]
FULL = [
    Setting("FB15k-237", "nightly", 60, 0.5, every=10),
    Setting("FB15k-237", "nightly", 60, 0.5, strategy="lower", every=20),
    Setting("FB15k-237", "facts", 20, 0.4, every=5),
    Setting("FB15k-237", "entities", 10, 0.4, every=5),
    Setting("FB15k-237", "hybrid", 10, 0.4, every=5),
    Setting("WN18RR", "nightly", 20, 0.5, every=10),
]


class Look(NamedTuple):
    """A night on which a copy was retrained.

    Attributes:
        stream: Which stream it is of.
        night: Its number.
        evidence: What was known beforehand, as logarithms where it is a ratio.
        now: The MRR of the nightly model.
        gain: What the retraining added to it.
    """

    stream: str
    night: int
    evidence: dict[str, float]
    now: float
    gain: float

    @classmethod
    def of(cls, stream: str, night: Night) -> Look:
        """A night of a stream."""
        found: dict[str, Any] = night.report["retraining"]["evidence"]
        then, now = found["held_out_then"], night.nightly["mrr"]
        evidence = {
            "learned": math.log(found["learned_then"] / found["learned_now"]),
            "held out": math.log(then / found["held_out_now"]),
            "arrived": math.log(then / found["arrived_now"]),
            "share": found["share"],
            "moved": found["moved"],
        }
        assert night.retrained is not None
        return cls(stream, night.number, evidence, now, night.retrained["mrr"] - now)


Real = npt.NDArray[np.float64]


def fitted(rows: list[Look], names: tuple[str, ...]) -> Real:
    """A number for each kind of evidence, and one besides, by least squares."""
    truth = [math.log(1 + look.gain / look.now) for look in rows]
    found: Real = np.linalg.lstsq(_table(rows, names), np.array(truth), rcond=None)[0]
    return found


def _table(rows: list[Look], names: tuple[str, ...]) -> Real:
    return np.array([[*(look.evidence[name] for name in names), 1.0] for look in rows])


def left_out(rows: list[Look], names: tuple[str, ...]) -> tuple[Real, Real]:
    """What is predicted of each night from other streams: the logarithm, and the gain in MRR."""
    found = np.zeros(len(rows))
    for stream in {look.stream for look in rows}:
        others = [look for look in rows if look.stream != stream]
        mine = [number for number, look in enumerate(rows) if look.stream == stream]
        found[mine] = _table([rows[i] for i in mine], names) @ fitted(others, names)
    return found, np.array([look.now for look in rows]) * np.expm1(found)


def report(rows: list[Look]) -> None:
    """Print what tells a gain, and how well."""
    truth = np.array([look.gain for look in rows])
    logs = np.array([math.log(1 + look.gain / look.now) for look in rows])
    lower = np.array(["lower" in look.stream for look in rows])
    kinds = list(rows[0].evidence)
    every = [names for size in (0, 1, 2) for names in combinations(kinds, size)]
    print("\nmean error in points of MRR, each stream predicted from the others")
    print(f"{'evidence':<22} {'all':>6} {'lower':>6} {'others':>6}")
    errors = {names: 100 * np.abs(left_out(rows, names)[1] - truth) for names in every}
    for names in sorted(errors, key=lambda names: float(errors[names].mean())):
        found = errors[names]
        groups = [found, found[lower], found[~lower]]
        cells = [f"{group.mean():>6.2f}" if len(group) else f"{'':>6}" for group in groups]
        print(f"{' and '.join(names) or 'none (the mean)':<22} {' '.join(cells)}")
    none = [100 * np.abs(group).mean() for group in (truth, truth[lower], truth[~lower])]
    print(f"{'nothing is ever gained':<22} {' '.join(f'{value:>6.2f}' for value in none)}")
    slope, level = fitted(rows, ("learned",))
    guesses, gains = left_out(rows, ("learned",))
    error = float(np.abs(guesses - logs).mean())
    print(f"\nSLOPE, LEVEL = {slope:.2f}, {level:.2f}; ERROR = {error:.3f}")
    told = gains - np.array([look.now for look in rows]) * math.expm1(error) > 0.01
    pays = truth > 0.01
    print(
        f"of {int(pays.sum())} nights on which retraining gains more than 1 point it names "
        f"{int((told & pays).sum())}; of {int((~pays).sum())} others {int((told & ~pays).sum())}"
    )


def main() -> None:
    """Live through the streams, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="streams whose name has this in it")
    parser.add_argument("--full", action="store_true", help="large streams, for a GPU")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="the evidence and the truth, as they are found")
    parser.add_argument("--read", type=Path, help="what --json wrote, instead of learning")
    given = parser.parse_args()
    if given.read:
        rows = [Look(*row) for row in json.loads(given.read.read_text(encoding="utf-8"))]
        print(_HEADS)
        for row in rows:
            _print(row)
        report(rows)
        return
    warnings.simplefilter("ignore", ModelWarning)
    print(name_of(pick_device(given.device)))
    print(_HEADS)
    rows = []
    for planned in FULL if given.full else STREAMS:
        name = f"{planned.name} {planned.by} {planned.nights} {planned.strategy}"
        if given.only not in name:
            continue
        setting = Setting(**{**_fields(planned), "device": given.device})
        with tempfile.TemporaryDirectory() as place:
            for night in lived(setting, Path(place) / "run"):
                if night.retrained is not None:
                    rows.append(Look.of(name, night))
                    _print(rows[-1])
                    if given.json:
                        given.json.write_text(json.dumps(rows), encoding="utf-8")
    if len({look.stream for look in rows}) > 2:
        report(rows)


_COLUMNS = ("night", "share", "moved", "learned", "held out", "MRR", "retrained", "gain")
_HEADS = f"{'stream':>32}" + "".join(f"{column:>10}" for column in _COLUMNS)


def _fields(setting: Setting) -> dict[str, Any]:
    return {name: getattr(setting, name) for name in Setting.__dataclass_fields__}


def _print(look: Look) -> None:
    found, retrained = look.evidence, look.now + look.gain
    cells = [f"{found[name]:.2f}" for name in ("share", "moved", "learned", "held out")]
    cells += [f"{100 * value:.1f}" for value in (look.now, retrained)] + [f"{100 * look.gain:+.1f}"]
    row = [f"{look.stream:>32}", *(f"{cell:>10}" for cell in (look.night, *cells))]
    print("".join(row), flush=True)


if __name__ == "__main__":
    main()
