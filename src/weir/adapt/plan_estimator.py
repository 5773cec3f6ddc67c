"""Estimate what plans of a query would use and give: CPU, memory and recall, with or without shedding.

The cost model is corrected by measurement: how many times the modelled seconds the running plan takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache, partial

from weir.adapt.change_detection import is_underused
from weir.adapt.statistics import Statistics
from weir.plan.cost import PlanCost, cost
from weir.plan.limits import Limits
from weir.plan.tree import Join, is_composed
from weir.query.model import Query
from weir.shed.allowance import Allowance
from weir.shed.expected import ShedForecast
from weir.shed.flow import compute_flow
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

# While the query sheds and uses too little CPU, each decision assumes that probing is this many times
# cheaper, so that shedding ends step by step (the boost factor of Gedik et al. 2007, section III).
_BOOST = 1.2
# Keep the correction within these bounds, so that a strange measurement cannot make estimates meaningless.
_LEAST_SCALE, _MOST_SCALE = 1e-6, 1e6
# Other work than probing takes at most this share of the measured load.
_MOST_UNSKIPPABLE_SHARE = 0.9
# Windows below this share of their expected rows are still filling up, and work will grow with them.
_FILLED_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The running plan, its allowance, and the statistics of the last analysis (None: not analysed yet)."""

    plan: Join
    allowance: Allowance | None = None
    reference: Statistics | None = None

    @property
    def is_exact(self) -> bool:
        """True if nothing is shed."""
        return self.allowance is None or not self.allowance.sheds


@dataclass(frozen=True, slots=True)
class CostCorrection:
    """Measured over modelled seconds: of probing, which shedding can skip, and of all other work."""

    probing: float = 1.0
    unskippable: float = 1.0


class PlanEstimator:
    """Estimates for the plans of one query, by one join graph and one set of lags.

    Estimates are cached, as an analysis asks about the same few plans again and again.
    """

    def __init__(self, query: Query, graph: JoinGraph, lags: LagHistograms | None = None) -> None:
        self.query, self.graph = query, graph
        self.correction = CostCorrection()
        self.forecast = ShedForecast(graph, lags, None if query.basic is None else query.basic / 1e6)
        self._cost: Callable[[Join], PlanCost] = cache(partial(cost, graph))

    def correct(self, correction: CostCorrection) -> PlanEstimator:
        """Return an estimator that multiplies modelled seconds by what was measured."""
        corrected = copy(self)
        corrected.correction = correction
        return corrected

    def estimate(self, plan: Join, allowance: Allowance | None = None) -> tuple[float, float]:
        """Estimate the recall of a plan under an allowance, and its seconds of work per second."""
        exact_results, _ = self.forecast.estimate_exact(plan)
        results, probing = self.forecast.estimate(plan, allowance)
        recall = min(1.0, results / exact_results) if exact_results else 1.0
        return recall, self.estimate_unskippable(plan) + self.correction.probing * probing

    def estimate_unskippable(self, plan: Join) -> float:
        """Estimate the seconds per second that shedding cannot skip.

        These are for storing and expiring rows, and for hops however few rows they process. Zero for plans
        with composed windows, for which there is no model.
        """
        if is_composed(plan):
            return 0.0
        net = self.forecast.network_builder(plan).network()
        modelled = self._cost(plan).cpu - compute_flow(net, [math.inf] * len(net.links)).spent
        return self.correction.unskippable * max(0.0, modelled)

    def estimate_memory(self, plan: Join) -> float:
        """Estimate the bytes of a plan's states; zero for plans with composed windows."""
        return 0.0 if is_composed(plan) else self._cost(plan).memory


def measure_correction(
    statistics: Statistics, running: PlanInForce, modelled: PlanEstimator, limits: Limits
) -> CostCorrection:
    """Compare the measured load with the model.

    The cost of conditions differs between queries, that of storing rows hardly does. So probing explains any
    load beyond the model, and other work is corrected downwards only.
    """
    unskippable = modelled.estimate_unskippable(running.plan)
    probing = modelled.estimate(running.plan, running.allowance)[1] - unskippable
    load = statistics.load.value or 0.0
    share = min(1.0, _MOST_UNSKIPPABLE_SHARE * load / unskippable) if load and unskippable > 0 else 1.0
    scale = _measure_probing(statistics, running, unskippable * share, probing, limits)
    return CostCorrection(min(max(scale, _LEAST_SCALE), _MOST_SCALE), share)


def _measure_probing(
    statistics: Statistics, running: PlanInForce, unskippable: float, probing: float, limits: Limits
) -> float:
    """Return measured over modelled seconds of probing."""
    load, before = statistics.load.value or 0.0, statistics.scale
    measured = (load - unskippable) / probing if load and probing > 0 else before or 1.0
    if not before:
        return measured
    if running.is_exact:
        return measured if statistics.window_fill >= _FILLED_SHARE else max(measured, before)
    # While shedding, seconds vary a lot: believe at once that work takes longer, but that it takes less only
    # after some batches, and step by step (the throttle of Gedik et al. 2007, section III).
    if is_underused(statistics, limits):
        return before / _BOOST
    if load > limits.cpu:
        return before * max(1.0, load / (unskippable + before * probing))
    return before
