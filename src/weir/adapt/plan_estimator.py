"""Estimate what plans of a query would use and give: CPU, memory and recall, with or without shedding."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

from weir.plan.cost import PlanCost, cost
from weir.plan.tree import Join, is_composed
from weir.query.model import Query
from weir.shed.allowance import Allowance
from weir.shed.expected import ShedForecast
from weir.shed.flow import compute_flow
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms


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
        self._costs: dict[Join, PlanCost] = {}

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

    def _cost(self, plan: Join) -> PlanCost:
        if plan not in self._costs:
            self._costs[plan] = cost(self.graph, plan)
        return self._costs[plan]
