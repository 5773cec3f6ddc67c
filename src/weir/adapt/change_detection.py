"""Has anything changed by so much that all must be weighed again?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from weir.adapt.average import Average
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics, differ
from weir.plan.limits import Limits

K = TypeVar("K")
# A join that takes less than that share of its limit is skipping too much.
_LOW = 0.7
# The weight of three batches, when old ones fade.
_SOME = 2.4
# A difference is no chance beyond so many times the square root of what was counted.
_CHANCE = 3.0
# As long as not so many times more was counted since.
_MORE = 10.0
# Seconds on a machine that others use too vary by this share.
_SECONDS = 0.15


def should_analyse(
    basis: Statistics | None, now: Statistics, settings: Adapt, limits: Limits, sheds: bool = False
) -> bool:
    """True if a statistic has moved by more than ε since the last analysis, or a budget is missed.

    It is, too, if what is skipped could be less. What is counted moves by chance, and that is not enough.
    """
    if basis is None or is_over_limit(now, limits) or (sheds and is_underused(now, limits)):
        return True
    return bool(describe_changes(basis, now, settings))


def is_over_limit(now: Statistics, limits: Limits) -> bool:
    """True if the last batches took more than the next one may, of CPU or memory."""
    return now.bytes > limits.memory or (now.load.value or 0.0) > limits.cpu


def is_underused(now: Statistics, limits: Limits) -> bool:
    """True if all batches since the last decision, and some, took far less CPU than they may."""
    return (now.load.value or 0.0) < _LOW * limits.cpu and now.load.over > _SOME * now.span


def describe_changes(basis: Statistics, now: Statistics, settings: Adapt) -> list[str]:
    """What has moved since, in words."""
    found = _listed("rates of", _changes(basis.rows, now.rows, settings.change))
    pairs = _changes(basis.matches, now.matches, settings.change)
    found += _listed("matches of", {f"{'+'.join(b)} and {'+'.join(p)}": by for (b, p), by in pairs.items()})
    old, new = basis.lags, now.lags
    if new is not None and (old is None or differ(old, new, settings.change, now.results_each)):
        found.append("lags between the streams are others")
    for what, before, after in (
        ("the join's work", basis.load.value, now.load.value),
        ("event time per second", basis.pace.value, now.pace.value),
    ):
        if before and after and abs(after / before - 1) > max(settings.change, _SECONDS):
            found.append(f"{what} {_by(after / before)}")
    return found


def _changes(basis: Mapping[K, Average], now: Mapping[K, Average], change: float) -> dict[K, float]:
    """By how many times each has moved; infinitely if it was not known, or nothing."""
    found = {}
    for what, new in now.items():
        old = basis.get(what, Average())
        before, after = old.value or 0.0, new.value or 0.0
        if not before and not after:
            continue
        # What was next to nothing beside what is counted now was not known.
        counted = new.total if new.total > _MORE * old.total else min(old.total, new.total)
        chance = _CHANCE / math.sqrt(max(counted, 1.0))
        by = after / before if before else math.inf
        if abs(by - 1) > change + chance:
            found[what] = by
    return found


def _listed(what: str, changes: Mapping[str, float]) -> list[str]:
    """Those that rose and those that fell, each group with its largest change."""
    rose = {name: by for name, by in changes.items() if by > 1}
    fell = {name: by for name, by in changes.items() if by <= 1}
    groups = ((rose, max(rose.values(), default=1.0)), (fell, min(fell.values(), default=1.0)))
    return [f"{what} {', '.join(group)} {_by(most)}" for group, most in groups if group]


def _by(times: float) -> str:
    if math.isinf(times):
        return "are known"
    return f"rose {times:.3g} times" if times > 1 else f"fell to {times:.2g} of before"
