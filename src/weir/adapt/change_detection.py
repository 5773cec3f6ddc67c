"""Change detection: do the statistics differ enough from those of the last analysis to run another one?

A relative change counts only beyond sampling noise, 3/√n for n counted rows, so that small streams do not
trigger an analysis by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from weir.adapt.average import Average, lags_differ
from weir.adapt.settings import Adapt
from weir.adapt.statistics import Statistics

K = TypeVar("K")
# A change is beyond chance at this many standard deviations of a Poisson count.
_NOISE_DEVIATIONS = 3.0
# If this many times more was counted now, the earlier value was hardly known and its noise is ignored.
_HARDLY_KNOWN_FACTOR = 10.0
# Seconds vary by this share on a machine that runs other things, too; smaller changes do not count.
_SECONDS_NOISE = 0.15


def describe_changes(reference: Statistics, current: Statistics, settings: Adapt) -> list[str]:
    """Return a phrase for each kind of significant change, e.g. "rates of orders, clicks rose 2.1 times"."""
    rates = _find_changes(reference.rows, current.rows, settings.change)
    selectivities = _find_changes(reference.matches, current.matches, settings.change)
    steps = {f"{'+'.join(b)} and {'+'.join(p)}": ratio for (b, p), ratio in selectivities.items()}
    changes = _describe_ratios("rates of", rates) + _describe_ratios("selectivities of", steps)
    before, after = reference.reliable_lags, current.reliable_lags
    if after and (not before or lags_differ(before, after, settings.change, current.results_each)):
        changes.append("lags between streams changed")
    old, new = reference.event_time_speed.value, current.event_time_speed.value
    if old and new and abs(new / old - 1) > max(settings.change, _SECONDS_NOISE):
        changes.append(f"event time per second {_describe_ratio(new / old)}")
    return changes


def _find_changes(before: Mapping[K, Average], now: Mapping[K, Average], least: float) -> dict[K, float]:
    """Return current over earlier value beyond 1 ± `least` and noise; infinite if it was zero."""
    ratios = {}
    for key, new in now.items():
        old = before.get(key, Average())
        if not old.value and not new.value:
            continue
        is_hardly_known = new.total > _HARDLY_KNOWN_FACTOR * old.total
        counted = new.total if is_hardly_known else min(old.total, new.total)
        noise = _NOISE_DEVIATIONS / math.sqrt(max(counted, 1.0))
        ratio = (new.value or 0.0) / old.value if old.value else math.inf
        if abs(ratio - 1) > least + noise:
            ratios[key] = ratio
    return ratios


def _describe_ratios(what: str, ratios: Mapping[str, float]) -> list[str]:
    """Return a phrase for those that rose and one for those that fell, each with its largest change."""
    rose = {name: ratio for name, ratio in ratios.items() if ratio > 1}
    fell = {name: ratio for name, ratio in ratios.items() if ratio <= 1}
    groups = ((rose, max), (fell, min))
    return [f"{what} {', '.join(g)} {_describe_ratio(most(g.values()))}" for g, most in groups if g]


def _describe_ratio(ratio: float) -> str:
    if math.isinf(ratio):
        return "became known"
    return f"rose {ratio:.3g} times" if ratio > 1 else f"fell to {ratio:.2g} of the earlier value"
