"""Which plan a query gets: the one asked for, or the best one for what is known of its streams."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from weir.adapt.analyse import Movable, allowance_for_learning
from weir.adapt.calibrate import TYPICAL, calibrate_costs
from weir.adapt.controller import Scope
from weir.adapt.describe_decision import share_lines
from weir.adapt.estimate import estimate_join_graph
from weir.adapt.settings import Adapt
from weir.adapt.shedding import AS_ASKED, SHED, Shedding, choose_shedding
from weir.adapt.table_statistics import TableStatistics, measure_tables
from weir.adapt.user_statistics import parse_user_statistics
from weir.plan.choose import Choice, choose
from weir.plan.cost import PlanCost, cost
from weir.plan.default_plan import linear, mjoin
from weir.plan.explain import mermaid, render, show_bytes, show_share
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.tree import Join, JTree, Leaf, check, is_composed
from weir.query.model import Budget, Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.directions import check_harvestable, usual_basic
from weir.shed.strategies import ShedName
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

_LOG = logging.getLogger("weir")
# Ages and rows are shed in an mjoin only.
_IN_AN_MJOIN = ("harvest", "random-drop")


@dataclass(frozen=True)
class PlannedJoin:
    """The plan, whether we chose it, and if rates are known its graph, its cost, and how it was chosen."""

    plan: Join
    automatic: bool = False
    by_hand: bool = False
    graph: JoinGraph | None = None
    cost: PlanCost | None = None
    choice: Choice | None = None
    limits: Limits = NO_LIMITS
    shedding: Shedding | None = None
    shed: ShedName = "auto"

    def allowance(self, query: Query, plan: Join) -> Allowance | None:
        """What is to be skipped on a plan, which after a restart need not be the one chosen now."""
        if self.shedding is None or self.graph is None:
            return None
        if plan == self.plan:
            return self.shedding.allowance
        found = choose_shedding(query, self.graph, plan, self.limits, self.shed)
        return None if found is None else found.allowance

    def start(self, query: Query, adapt: Adapt | None, plan: Join) -> tuple[Allowance | None, str]:
        """What is skipped from the start, and why; a query that may have to skip later begins to learn."""
        shed = self.allowance(query, plan)
        if shed is not None:
            return shed, SHED
        if adapt is None or query.budget is None or query.budget.cpu is None:
            return None, AS_ASKED
        windows = dict(zip(query.names, query.windows, strict=True))
        return allowance_for_learning(windows, plan, self.shed), AS_ASKED

    def movable(self, query: Query) -> Movable:
        """What of the plan may change while it runs; one made by hand stays as it is."""
        if self.by_hand:
            return "nothing"
        in_rows = any(isinstance(window, RowWindow) for window in query.windows)
        return "tree" if self.automatic and not in_rows else "orders"

    def scope(self, query: Query) -> Scope:
        """What may be decided while this query runs, and by which costs."""
        costs = TYPICAL if self.graph is None else self.graph.costs
        return Scope(self.movable(query), self.shed, costs)

    @property
    def warning(self) -> str | None:
        """What a user has to know: that the plan does not fit the budget."""
        if self.cost is None or self.limits.allow(self.cost.cpu, self.cost.memory):
            return None
        excess = self.limits.excess(self.cost.cpu, self.cost.memory)
        which = "no plan fits the budget: the least over it," if self.choice else "the plan asked for,"
        taken, allowed = (_usage(one.cpu, one.memory) for one in (self.cost, self.limits))
        return f"{which} {self.plan}, takes {excess:.3g} times what is allowed ({taken}, allowed {allowed})"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a user wants of the plan, and says about the streams; rates and selectivities are unchecked."""

    plan: JTree | str
    rates: Any = None
    selectivities: Any = None
    shed: ShedName = "auto"

    def divided(self, query: Query) -> Query:
        """The query with basic windows, if its windows are to be harvested and it does not say how long."""
        kept = [kept for i in range(len(query.names)) if (kept := query.bounds.retention(i)) and kept > 0]
        if self.shed != "harvest" or query.basic is not None or not kept:
            return query
        return replace(query, basic=math.ceil(usual_basic(kept)))

    def planned(self, query: Query, tables: Mapping[str, Any] | None = None, cores: int = 1) -> PlannedJoin:
        """The plan to run; tables are measured if a plan hangs on it and no rates are given."""
        seen = parse_user_statistics(query, self.rates, self.selectivities)
        if seen is None and (self.plan == "bjtree" or (self.plan == "auto" and query.budget is not None)):
            seen = _measured(query, tables or {})
        wanted = "mjoin" if self.plan == "auto" and self.shed in _IN_AN_MJOIN else self.plan
        found = replace(_planned(wanted, query, seen, limits_of(query.budget, cores)), shed=self.shed)
        if self.shed in _IN_AN_MJOIN:
            check_harvestable(found.plan, dict(zip(query.names, query.windows, strict=True)))
        if found.warning is not None:
            _LOG.warning(found.warning)
        # Tables are joined whole; only streams whose rates are known before they run are shed from the start.
        return found if self.rates is None else _shed(found, query)


def _shed(found: PlannedJoin, query: Query) -> PlannedJoin:
    """The same plan with what it has to skip for the CPU it is allowed."""
    if found.graph is None or math.isinf(found.limits.cpu):
        return found
    shed = choose_shedding(query, found.graph, found.plan, found.limits, found.shed)
    for warning in () if shed is None else shed.warnings:
        _LOG.warning(warning)
    return replace(found, shedding=shed)


def _measured(query: Query, tables: Mapping[str, Any]) -> TableStatistics | None:
    rows = {name: table for name, table in tables.items() if isinstance(table, pa.Table)}
    return measure_tables(query, rows) if len(rows) == len(query.names) else None


def _costs(query: Query) -> UnitCosts:
    """Plans are weighed by typical costs; only a limit on CPU needs those of this machine."""
    return TYPICAL if query.budget is None or query.budget.cpu is None else calibrate_costs()


def _planned(wanted: JTree | str, query: Query, seen: TableStatistics | None, limits: Limits) -> PlannedJoin:
    """The plan to run; `auto` without rates is the mjoin, as nothing speaks for another one."""
    by_hand = check(wanted, query) if isinstance(wanted, Join | Leaf) else None
    if seen is None:
        plan = by_hand or (linear(query) if wanted == "bjtree" else mjoin(query))
        return PlannedJoin(plan, wanted == "auto", by_hand is not None)
    graph = estimate_join_graph(query, seen.rates, seen.selectivities, _costs(query))
    if by_hand is not None:
        taken = None if is_composed(by_hand) else cost(graph, by_hand)
        return PlannedJoin(by_hand, by_hand=True, graph=graph, cost=taken, limits=limits)
    choice = choose(graph, limits)
    if wanted == "auto":
        return PlannedJoin(choice.plan, True, False, graph, cost(graph, choice.plan), choice, limits)
    plan = choice.mjoin.plan if wanted == "mjoin" else choice.bjtree.plan
    return PlannedJoin(plan, graph=graph, cost=cost(graph, plan), limits=limits)


def limits_of(budget: Budget | None, cores: int) -> Limits:
    """A budget in the planner's units: seconds each second over all cores, and bytes."""
    if budget is None:
        return Limits()
    cpu = math.inf if budget.cpu is None else budget.cpu * cores
    return Limits(cpu, math.inf if budget.bytes is None else float(budget.bytes))


def explain_plan(found: PlannedJoin, allowance: Allowance | None = None) -> str:
    """The tree with what each node takes, the totals, why it is this one, and what is skipped.

    An `allowance` given by hand stands in place of the one that follows from the budget.
    """
    skipped = _skipped(found, allowance)
    if found.cost is None:
        why = "no rates are known, so nothing is costed; give rates="
        if found.graph is not None:
            why = "a plan whose joins have windows of their own is not costed"
        return "\n".join(["plan", render(found.plan), f"({why})", *skipped])
    lines = ["plan", render(found.plan, found.cost), f"total {_usage(found.cost.cpu, found.cost.memory)}"]
    if found.limits != NO_LIMITS:
        lines[-1] += f"; allowed {_usage(found.limits.cpu, found.limits.memory)}"
    choice = found.choice
    if choice is not None:
        lines.append(f"why: {_why(choice)}")
        for name, plan in (("mjoin", choice.mjoin), ("bjtree", choice.bjtree)):
            fits = "fits" if choice.limits.allow(plan.cpu, plan.memory) else "does not fit"
            lines.append(f"     the {name} {plan.plan} would take {_usage(plan.cpu, plan.memory)}: {fits}")
    return "\n".join([*lines, *skipped])


def _skipped(found: PlannedJoin, allowance: Allowance | None) -> list[str]:
    if allowance is not None:
        title = "shed, as the allowance says:"
    elif found.shedding is not None:
        allowance = found.shedding.allowance
        kept, way = found.shedding.recall, found.shedding.way
        title = f"shed by {way}: about {kept:.0%} of the results are kept"
    else:
        return []
    lines = share_lines(allowance)
    return [title, *(f"     {line}" for line in lines)] if lines else []


def chart_plan(found: PlannedJoin) -> str:
    """The tree as a Mermaid flow chart."""
    return mermaid(found.plan, found.cost)


def _why(choice: Choice) -> str:
    if not choice.qualified:
        return f"no plan fits, this one is least over ({choice.excess:.3g} times); found by {choice.found_by}"
    if choice.limits == NO_LIMITS:
        return f"nothing is limited, and it takes the least CPU; found by {choice.found_by}"
    return f"it fits the limits; found by {choice.found_by}"


def _usage(cpu: float, memory: float) -> str:
    shown_cpu = "any CPU" if math.isinf(cpu) else f"CPU {show_share(cpu)}"
    shown_memory = "any memory" if math.isinf(memory) else f"state {show_bytes(memory)}"
    return f"{shown_cpu}, {shown_memory}"
