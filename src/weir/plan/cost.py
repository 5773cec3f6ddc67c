"""Cost of a plan: CPU seconds per second, and memory.

The three-stream example of Zhu et al. 2010 (equations 1 to 5), rate 20, window 5 s:

>>> from weir.plan.tree import join
>>> from weir.stats.unit_costs import UnitCosts
>>> graph = JoinGraph.of({"A": 20, "B": 20, "C": 20}, 5, {("A", "B"): 0.05, ("B", "C"): 0.5},
...                      UnitCosts.per_match(2.2e-6, 2e-7, 2e-7))
>>> bjtree = cost(graph, join(join("A", "B"), "C"))
>>> round(bjtree.cpu, 6), bjtree.rows
(0.033544, 800.0)
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.plan.probing_orders import path_seconds
from weir.plan.space import Space
from weir.plan.tree import JTree, Leaf, nodes
from weir.stats.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One node: its output rate, the size of its state, and the CPU of its hops and of maintaining its state.

    `rows` and `memory` are zero at the root, which stores nothing; a leaf has no hops. `rows` are those that
    can still join; `memory` also counts dead ones that have not expired yet.
    """

    node: str
    rate: float
    rows: float
    memory: float
    cpu: float


@dataclass(frozen=True, slots=True)
class PlanCost:
    """CPU seconds per second and memory (bytes, or rows if the graph knows no sizes), in all and per node."""

    cpu: float
    memory: float
    rows: float
    nodes: tuple[NodeCost, ...]


def cost(graph: JoinGraph, tree: JTree) -> PlanCost:
    """Estimate the cost of a plan with the probing orders it has."""
    space = Space(graph)
    space = Space(graph, {space.mask(node.streams): node.streams[0] for node in nodes(tree)})
    per_node = tuple(_node(space, node, node is tree) for node in nodes(tree))
    return PlanCost(
        cpu=sum(node.cpu for node in per_node),
        memory=sum(node.memory for node in per_node),
        rows=sum(node.rows for node in per_node),
        nodes=per_node,
    )


def _node(space: Space, node: JTree, root: bool) -> NodeCost:
    mask = space.mask(node.streams)
    cpu = 0.0 if root else space.maintenance_seconds(mask)
    if not isinstance(node, Leaf):
        inputs = [space.mask(child.streams) for child in node.inputs]
        cpu += sum(path_seconds(space, inputs, i, order) for i, order in enumerate(node.orders))
        cpu += space.join_overhead(inputs)
    rows, memory = (0.0, 0.0) if root else (space.rows(mask), space.memory(mask))
    return NodeCost(str(node), space.rate(mask), rows, memory, cpu)
