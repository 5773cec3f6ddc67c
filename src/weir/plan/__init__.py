"""Which join tree?"""

from weir.plan.default import linear, mjoin
from weir.plan.render import mermaid, render
from weir.plan.tree import Join, JTree, Leaf, check, is_composed, join

__all__ = ["JTree", "Join", "Leaf", "check", "is_composed", "join", "linear", "mermaid", "mjoin", "render"]
