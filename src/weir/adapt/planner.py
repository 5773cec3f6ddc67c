"""Plan a join: use the plan that the user requests, or the best one for what is known of the streams."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from weir.adapt.analyse import AdaptationScope, choose_learning_allowance
from weir.adapt.calibrate import calibrate_costs
from weir.adapt.describe_decision import describe_allowance
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.settings import Adapt, Changeable
from weir.adapt.shedding import AS_REQUESTED, SHED_FROM_START, Shedding, choose_shedding
from weir.adapt.table_statistics import TableStatistics, measure_tables
from weir.adapt.user_statistics import parse_user_statistics
from weir.plan.choose import Choice, choose
from weir.plan.cost import PlanCost, cost
from weir.plan.default_plan import linear, mjoin
from weir.plan.explain import describe_usage, render_tree
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.tree import Join, JTree, Leaf, check_plan, is_composed
from weir.query.model import Budget, Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.directions import check_harvestable, default_basic_window
from weir.shed.strategies import ShedName, find_strategy
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL

_LOG = logging.getLogger("weir")


@dataclass(frozen=True)
class PlannedJoin:
    """The plan to start with.

    `automatic` if weir chose it, `by_hand` if the user built the tree. With known rates it has a join graph
    and a cost, and if weir searched for it, the `choice`.
    """

    plan: Join
    automatic: bool = False
    by_hand: bool = False
    graph: JoinGraph | None = None
    cost: PlanCost | None = None
    choice: Choice | None = None
    limits: Limits = NO_LIMITS
    shedding: Shedding | None = None
    shed: ShedName = "auto"

    def start(self, query: Query, adapt: Adapt | None, plan: Join) -> tuple[Allowance | None, str]:
        """Return the first allowance and its reason; a query that may have to shed later starts to learn."""
        shedding = self.shedding  # of the plan chosen now, which may be another one than before a restart
        if shedding is not None and self.graph is not None and plan != self.plan:
            shedding = choose_shedding(PlanEstimator(query, self.graph), plan, self.limits, self.shed)
        if shedding is not None:
            return shedding.allowance, SHED_FROM_START
        if adapt is None or query.budget is None:
            return None, AS_REQUESTED
        windows = dict(zip(query.names, query.windows, strict=True))
        return choose_learning_allowance(windows, plan, self.shed), AS_REQUESTED

    def scope(self, query: Query) -> AdaptationScope:
        """Return what a controller may decide while this query runs, nothing of a plan made by hand."""
        has_row_window = any(isinstance(window, RowWindow) for window in query.windows)
        may_change: Changeable = "tree" if self.automatic and not has_row_window else "orders"
        costs = TYPICAL if self.graph is None else self.graph.costs
        return AdaptationScope("nothing" if self.by_hand else may_change, self.shed, costs)

    @property
    def warning(self) -> str | None:
        """Say that the plan exceeds the budget; None if it fits or is not known to exceed it."""
        if self.cost is None or self.limits.allow(self.cost.cpu, self.cost.memory):
            return None
        excess = self.limits.excess(self.cost.cpu, self.cost.memory)
        usage, limits = (describe_usage(both.cpu, both.memory) for both in (self.cost, self.limits))
        which = f"the requested plan {self.plan}"
        if self.choice:
            which = f"no plan fits the budget; the plan that exceeds it least, {self.plan},"
        return f"{which} takes {excess:.3g} times the limit ({usage}; limits: {limits})"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What the user requests of the plan and says of the streams; rates and selectivities are unchecked."""

    plan: JTree | str
    rates: Any = None
    selectivities: Any = None
    shed: ShedName = "auto"

    def divide_windows(self, query: Query) -> Query:
        """Return the query with a length of basic windows, if harvesting needs one and it has none."""
        retentions = [r for i in range(len(query.names)) if (r := query.bounds.retention(i)) and r > 0]
        strategy = find_strategy(self.shed)
        # 'auto' uses ages too, but may take a plan without any.
        sheds_ages = strategy.uses_ages and strategy.mjoin_only
        if not sheds_ages or query.basic is not None or not retentions:
            return query
        return replace(query, basic=math.ceil(default_basic_window(retentions)))

    def needs_rates(self, query: Query) -> bool:
        """True if the plan is chosen by its cost."""
        return self.plan == "bjtree" or (self.plan == "auto" and query.budget is not None)

    def plan_join(self, query: Query, tables: Mapping[str, Any] | None = None, cores: int = 1) -> PlannedJoin:
        """Choose the plan; if that needs rates and none are given, measure them on the tables."""
        statistics = parse_user_statistics(query, self.rates, self.selectivities)
        if statistics is None and self.needs_rates(query):
            rows = {name: table for name, table in (tables or {}).items() if isinstance(table, pa.Table)}
            statistics = measure_tables(query, rows) if len(rows) == len(query.names) else None
        mjoin_only = find_strategy(self.shed).mjoin_only
        wanted = "mjoin" if self.plan == "auto" and mjoin_only else self.plan
        planned = _choose_plan(wanted, query, statistics, _convert_budget(query.budget, cores), self.shed)
        if mjoin_only:
            check_harvestable(planned.plan, dict(zip(query.names, query.windows, strict=True)))
        if planned.warning is not None:
            _LOG.warning(planned.warning)
        # Tables are joined whole; only streams with rates given beforehand shed from the start.
        if self.rates is None or planned.graph is None or math.isinf(planned.limits.cpu):
            return planned
        model = PlanEstimator(query, planned.graph)
        shedding = choose_shedding(model, planned.plan, planned.limits, self.shed)
        for warning in () if shedding is None else shedding.warnings:
            _LOG.warning(warning)
        return replace(planned, shedding=shedding)


def explain_plan(planned: PlannedJoin, allowance: Allowance | None = None) -> str:
    """Return the explanation; an `allowance` made by hand replaces the one that follows from the budget."""
    shedding = _explain_shedding(planned, allowance)
    cost, limits, choice = planned.cost, planned.limits, planned.choice
    if cost is None:
        why = "no cost estimate, because no rates are known; pass rates= (in a script RATE)"
        if planned.graph is not None:
            why = "no cost estimate for plans with composed windows"
        return "\n".join(["plan", render_tree(planned.plan), f"({why})", *shedding])
    lines = ["plan", render_tree(planned.plan, cost), f"total {describe_usage(cost.cpu, cost.memory)}"]
    if limits != NO_LIMITS:
        lines[-1] += f"; limits: {describe_usage(limits.cpu, limits.memory)}"
    if choice is not None:
        lines.append(f"why: {_explain_choice(choice)}")
        for name, plan in (("mjoin", choice.mjoin), ("bjtree", choice.bjtree)):
            fits = "fits" if choice.limits.allow(plan.cpu, plan.memory) else "does not fit"
            usage = describe_usage(plan.cpu, plan.memory)
            lines.append(f"     the {name} {plan.plan} would take {usage}: {fits}")
    return "\n".join([*lines, *shedding])


def _convert_budget(budget: Budget | None, cores: int) -> Limits:
    """Convert a budget to CPU seconds per second over all cores, and bytes."""
    if budget is None:
        return NO_LIMITS
    cpu = math.inf if budget.cpu is None else budget.cpu * cores
    return Limits(cpu, math.inf if budget.bytes is None else float(budget.bytes))


def _choose_plan(
    wanted: JTree | str, query: Query, statistics: TableStatistics | None, limits: Limits, shed: ShedName
) -> PlannedJoin:
    """Choose the plan to run; `auto` without rates is the mjoin."""
    by_hand = check_plan(wanted, query) if isinstance(wanted, Join | Leaf) else None
    is_auto = wanted == "auto"
    if statistics is None:
        plan = by_hand or (linear(query) if wanted == "bjtree" else mjoin(query))
        return PlannedJoin(plan, is_auto, by_hand is not None, shed=shed)
    # Typical costs suffice to compare plans; a CPU limit needs those of this machine.
    costs = TYPICAL if query.budget is None or query.budget.cpu is None else calibrate_costs()
    graph = estimate_join_graph(query, statistics.rates, statistics.selectivities, costs)
    if by_hand is not None:
        known_cost = None if is_composed(by_hand) else cost(graph, by_hand)
        return PlannedJoin(by_hand, by_hand=True, graph=graph, cost=known_cost, limits=limits, shed=shed)
    choice = choose(graph, limits)
    plan = choice.plan if is_auto else (choice.mjoin if wanted == "mjoin" else choice.bjtree).plan
    shown = choice if is_auto else None
    return PlannedJoin(plan, is_auto, False, graph, cost(graph, plan), shown, limits, shed=shed)


def _explain_shedding(planned: PlannedJoin, allowance: Allowance | None) -> list[str]:
    if allowance is not None:
        title = "shedding by the given allowance:"
    elif planned.shedding is not None:
        allowance, recall = planned.shedding.allowance, planned.shedding.recall
        title = f"shedding by {planned.shedding.strategy} keeps about {recall:.0%} of the results"
    else:
        return []
    lines = describe_allowance(allowance)
    return [title, *(f"     {line}" for line in lines)] if lines else []


def _explain_choice(choice: Choice) -> str:
    if not choice.qualified:
        why = f"no plan fits the limits, and this one exceeds them least ({choice.excess:.3g} times)"
    elif choice.limits == NO_LIMITS:
        why = "there are no limits, and it takes the least CPU"
    else:
        why = "it fits the limits"
    return f"{why}; found by {choice.found_by}"
