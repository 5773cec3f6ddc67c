"""Plans: join trees, their cost, and the search for the one to run."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir.plan.default_plan import linear, mjoin
    from weir.plan.tree import Join, JTree, Leaf, hops, join

__all__ = [
    "JTree",
    "Join",
    "Leaf",
    "hops",
    "join",
    "linear",
    "mjoin",
]

__getattr__ = lazy_names(
    __name__,
    {
        "JTree": "weir.plan.tree",
        "Join": "weir.plan.tree",
        "Leaf": "weir.plan.tree",
        "hops": "weir.plan.tree",
        "join": "weir.plan.tree",
        "linear": "weir.plan.default_plan",
        "mjoin": "weir.plan.default_plan",
    },
)
