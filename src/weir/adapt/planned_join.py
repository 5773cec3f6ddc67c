"""A planned join: the plan that a query starts with, why it was chosen, and what it sheds at first."""

from __future__ import annotations

from dataclasses import dataclass

from weir.adapt.analyse import Scope, choose_learning_allowance
from weir.adapt.describe_decision import describe_allowance
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.settings import Adapt, Changeable
from weir.adapt.shedding import AS_REQUESTED, SHED_FROM_START, Shedding, choose_shedding
from weir.plan.choose import Choice
from weir.plan.cost import PlanCost
from weir.plan.explain import describe_usage, render_mermaid, render_tree
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.tree import Join
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL


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

    def allowance(self, query: Query, plan: Join) -> Allowance | None:
        """Return what to shed on a plan, which after a restart may differ from the one chosen now."""
        if self.shedding is None or self.graph is None:
            return None
        if plan == self.plan:
            return self.shedding.allowance
        shedding = choose_shedding(PlanEstimator(query, self.graph), plan, self.limits, self.shed)
        return None if shedding is None else shedding.allowance

    def start(self, query: Query, adapt: Adapt | None, plan: Join) -> tuple[Allowance | None, str]:
        """Return the first allowance and its reason; a query that may have to shed later starts to learn."""
        allowance = self.allowance(query, plan)
        if allowance is not None:
            return allowance, SHED_FROM_START
        if adapt is None or query.budget is None or query.budget.cpu is None:
            return None, AS_REQUESTED
        windows = dict(zip(query.names, query.windows, strict=True))
        return choose_learning_allowance(windows, plan, self.shed), AS_REQUESTED

    def changeable(self, query: Query) -> Changeable:
        """Return what may change of the plan while it runs: nothing of one made by hand."""
        if self.by_hand:
            return "nothing"
        has_row_window = any(isinstance(window, RowWindow) for window in query.windows)
        return "tree" if self.automatic and not has_row_window else "orders"

    def scope(self, query: Query) -> Scope:
        """Return what a controller may decide while this query runs, and by which unit costs."""
        costs = TYPICAL if self.graph is None else self.graph.costs
        return Scope(self.changeable(query), self.shed, costs)

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


def explain_plan(planned: PlannedJoin, allowance: Allowance | None = None) -> str:
    """Return the explanation; an `allowance` made by hand replaces the one that follows from the budget."""
    shedding = _explain_shedding(planned, allowance)
    cost, limits, choice = planned.cost, planned.limits, planned.choice
    if cost is None:
        why = "no cost estimate, because no rates are known; pass rates="
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


def chart_plan(planned: PlannedJoin) -> str:
    """Return the tree as a Mermaid flow chart."""
    return render_mermaid(planned.plan, planned.cost)


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
