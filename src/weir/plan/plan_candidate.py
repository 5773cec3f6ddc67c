"""A plan under consideration: a tree over sets of streams, with its estimated CPU and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.plan.probing_orders import choose_probing_orders
from weir.plan.space import ProbingOrders, Space
from weir.plan.stream_sets import Mask, bits
from weir.plan.tree import Join, JTree, Leaf


@dataclass(frozen=True, slots=True)
class PlanCandidate:
    """A tree; `cpu` and `memory` are those of all of it, except its own output, which is not stored.

    `seconds` is the CPU of the hops of the root: the part of `cpu` that does not depend on the plans of its
    inputs.
    """

    mask: Mask
    inputs: tuple[PlanCandidate, ...]
    orders: tuple[tuple[int, ...], ...]
    seconds: float
    cpu: float
    memory: float


def make_leaf(mask: Mask) -> PlanCandidate:
    """One stream."""
    return PlanCandidate(mask, (), (), 0.0, 0.0, 0.0)


def make_mjoin(space: Space) -> PlanCandidate:
    """One join of all streams."""
    return join_candidates(space, [make_leaf(1 << i) for i in bits(space.everything)])


def join_candidates(
    space: Space, inputs: Sequence[PlanCandidate], orders: ProbingOrders | None = None
) -> PlanCandidate:
    """Join trees, whose outputs are stored from now on; probing orders are chosen unless given."""
    masks = [child.mask for child in inputs]
    orders = orders or choose_probing_orders(space, masks)
    return PlanCandidate(
        mask=sum(masks),
        inputs=tuple(inputs),
        orders=orders.orders,
        seconds=orders.seconds,
        cpu=orders.seconds + sum(child.cpu + space.maintenance_seconds(child.mask) for child in inputs),
        memory=sum(child.memory + space.memory(child.mask) for child in inputs),
    )


def to_tree(space: Space, candidate: PlanCandidate) -> JTree:
    """Return the join tree of a candidate, with the names of its streams."""
    if not candidate.inputs:
        return Leaf(space.streams(candidate.mask)[0])
    # In the order of their first streams: a state is cut by the time of the first one, as it was costed.
    inputs = candidate.inputs
    sequence = sorted(range(len(inputs)), key=lambda i: inputs[i].mask & -inputs[i].mask)
    new_index = {old: new for new, old in enumerate(sequence)}
    return Join(
        tuple(to_tree(space, inputs[i]) for i in sequence),
        tuple(tuple(new_index[k] for k in candidate.orders[i]) for i in sequence),
    )
