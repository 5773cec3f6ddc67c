"""Operator throttling as printed (Gedik et al. 2007, section III), and harvesting at a throttle fraction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from weir.errors import QueryError
from weir.plan.tree import Join
from weir.shed.expected import ShedForecast
from weir.shed.harvest import Harvest, harvest
from weir.shed.harvest_model import Direction, compute_cost, compute_output, full_setting
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

# A join that consumed nothing in an interval is not throttled to nothing, from where it could not come back.
_LEAST = 1e-3


def update_throttle(throttle: float, consumed: float, arrived: float, boost: float = 1.2) -> float:
    """The throttle fraction after an interval in which so many rows arrived and so many were consumed.

    >>> update_throttle(0.8, consumed=50, arrived=100), update_throttle(0.5, consumed=9, arrived=9, boost=1.5)
    (0.4, 0.75)
    """
    _check_throttle(throttle)
    if not (math.isfinite(boost) and boost > 1):
        raise QueryError(f"the boost factor must be above 1; got {boost}")
    performance = consumed / arrived if arrived else 1.0
    return min(1.0, boost * throttle) if performance >= 1 else max(_LEAST, performance * throttle)


def throttled_harvest(
    graph: JoinGraph,
    plan: Join,
    throttle: float,
    lags: LagHistograms | None = None,
    basic_window: float | None = None,
    sample: float = 0.0,
    measured: Mapping[Hop, float] | None = None,
) -> Harvest:
    """The ages worth probing when the join may cost `throttle` times what it costs in full.

    A share `sample` of the cost is spent on learning: in Gedik et al. 2007 so many rows probe `throttle` of
    their first window; here `sample · throttle` of the rows probe everything, which costs the same and
    favours no age.
    """
    _check_throttle(throttle)
    if not 0 <= sample <= 1:
        raise QueryError(f"the sample must be a share from 0 to 1; got {sample}")
    directions = measured_directions(graph, plan, basic_window, lags, measured)
    everything, learning = full_setting(directions), sample * throttle
    full = compute_cost(directions, everything)
    # What is left, for each row that is not sampled.
    budget = throttle * full * (1 - sample) / (1 - learning) if learning < 1 else full
    best = harvest(directions, budget, ShedForecast(graph, lags, basic_window).basic_window(plan))
    return Harvest(
        replace(best.allowance, sample=learning),
        (1 - learning) * best.results + learning * compute_output(directions, everything),
        (1 - learning) * best.cost + learning * full,
    )


def measured_directions(
    graph: JoinGraph,
    plan: Join,
    basic_window: float | None = None,
    lags: LagHistograms | None = None,
    measured: Mapping[Hop, float] | None = None,
) -> tuple[Direction, ...]:
    """The directions of an mjoin; selectivities `measured` at hops, over all ages, replace the graph's."""
    seen = measured or {}
    return tuple(
        replace(
            direction,
            hops=tuple(
                replace(hop, selectivity=seen.get(hop.hop, hop.selectivity)) for hop in direction.hops
            ),
        )
        for direction in ShedForecast(graph, lags, basic_window).directions(plan)
    )


def _check_throttle(throttle: float) -> None:
    if not 0 < throttle <= 1:
        raise QueryError(f"the throttle fraction must be above 0 and at most 1; got {throttle}")
