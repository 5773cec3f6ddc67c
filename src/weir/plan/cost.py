"""What a plan takes: CPU seconds each second, and memory.

The three-stream example of Zhu et al. 2010 (equations 1 to 5), rate 20, window 5 s:

>>> from weir.plan import join
>>> from weir.stats import Costs
>>> graph = JoinGraph.of({"A": 20, "B": 20, "C": 20}, 5, {("A", "B"): 0.05, ("B", "C"): 0.5},
...                      Costs.per_match(2.2e-6, 2e-7, 2e-7))
>>> both = cost(graph, join(join("A", "B"), "C"))
>>> round(both.cpu, 6), both.rows
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
    """One node: what it puts out each second, what its stored output takes, and what its hops take.

    `rows` and `memory` are zero at the root, which stores nothing; a leaf has no hops. `rows` are those that
    can still join, `memory` counts dead ones too that the kernel has not let go yet. `cpu` counts the upkeep
    of the node's state.
    """

    node: str
    rate: float
    rows: float
    memory: float
    cpu: float


@dataclass(frozen=True, slots=True)
class PlanCost:
    """CPU seconds each second and memory (bytes, or rows where the graph knows no sizes), node by node."""

    cpu: float
    memory: float
    rows: float
    nodes: tuple[NodeCost, ...]


def cost(graph: JoinGraph, tree: JTree) -> PlanCost:
    """What a plan takes, with the probing orders it has."""
    space = Space(graph)
    space = Space(graph, {space.mask(node.streams): node.streams[0] for node in nodes(tree)})
    found = tuple(_node(space, node, node is tree) for node in nodes(tree))
    return PlanCost(
        cpu=sum(node.cpu for node in found),
        memory=sum(node.memory for node in found),
        rows=sum(node.rows for node in found),
        nodes=found,
    )


def _node(space: Space, node: JTree, root: bool) -> NodeCost:
    mask = space.mask(node.streams)
    cpu = 0.0 if root else space.upkeep(mask)
    if not isinstance(node, Leaf):
        inputs = [space.mask(child.streams) for child in node.inputs]
        cpu += sum(path_seconds(space, inputs, i, order) for i, order in enumerate(node.orders))
        cpu += space.fixed(inputs)
    rows, memory = (0.0, 0.0) if root else (space.rows(mask), space.memory(mask))
    return NodeCost(str(node), space.rate(mask), rows, memory, cpu)
