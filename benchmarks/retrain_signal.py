"""What a retraining gains, and what tells it beforehand: the retrain signal against the truth.

    python benchmarks/retrain_signal.py --json FILE [--nights FILE] [--device auto] [--jobs 1]
    python benchmarks/retrain_signal.py --read FILE --json FILE

Streams that grow in several ways are learned night by night (`benchmarks/nights.py`), by updates
that keep much and by some that forget; at some nights copies are retrained for real. On the films
the kind of evidence is chosen and the numbers of `dicgrl/nights/retraining.py` are fitted; on other
graphs, which take no part in that, the error is measured. `--nights` adds the nights of a file that
`benchmarks/nights.py --json` wrote to the latter.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import name_of

from dicgrl.common.devices import pick_device
from dicgrl.errors import ModelWarning
from nights import Night, Setting, lived, night_of, workers

Real = npt.NDArray[np.float64]

_FIT, _CHECK = "calibration", "check"


def _small(name: str, by: str, strategy: str = "fresh", entities: float = 1.0) -> Setting:
    """Six nights of a small graph, with real retrainings at the third and the last."""
    looks = 2 if strategy == "fresh" else 1
    return Setting(name, by, 6, 0.4, entities, strategy, 3, looks, ("dim=32", "epochs=20"))


STREAMS = [
    (_FIT, _small("films", "nightly")),
    (_FIT, _small("films", "nightly", "lower")),
    (_CHECK, _small("FB15k-237", "nightly", "lower", 0.3)),
    (_FIT, _small("films", "facts")),
    (_CHECK, _small("FB15k-237", "entities", "fresh", 0.3)),
    (_FIT, _small("films", "hybrid", "ewc")),
    (_CHECK, _small("FB15k-237", "facts", "warm", 0.3)),
    (_FIT, _small("films", "entities", "warm")),
    (_CHECK, _small("WN18RR", "nightly", "fresh", 0.4)),
]
FULL = [
    (_CHECK, Setting("FB15k-237", "nightly", 12, 0.5, every=6)),
    (_CHECK, Setting("FB15k-237", "nightly", 12, 0.5, strategy="lower", every=6)),
    (_CHECK, Setting("FB15k-237", "entities", 6, 0.4, every=3)),
    (_CHECK, Setting("FB15k-237", "hybrid", 6, 0.4, every=3)),
    (_CHECK, Setting("WN18RR", "nightly", 12, 0.5, every=6)),
]


def name_of_stream(setting: Setting) -> str:
    """What a stream is called in tables."""
    return f"{setting.name} {setting.by} {setting.nights} {setting.strategy}"


def looked_at(group: str, setting: Setting, nights: Iterator[Night]) -> Iterator[dict[str, Any]]:
    """A row for each night on which copies were retrained: what was known, and the truth.

    `drift` is what held-out facts lost from night to night, on common questions, summed up as
    logarithms; `foretold` how well each night's facts were known before.
    """
    drift, foretold = 0.0, []
    for night in nights:
        if not night.number:
            continue
        held = night.report["held_out"]
        drift += math.log(held["before"]["metrics"]["mrr"] / held["same"]["metrics"]["mrr"])
        foretold.append(night.report["foretold"]["metrics"].get("mrr"))
        if night.retrained:
            yield {
                "stream": name_of_stream(setting),
                "night": f"night {night.number}",
                "group": group,
                "now": night.nightly["mrr"],
                "truths": [each["mrr"] for each in night.retrained],
                "facts": held["asked"],
                "evidence": night.report["retraining"]["evidence"],
                "drift": drift,
                "foretold": list(foretold),
            }


def _about(given: argparse.Namespace) -> dict[str, str]:
    return {
        "command": f"python benchmarks/retrain_signal.py {' '.join(sys.argv[1:])}",
        "device": name_of(pick_device(given.device)),
    }


def write(path: Path, about: dict[str, str], rows: list[dict[str, Any]]) -> None:
    """Write what was found."""
    path.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def collected(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Live through the streams; what is found is written anew after each look."""
    rows = []
    for group, planned in FULL if given.full else STREAMS:
        if given.only not in name_of_stream(planned):
            continue
        setting = replace(planned, device=given.device)
        with tempfile.TemporaryDirectory() as place, workers(given.jobs) as pool:
            nights = lived(setting, Path(place) / "run", pool, with_stale=False)
            for row in looked_at(group, setting, nights):
                rows.append(row)
                found = ", ".join(f"{100 * value:.1f}" for value in row["truths"])
                now = f"{100 * row['now']:.1f}"
                print(f"{row['stream']}, {row['night']}: {now}, retrained {found}", flush=True)
                if given.json:
                    write(given.json, _about(given), rows)
    return rows


def told_by(row: dict[str, Any]) -> dict[str, float]:
    """What a night knew beforehand, as logarithms where it is a ratio."""
    found = row["evidence"]
    then, now, newer = found["learned_then"], found["learned_now"], found.get("newer_now")
    share = found["share"]
    everything = now if newer is None else (1 - share) * now + share * newer
    return {
        "learned": math.log(then / now),
        "everything learned": math.log(then / everything),
        "held out": math.log(found["held_out_then"] / found["held_out_now"]),
        "drift": row["drift"],
        "share": share,
        "moved": found["moved"],
    }


def truth(row: dict[str, Any]) -> float:
    """ln(retrained / now) of the MRR."""
    return math.log(fmean(row["truths"]) / row["now"])


Kinds = tuple[str, ...]


def fitted(rows: list[dict[str, Any]], kinds: Kinds) -> Real:
    """A number for each kind of evidence, and one besides, by least squares."""
    truths = np.array([truth(row) for row in rows])
    found: Real = np.linalg.lstsq(_table(rows, kinds), truths, rcond=None)[0]
    return found


def _table(rows: list[dict[str, Any]], kinds: Kinds) -> Real:
    return np.array([[*(told_by(row)[kind] for kind in kinds), 1.0] for row in rows])


def left_out(rows: list[dict[str, Any]], kinds: Kinds) -> Real:
    """The truth of each stream, less what the others predict of it."""
    errors = np.zeros(len(rows))
    for stream in {row["stream"] for row in rows}:
        mine = [at for at, row in enumerate(rows) if row["stream"] == stream]
        others = [row for row in rows if row["stream"] != stream]
        guesses = _table([rows[at] for at in mine], kinds) @ fitted(others, kinds)
        errors[mine] = [truth(rows[at]) for at in mine] - guesses
    return errors


def _size(errors: Real) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def report(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Choose, fit, check and print; gives the rows with what the signal says of them."""
    fit = [row for row in rows if row["group"] == _FIT]
    print("\ncalibration: root mean square error of ln(retrained / now), streams left out")
    kinds = list(told_by(rows[0]))
    sizes = {kind: _size(left_out(fit, kind)) for kind in [(), *((kind,) for kind in kinds)]}
    for kind, size in sorted(sizes.items(), key=lambda each: each[1]):
        print(f"{' '.join(kind) or 'none: the mean':<20} {size:.3f}")
    nothing = _size(np.array([truth(row) for row in fit]))
    print(f"{'nothing is gained':<20} {nothing:.3f}")
    chosen = min(sizes, key=lambda kind: sizes[kind])
    *slopes, level = fitted(fit, chosen).tolist()
    error = sizes[chosen]
    print(f"\n{' '.join(chosen)}: SLOPE {slopes}, LEVEL {level:.2f}, ERROR {error:.3f}")
    noise = [np.log(row["truths"]).std(ddof=1) for row in rows if len(row["truths"]) > 1]
    if noise:
        print(f"the truth itself, from seed to seed: {_size(np.array(noise)):.3f}")
    said = [_said(row, chosen, [*slopes, level], error) for row in rows]
    _print(said)
    return said


def _said(row: dict[str, Any], kinds: Kinds, numbers: list[float], error: float) -> dict[str, Any]:
    """A row with what the signal says, in points of MRR."""
    told = [told_by(row)[kind] for kind in kinds]
    ratio = sum(a * b for a, b in zip(numbers, [*told, 1.0], strict=True))
    return row | {
        "points": {
            "now": 100 * row["now"],
            "retrained": 100 * fmean(row["truths"]),
            "gain": 100 * (fmean(row["truths"]) - row["now"]),
            "estimate": 100 * row["now"] * math.expm1(ratio),
            "error": 100 * row["now"] * math.expm1(error),
        },
        "told": told_by(row),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'stream':<28}{'night':>9}{'now':>7}{'retrained':>10}{'gain':>7}{'said':>7}{'±':>5}")
    for row in rows:
        p = row["points"]
        print(
            f"{row['stream']:<28}{row['night']:>9}{p['now']:>7.1f}{p['retrained']:>10.1f}"
            f"{p['gain']:>+7.1f}{p['estimate']:>+7.1f}{p['error']:>5.1f}"
        )
    for group in (_FIT, _CHECK):
        points = [row["points"] for row in rows if row["group"] == group]
        if not points:
            continue
        off = [abs(p["gain"] - p["estimate"]) for p in points]
        clear = [p for p in points if abs(p["estimate"]) > p["error"]]
        right = sum((p["gain"] > 0) == (p["estimate"] > 0) for p in clear)
        within = sum(error <= p["error"] for error, p in zip(off, points, strict=True))
        print(
            f"{group}: mean error {fmean(off):.2f} points (that nothing is ever gained: "
            f"{fmean(abs(p['gain']) for p in points):.2f}); {within} of {len(points)} within the "
            f"error that is told; {len(clear)} estimates beyond it, {right} of the right sign"
        )


def main() -> None:
    """Live through the streams, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="streams whose name has this in it")
    parser.add_argument("--full", action="store_true", help="large streams, for a GPU")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--json", type=Path, help="the evidence, the truth and what the signal says"
    )
    parser.add_argument("--read", type=Path, help="what --json wrote, instead of learning")
    parser.add_argument("--nights", type=Path, help="what nights.py --json wrote, besides")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ModelWarning)
    if given.read:
        held = json.loads(given.read.read_text(encoding="utf-8"))
        about, rows = held["about"], held["rows"]
    else:
        about, rows = _about(given), collected(given)
    if given.nights:
        lived_through = json.loads(given.nights.read_text(encoding="utf-8"))
        setting = Setting(**lived_through["about"]["setting"])
        nights = (night_of(row) for row in lived_through["rows"])
        rows = [*rows, *looked_at(_CHECK, setting, nights)]
    if len({row["stream"] for row in rows if row["group"] == _FIT}) > 2:
        rows = report(rows)
    if given.json:
        write(given.json, about, rows)


if __name__ == "__main__":
    main()
