"""Plans: join trees, their cost, and the search for the one to run."""

from typing import TYPE_CHECKING

from weir.lazy import lazy_names

if TYPE_CHECKING:
    from weir.plan.default_plan import linear, mjoin
    from weir.plan.tree import Join, JTree, Leaf, hops, join

__all__ = ["JTree", "Join", "Leaf", "hops", "join", "linear", "mjoin"]

__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(("JTree", "Join", "Leaf", "hops", "join"), "weir.plan.tree")
    | dict.fromkeys(("linear", "mjoin"), "weir.plan.default_plan"),
)
