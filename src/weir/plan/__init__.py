"""Which join tree?"""

from weir.plan.choose import Choice, PlanPolicy, RankedPlan, choose, two_layer
from weir.plan.cost import NodeCost, PlanCost, cost
from weir.plan.default_plan import linear, mjoin
from weir.plan.explain import mermaid, render, show_bytes, show_share
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.tree import Join, JTree, Leaf, check, hops, is_composed, join, nodes

__all__ = [
    "NO_LIMITS",
    "Choice",
    "JTree",
    "Join",
    "Leaf",
    "Limits",
    "NodeCost",
    "PlanCost",
    "ProbePolicy",
    "RankedPlan",
    "check",
    "choose",
    "cost",
    "hops",
    "is_composed",
    "join",
    "linear",
    "mermaid",
    "mjoin",
    "nodes",
    "render",
    "show_bytes",
    "show_share",
    "two_layer",
]
