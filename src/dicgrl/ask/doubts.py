"""Warns of a model that seems to know nothing, or to have lost much of what it knew.

After each part, `Asking.examine` asks about held-out examples. The result is compared with random
guesses, with guesses by how often each answer occurs, and with the result after the previous part.
There is a warning only if the difference exceeds three standard errors of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray

_SURE = 3.0  # standard errors
_FEWEST = 100  # questions, or there is nothing to be sure of
_INFORMATION = 0.01  # share of what could be known, below which it is as good as nothing
_LOST = 0.2  # share of what was answered that is a strong loss
_UNSEEN = 0.1  # probability, by counting, of an answer that did not occur

_WHERE = {"validation": "held-out", "training": "learned", "arrivals": "newly arrived"}
_AFTER_A_PART = "try a lower later_rate, or a strategy that replays more, such as fresh or warm"
_AFTER_RETRAINING = "go back to the version before (dicgrl restore), or train with more epochs"
_TRY = "try more epochs, a higher lr, or another margin if the loss has one"


def found_of(
    log_share: FloatArray,
    frequency: FloatArray,
    candidates: FloatArray,
    answered: BoolArray,
    chance: float,
    parts: IntArray | None = None,
) -> dict[str, Any]:
    """Sum up a look at questions, ready for JSON.

    Args:
        log_share: What the model says of the right answer, as a logarithm, [q].
        frequency: How often the right answer occurs among all answers that were learned, [q].
        candidates: How many answers there could be, [q].
        answered: Whether the right one is found, [q].
        chance: How many a blind guess finds.
        parts: The part that each question came with, [q]; None where nobody will compare the
            answers with later ones.

    Returns:
        `count`; `share` that is found, and `chance`; `information`, how much of what there is to
        know the scores tell (1: always sure and right, 0: a blind guess), and `statistic`, its
        likelihood ratio, about chi-squared for scores that say nothing; `ahead`, by how many
        standard errors more than the frequencies tell; with parts `answered` by part, as a text of
        0 and 1.
    """
    gained = log_share + np.log(candidates)
    counted = np.log((1 - _UNSEEN) * frequency * candidates + _UNSEEN)
    ahead = gained - counted
    error = float(ahead.std() / math.sqrt(len(ahead)))
    most = float(np.log(candidates).sum())
    found = {
        "count": len(gained),
        "share": float(answered.mean()),
        "chance": chance,
        "information": max(float(gained.sum()), 0.0) / most if most else 0.0,
        "statistic": 2 * float(gained.sum()),
        "ahead": float(ahead.mean()) / error if error else 0.0,
    }
    return found if parts is None else found | {"answered": _by_part(answered, parts)}


def _by_part(answered: BoolArray, parts: IntArray) -> dict[str, str]:
    """Answers as a text of 0 and 1 for each part."""
    order = np.argsort(parts, kind="stable")
    signs = "".join(np.where(answered[order], "1", "0"))
    numbers, first = np.unique(parts[order], return_index=True)
    ends = [*first.tolist()[1:], len(signs)]
    found = zip(numbers.tolist(), first.tolist(), ends, strict=True)
    return {str(part): signs[start:end] for part, start, end in found}


def doubts(
    now: Mapping[str, Any], before: Mapping[str, Any] | None = None, *, retrained: bool = False
) -> list[str]:
    """What a user should hear about the newest part; mostly nothing.

    Args:
        now: What `Asking.examine` found.
        before: The same when it was looked before.
        retrained: Whether the model was trained anew in between.

    Example:
        >>> blind = {"count": 1000, "share": 0.011, "chance": 0.01, "information": 0.0}
        >>> blind |= {"statistic": 0.2, "ahead": -20.0}
        >>> [text.partition(":")[0] for text in doubts({"basis": "validation", "found": blind})]
        ['the model knows nothing']
    """
    found = now.get("found")
    if not found or found["count"] < _FEWEST:
        return []
    where = f"{found['count']:,} answers to {_WHERE[now['basis']]} examples"
    share, chance = found["share"], found["chance"]
    noise = math.sqrt(chance * (1 - chance) / found["count"])
    if found["information"] < _INFORMATION or found["statistic"] < _SURE**2:
        if share <= chance + _SURE * noise:
            reason = f"of {where} it finds {share:.1%}, a random guess {chance:.1%}"
            return [f"the model knows nothing: {reason}; {_TRY}"]
        told = f"they carry {found['information']:.1%} of the information about {where}"
        return [f"scores hardly tell right from wrong: {told}; {_TRY}"]
    if found["ahead"] < -_SURE:
        told = f"how often each answer occurs says more about {where} than its scores do"
        return [f"the model knows little: {told}; {_TRY}"]
    if before and before.get("found") and now["basis"] == before["basis"] == "validation":
        return _loss(found, before["found"], _AFTER_RETRAINING if retrained else _AFTER_A_PART)
    return []


def _loss(now: Mapping[str, Any], before: Mapping[str, Any], advice: str) -> list[str]:
    """Whether much is lost of what was answered before: McNemar's test of answers that changed."""
    both = [
        p for p, text in before["answered"].items() if len(now["answered"].get(p, "")) == len(text)
    ]
    was, still = (
        np.array([sign == "1" for part in both for sign in look["answered"][part]], dtype=np.bool_)
        for look in (before, now)
    )
    lost, gained, right = (int(each.sum()) for each in (was & ~still, still & ~was, was))
    if len(was) < _FEWEST or lost - gained <= max(_SURE * math.sqrt(lost + gained), _LOST * right):
        return []
    return [
        f"much was lost: of {right:,} held-out answers that were found before, {lost:,} "
        f"are lost and {gained:,} others gained; {advice}"
    ]
