"""Plan a join: use the plan that the user requests, or the best one for what is known of the streams."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from weir.adapt.calibrate import calibrate_costs
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.planned_join import PlannedJoin
from weir.adapt.shedding import choose_shedding
from weir.adapt.table_statistics import TableStatistics, measure_tables
from weir.adapt.user_statistics import parse_user_statistics
from weir.plan.choose import choose
from weir.plan.cost import cost
from weir.plan.default_plan import linear, mjoin
from weir.plan.limits import Limits
from weir.plan.tree import Join, JTree, Leaf, check_plan, is_composed
from weir.query.model import Budget, Query
from weir.shed.directions import check_harvestable, default_basic_window
from weir.shed.strategies import ShedName
from weir.stats.unit_costs import TYPICAL, UnitCosts

_LOG = logging.getLogger("weir")
# Ages and rows can be shed in an mjoin only.
_MJOIN_STRATEGIES = ("harvest", "random-drop")


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the user requests of the plan and says of the streams; rates and selectivities are unchecked."""

    plan: JTree | str
    rates: Any = None
    selectivities: Any = None
    shed: ShedName = "auto"

    def divided(self, query: Query) -> Query:
        """Return the query with a length of basic windows, if harvesting needs one and it has none."""
        retentions = [r for i in range(len(query.names)) if (r := query.bounds.retention(i)) and r > 0]
        if self.shed != "harvest" or query.basic is not None or not retentions:
            return query
        return replace(query, basic=math.ceil(default_basic_window(retentions)))

    def planned(self, query: Query, tables: Mapping[str, Any] | None = None, cores: int = 1) -> PlannedJoin:
        """Choose the plan; if that needs rates and none are given, measure them on the tables."""
        statistics = parse_user_statistics(query, self.rates, self.selectivities)
        needs_rates = self.plan == "bjtree" or (self.plan == "auto" and query.budget is not None)
        if statistics is None and needs_rates:
            statistics = _measure(query, tables or {})
        wanted = "mjoin" if self.plan == "auto" and self.shed in _MJOIN_STRATEGIES else self.plan
        planned = _choose_plan(wanted, query, statistics, convert_budget(query.budget, cores))
        planned = replace(planned, shed=self.shed)
        if self.shed in _MJOIN_STRATEGIES:
            check_harvestable(planned.plan, dict(zip(query.names, query.windows, strict=True)))
        if planned.warning is not None:
            _LOG.warning(planned.warning)
        # Tables are joined whole; only streams with rates given beforehand shed from the start.
        return planned if self.rates is None else _add_shedding(planned, query)


def convert_budget(budget: Budget | None, cores: int) -> Limits:
    """Convert a budget to CPU seconds per second over all cores, and bytes."""
    if budget is None:
        return Limits()
    cpu = math.inf if budget.cpu is None else budget.cpu * cores
    return Limits(cpu, math.inf if budget.bytes is None else float(budget.bytes))


def _measure(query: Query, tables: Mapping[str, Any]) -> TableStatistics | None:
    rows = {name: table for name, table in tables.items() if isinstance(table, pa.Table)}
    return measure_tables(query, rows) if len(rows) == len(query.names) else None


def _choose_plan(
    wanted: JTree | str, query: Query, statistics: TableStatistics | None, limits: Limits
) -> PlannedJoin:
    """Choose the plan to run; `auto` without rates is the mjoin."""
    by_hand = check_plan(wanted, query) if isinstance(wanted, Join | Leaf) else None
    if statistics is None:
        plan = by_hand or (linear(query) if wanted == "bjtree" else mjoin(query))
        return PlannedJoin(plan, wanted == "auto", by_hand is not None)
    graph = estimate_join_graph(query, statistics.rates, statistics.selectivities, _unit_costs(query))
    if by_hand is not None:
        known_cost = None if is_composed(by_hand) else cost(graph, by_hand)
        return PlannedJoin(by_hand, by_hand=True, graph=graph, cost=known_cost, limits=limits)
    choice = choose(graph, limits)
    if wanted == "auto":
        return PlannedJoin(choice.plan, True, False, graph, cost(graph, choice.plan), choice, limits)
    plan = choice.mjoin.plan if wanted == "mjoin" else choice.bjtree.plan
    return PlannedJoin(plan, graph=graph, cost=cost(graph, plan), limits=limits)


def _unit_costs(query: Query) -> UnitCosts:
    """Return typical costs, which suffice to compare plans; a CPU limit needs those of this machine."""
    return TYPICAL if query.budget is None or query.budget.cpu is None else calibrate_costs()


def _add_shedding(planned: PlannedJoin, query: Query) -> PlannedJoin:
    """Add what the plan has to shed for its CPU limit."""
    if planned.graph is None or math.isinf(planned.limits.cpu):
        return planned
    estimator = PlanEstimator(query, planned.graph)
    shedding = choose_shedding(estimator, planned.plan, planned.limits, planned.shed)
    for warning in () if shedding is None else shedding.warnings:
        _LOG.warning(warning)
    return replace(planned, shedding=shedding)
