"""Explain a planned join: the tree with the cost of each node, why it was chosen, and what is shed."""

from __future__ import annotations

from weir.adapt.describe_decision import describe_allowance
from weir.adapt.planned_join import PlannedJoin
from weir.plan.choose import Choice
from weir.plan.explain import describe_usage, render_mermaid, render_tree
from weir.plan.limits import NO_LIMITS
from weir.shed.allowance import Allowance


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
