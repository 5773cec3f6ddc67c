"""The plan with the least CPU, whatever memory it takes: the first of JTree-Finder's frontier, found sooner.

As long as memory does not count, the cheapest plan of a set of streams is made of the cheapest plans of its
parts, so one plan per set is kept.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from operator import neg

import numpy as np

from weir.plan.jtree_finder import tabulate_extensions
from weir.plan.plan_candidate import PlanCandidate, join_candidates, make_leaf
from weir.plan.probing_orders import find_best_orders
from weir.plan.space import Space
from weir.plan.stream_sets import Mask, bits


def find_cheapest_plan(space: Space, most: float = math.inf) -> PlanCandidate | None:
    """Find the plan with the least CPU; None if it takes more than `most`."""
    return _Search(space, most).run()


class _Search:
    """Goes through connected sets, small ones first, and the partitions of each that may be the cheapest."""

    def __init__(self, space: Space, most: float) -> None:
        self._space, self._most = space, most
        connected = np.flatnonzero(space.connected_table).tolist()
        self._sets = sorted(connected, key=int.bit_count)
        self._extension_seconds = tabulate_extensions(space)
        # Single look-ups are faster in lists than in arrays.
        tables: list[list[float]] = [t.tolist() for t in (*space.state_tables, space.renewal_table)]
        self._new_slices, _, self._overhead, self._upkeep, self._renewal = tables
        # What an input's first hop takes at least, whatever it probes.
        firsts = (
            np.nanmin(space.extension_table[connected[:-1]], axis=1) * space.renewal_table[connected[:-1]]
        )
        self._first_hop = dict(zip(connected, firsts.tolist(), strict=False))
        # Of the sets that have a plan within the limit: the plan, its CPU with the upkeep of its state, and
        # the sets by their lowest stream.
        self._plans: dict[Mask, PlanCandidate] = {}
        self._least: dict[Mask, float] = {}
        self._by_lowest: dict[Mask, list[Mask]] = {1 << i: [] for i in range(len(space.names))}
        # CPU of the cheapest plan so far of the set at hand.
        self._bound = math.inf

    def run(self) -> PlanCandidate | None:
        space = self._space
        for mask in self._sets:
            outside = sum(self._upkeep[1 << i] for i in bits(space.everything & ~mask))
            plan = self._plan(mask, self._most - outside) if mask.bit_count() > 1 else make_leaf(mask)
            if plan is not None:
                self._plans[mask], self._least[mask] = plan, plan.cpu + self._upkeep[mask]
                insort(self._by_lowest[mask & -mask], mask, key=neg)
        return self._plans.get(space.everything)

    def _plan(self, mask: Mask, room: float) -> PlanCandidate | None:
        """Find the cheapest plan of a set, if there is room for it."""
        space = self._space
        best: tuple[Mask, ...] | None = None
        self._bound = room
        for left in self._by_lowest[mask & -mask]:
            right = mask ^ left
            if (
                not left & ~mask
                and right in self._least
                and (cpu := self._pair_cpu(left, right)) <= self._bound
            ):
                best, self._bound = (left, right), cpu
        matches = (space.graph.costs.match + space.output_seconds(mask)) * space.rate(mask)
        for parts in self._partitions(mask, (), matches, 0.0, 0.0):
            orders = find_best_orders(space, parts, self._extension_seconds)
            cpu = orders.seconds + sum(self._least[part] for part in parts)
            if cpu <= self._bound:
                best, self._bound = parts, cpu
        if best is None:
            return None
        orders = find_best_orders(space, best, self._extension_seconds)
        return join_candidates(space, [self._plans[part] for part in best], orders)

    def _pair_cpu(self, left: Mask, right: Mask) -> float:
        """CPU of the binary join of two sets."""
        overhead = (
            self._new_slices[left] * self._overhead[right] + self._new_slices[right] * self._overhead[left]
        )
        hops = self._renewal[left] * self._extension_seconds(left, right)
        hops += self._renewal[right] * self._extension_seconds(right, left)
        return self._least[left] + self._least[right] + overhead + hops

    def _partitions(
        self, rest: Mask, parts: tuple[Mask, ...], least: float, new_slices: float, overhead: float
    ) -> Iterator[tuple[Mask, ...]]:
        """Yield partitions into three and more parts whose lower bound of CPU is within the bound.

        The lower bound sums the plans of the parts, their first hops, the matches and the overhead of hops.
        `new_slices` and `overhead` are sums over the parts so far: one more part is probed by all their new
        slices, and its own probe theirs.
        """
        for part in self._by_lowest[rest & -rest]:
            left = rest ^ part
            if part & ~rest or (not left and len(parts) < 2):
                continue
            fixed = new_slices * self._overhead[part] + self._new_slices[part] * overhead
            cpu = least + self._least[part] + self._first_hop[part] + fixed
            if cpu <= self._bound:
                if not left:
                    yield (*parts, part)
                else:
                    yield from self._partitions(
                        left,
                        (*parts, part),
                        cpu,
                        new_slices + self._new_slices[part],
                        overhead + self._overhead[part],
                    )
