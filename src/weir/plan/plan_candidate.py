"""A plan while it is being searched for: sets of streams instead of names, with its cost kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.plan.probing_orders import probing_orders
from weir.plan.space import Mask, Orders, Space, bits
from weir.plan.tree import Join, JTree, Leaf


@dataclass(frozen=True, slots=True)
class PlanCandidate:
    """A tree; `cpu` and `memory` are those of the whole, but for its own output, which is not stored.

    `seconds` is what the hops of the top join take, the part of `cpu` that does not depend on its inputs'
    making.
    """

    mask: Mask
    inputs: tuple[PlanCandidate, ...]
    orders: tuple[tuple[int, ...], ...]
    seconds: float
    cpu: float
    memory: float

    @property
    def states(self) -> tuple[PlanCandidate, ...]:
        """The joins below the top: those whose output is stored."""
        inner = [child for child in self.inputs if child.inputs]
        return tuple(state for child in inner for state in (child, *child.states))


def leaf(mask: Mask) -> PlanCandidate:
    """One stream."""
    return PlanCandidate(mask, (), (), 0.0, 0.0, 0.0)


def leaves(mask: Mask) -> tuple[PlanCandidate, ...]:
    """Every stream of a set."""
    return tuple(leaf(1 << i) for i in bits(mask))


def joined(space: Space, inputs: Sequence[PlanCandidate], found: Orders | None = None) -> PlanCandidate:
    """A join of some trees, whose outputs are now stored; probing orders are chosen unless given."""
    inputs = tuple(inputs)
    masks = [child.mask for child in inputs]
    orders = found or probing_orders(space, masks)
    return PlanCandidate(
        mask=sum(masks),
        inputs=inputs,
        orders=orders.orders,
        seconds=orders.seconds,
        cpu=orders.seconds + sum(child.cpu + space.upkeep(child.mask) for child in inputs),
        memory=sum(child.memory + space.memory(child.mask) for child in inputs),
    )


def tree(space: Space, sketch: PlanCandidate) -> JTree:
    """The same with names."""
    if not sketch.inputs:
        return Leaf(space.streams(sketch.mask)[0])
    # In the order of their first streams: a state is cut by the time of the first one, as it was costed.
    place = sorted(range(len(sketch.inputs)), key=lambda i: sketch.inputs[i].mask & -sketch.inputs[i].mask)
    moved = {old: new for new, old in enumerate(place)}
    return Join(
        tuple(tree(space, sketch.inputs[i]) for i in place),
        tuple(tuple(moved[k] for k in sketch.orders[i]) for i in place),
    )
