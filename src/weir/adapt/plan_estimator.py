"""Estimate what plans of a query would use and give: CPU, memory and recall, with or without shedding.

The cost model is corrected by measurement: how many times the modelled seconds the running plan takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial

from weir.plan.cost import PlanCost, cost
from weir.plan.tree import Join, is_composed
from weir.query.model import Query
from weir.shed.allowance import Allowance
from weir.shed.expected import ShedForecast
from weir.shed.flow import compute_flow
from weir.shed.thin import trim
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

# Keep the correction within these bounds, so that a strange measurement cannot make estimates meaningless.
_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class CostCorrection:
    """Measured over modelled seconds: of all hops, which shedding can skip, and of all other work."""

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

    def correct(
        self, plan: Join, kept: float, skippable: float, allowance: Allowance | None = None
    ) -> PlanEstimator:
        """Return an estimator that is right for a plan, given its measured seconds per second.

        Thinning the root saves `skippable` of them, which were measured under an allowance, None: of the
        exact plan; `kept` are those of the joins below the root, and of all else.
        """
        modelled, measured = self.forecast.estimate(plan, allowance)[1], kept + skippable
        idle_root = trim(replace(allowance or Allowance(), sample=0.0), plan, 0.0)
        at_root = modelled - self.forecast.estimate(plan, idle_root)[1]
        # The joins below are corrected like the root, but all hops together take no more than was measured.
        probing = min(_bounded_ratio(skippable, at_root), _bounded_ratio(measured, modelled))
        stored = max(0.0, measured - probing * modelled)
        corrected = copy(self)
        corrected.correction = CostCorrection(
            probing, _bounded_ratio(stored, self.estimate_unskippable(plan))
        )
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


def _bounded_ratio(measured: float, modelled: float) -> float:
    return min(max(measured / modelled, _LEAST_FACTOR), _MOST_FACTOR) if modelled > 0 else 1.0
