"""A night in words and numbers: what tables, pages and trends show of its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dicgrl.report.results_text import SHOWN

Night = dict[str, Any]
LEAST_GAIN = 0.01  # of a metric, that is worth a retraining
_METRICS = ("mrr", "hits@10", "accuracy")


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that every night may say, and that is followed from night to night.

    Attributes:
        name: What gates and JSON call it.
        title: What it is.
        of: Its value in a night; None where there is none.
        share: Whether it is a share, shown in per cent.
    """

    name: str
    title: str
    of: Callable[[Night], float | None]
    share: bool = True

    def text(self, night: Night) -> str:
        """Its value in a night; empty where there is none."""
        return self.shown(self.of(night))

    def shown(self, value: float | None) -> str:
        """A value of it."""
        if value is None:
            return ""
        return f"{100 * value:.1f}" if self.share else f"{value:,.4g}"


def metrics_shown(night: Night) -> list[str]:
    """The names of metrics that a night is judged by, the most important first."""
    held_out = night.get("held_out", {}).get("metrics", {})
    known = held_out | night["foretold"].get("metrics", {})
    return [name for name in _METRICS if name in known]


def measures(nights: Sequence[Night]) -> list[Measure]:
    """What nights are followed by, without what none of them has."""
    names = [name for name in _METRICS if any(name in metrics_shown(night) for night in nights)]
    found = [
        *(Measure(name, f"{SHOWN[name]}, held out", _held_out(name)) for name in names),
        *(
            Measure(f"foretold-{name}", f"{SHOWN[name]}, foretold", _foretold(name))
            for name in names
        ),
        Measure("retention", "retention", lambda night: night.get("held_out", {}).get("retention")),
        Measure("newcomers", "facts with newcomers", newcomers),
        Measure("moved", "old rows moved by", lambda night: night["moved"].get("mean")),
        Measure(
            "gain", "retraining would gain", lambda night: night.get("retraining", {}).get("gain")
        ),
        Measure(
            "facts", "facts learned", lambda night: float(night["facts"]["learned"]), share=False
        ),
        Measure("seconds", "seconds", lambda night: night["seconds"].get("all"), share=False),
    ]
    return [each for each in found if any(each.of(night) is not None for night in nights)]


def newcomers(night: Night) -> float | None:
    """The share of the facts learned that name something new."""
    learned = night["facts"]["learned"]
    return night["facts"]["newcomers"] / learned if learned else None


def verdict(night: Night) -> str:
    """What became of a night, in a line.

    Example:
        >>> gates = [{"gate": "mrr-drop 5%", "failed": True}]
        >>> verdict({"kept": False, "version": 3, "gates": gates, "facts": {"new": 9}})
        'refused by mrr-drop 5%: the run is version 3, as before'
    """
    refused = [gate["gate"] for gate in night["gates"] if gate["failed"]]
    if not night["kept"]:
        return f"refused by {', '.join(refused)}: the run is version {night['version']}, as before"
    if not night["facts"]["new"] and "learning" not in night:  # else dates were noted
        return f"nothing new: the run is version {night['version']}, as before"
    anyway = f", although {', '.join(refused)} failed" if refused else ""
    return f"kept as version {night['version']}{anyway}"


def gate_text(gate: dict[str, Any]) -> str:
    """What a gate found.

    Example:
        >>> gate_text({"now": 0.3, "then": 0.4, "when": "version 3", "failed": True})
        '0.3 where it was 0.4 (version 3)'
    """
    if "skipped" in gate:
        return str(gate["skipped"])
    now = f"{gate['now']:.4g}"
    return now if "then" not in gate else f"{now} where it was {gate['then']:.4g} ({gate['when']})"


def gate_state(gate: dict[str, Any]) -> str:
    """Whether it failed, passed or says nothing."""
    return "failed" if gate["failed"] else "not compared" if "skipped" in gate else "passed"


def retraining_text(night: Night) -> str:
    """Whether a retraining would pay, in a line; empty where nothing tells."""
    found = night.get("retraining", {})
    if found.get("gain") is None:
        return str(found.get("why", ""))
    gain, error = (100 * found[name] for name in ("gain", "error"))
    evidence, metric = found["evidence"], SHOWN[found["metric"]]
    if found["pays"]:
        told = (
            f"a retraining would pay: it would change {metric} by {gain:+.1f} (error {error:.1f})"
        )
    elif abs(gain) > error:
        told = (
            f"a retraining would hardly pay: it would change {metric} by {gain:+.1f} "
            f"(error {error:.1f})"
        )
    else:
        told = (
            f"no sign that a retraining would pay: the estimate for {metric}, {gain:+.1f}, is "
            f"within its error of {error:.1f}"
        )
    return (
        f"{told}; it would take some {evidence['seconds']:,.0f} s; {100 * evidence['share']:.0f} % "
        f"of the facts arrived since version {evidence['version']}, which learned everything"
    )


def left_out(night: Night) -> list[str]:
    """How many facts were not learned, for each of the reasons that there are."""
    words = {
        "known": "known already",
        "held_out": "held out before",
        "self_loops": "dropped as self loops",
    }
    facts = night["facts"]
    return [f"{facts[name]:,} {said}" for name, said in words.items() if facts.get(name)]


def foretold_text(night: Night) -> str:
    """What was known of the facts before they were learned, in a line."""
    found = night["foretold"]
    if not found.get("facts"):
        return "nothing was learned"
    told = f"{found['answerable']:,} of {found['facts']:,} facts name only what was known"
    metrics = found.get("metrics", {})
    shown = ", ".join(f"{SHOWN[n]} {100 * metrics[n]:.1f}" for n in _METRICS if n in metrics)
    if not shown:
        return told
    asked = "" if found["asked"] == found["answerable"] else f" (of {found['asked']:,})"
    return f"{told}; before they were learned{asked}: {shown}"


def _held_out(name: str) -> Callable[[Night], float | None]:
    return lambda night: night.get("held_out", {}).get("metrics", {}).get(name)


def _foretold(name: str) -> Callable[[Night], float | None]:
    return lambda night: night["foretold"].get("metrics", {}).get(name)
