"""Join trees: leaves are streams, inner nodes are joins of two or more inputs.

>>> tree = join(join("a", "b"), "c")
>>> str(tree)
'((a b) c)'
>>> [str(node) for node in tree.inner()]
['(a b)', '((a b) c)']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir.errors import QueryError
from weir.query.model import Query
from weir.query.windows import RowWindow, TimeWindow
from weir.stats.hop import Hop


@dataclass(frozen=True, slots=True)
class Leaf:
    """One stream."""

    stream: str

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams below this node, left to right."""
        return (self.stream,)

    def inner(self) -> Iterator[Join]:
        """The joins of this tree, inputs before the join that reads them."""
        return iter(())

    def __str__(self) -> str:
        return self.stream


@dataclass(frozen=True, slots=True)
class Join:
    """One join of all its inputs; `orders[i]` is the probing order when input `i` drives.

    `window` is the node's own window over its output, for `composed` plans; without one, a partial lives
    until its deadline (`joint`).
    """

    inputs: tuple[JTree, ...]
    orders: tuple[tuple[int, ...], ...]
    window: TimeWindow | RowWindow | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise QueryError(f"a join needs at least two inputs; got {len(self.inputs)}")
        names = self.streams
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise QueryError(f"stream '{repeated}' stands twice in the plan {self}; each stream is one leaf")
        for driver, order in enumerate(self.orders[: len(self.inputs)]):
            if sorted(order) != [i for i in range(len(self.inputs)) if i != driver]:
                raise QueryError(
                    f"the probing order {order} of input {driver} of {self} must name every other input once"
                )
        if len(self.orders) != len(self.inputs):
            raise QueryError(f"{self} needs one probing order per input; got {len(self.orders)}")

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams below this node, left to right."""
        return tuple(name for node in self.inputs for name in node.streams)

    @property
    def is_mjoin(self) -> bool:
        """True if this one join reads all streams."""
        return all(isinstance(child, Leaf) for child in self.inputs)

    def inner(self) -> Iterator[Join]:
        """The joins of this tree, inputs before the join that reads them."""
        for node in self.inputs:
            yield from node.inner()
        yield self

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.inputs))})"


JTree = Leaf | Join


def join(*inputs: JTree | str, orders: Sequence[Sequence[int]] | None = None) -> Join:
    """Join trees and streams given by name; without `orders`, every driver probes left to right."""
    for node in inputs:
        if not isinstance(node, str | Leaf | Join):
            raise QueryError(f"a plan is made of stream names and other plans; got {node!r}")
    nodes = tuple(Leaf(node) if isinstance(node, str) else node for node in inputs)
    if orders is None:
        orders = [[i for i in range(len(nodes)) if i != driver] for driver in range(len(nodes))]
    return Join(nodes, tuple(tuple(order) for order in orders))


def check_plan(tree: JTree, query: Query) -> Join:
    """Return the tree if it joins exactly the streams of the query, else raise."""
    if not isinstance(tree, Join):
        raise QueryError(f"a plan must join at least two streams; got the single stream {tree}")
    if sorted(tree.streams) != sorted(query.names):
        raise QueryError(
            f"the plan {tree} must hold each stream of the query once; the query has "
            + ", ".join(f"'{name}'" for name in query.names)
        )
    has_window = [node.window is not None for node in tree.inner() if node is not tree]
    if any(has_window) and not all(has_window):
        raise QueryError(f"in the plan {tree} either every join below the root has its own window or none")
    return tree


def nodes(tree: JTree) -> list[JTree]:
    """List every node of a tree, leaves and joins, inputs before the join that reads them."""
    below = [] if isinstance(tree, Leaf) else [node for child in tree.inputs for node in nodes(child)]
    return [*below, tree]


def hops(tree: Join) -> tuple[Hop, ...]:
    """List every half-way join of a plan: in each join, each input that drives with each of its partners.

    >>> [str(hop) for hop in hops(join("a", "b"))]
    ['a ⋉ b in (a b)', 'b ⋉ a in (a b)']
    """
    return tuple(
        Hop(str(driver), str(node), str(node.inputs[i]))
        for node in tree.inner()
        for driver, order in zip(node.inputs, node.orders, strict=True)
        for i in order
    )


def is_composed(tree: Join) -> bool:
    """True if joins below the root have windows of their own."""
    return any(node.window is not None for node in tree.inner() if node is not tree)
