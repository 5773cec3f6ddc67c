"""JTree-Finder (Zhu et al. 2010, algorithm 1): the qualified plans that no other plan dominates.

The paper lists every qualified plan. What a join costs does not depend on the plans of its inputs, so a
sub-plan that another dominates in CPU and memory can be part of no better plan. Keeping only the frontier
gives the same guarantee, a plan if there is one, for more streams. As long as memory does not count, the
frontier of a set of streams is one plan, the cheapest.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from operator import attrgetter, neg

import numpy as np

from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, join_candidates, make_leaf
from weir.plan.probing_orders import ExtensionSeconds, find_best_orders
from weir.plan.space import Space
from weir.plan.stream_sets import Mask, bits

_cpu = attrgetter("cpu")


def find_frontier(space: Space, limits: Limits = NO_LIMITS) -> list[PlanCandidate]:
    """Find the qualified plans that no other dominates in CPU and memory, least CPU first."""
    return _Search(space, limits).run()


def find_cheapest_plan(space: Space, most: float = math.inf) -> PlanCandidate | None:
    """Find the plan with the least CPU, whatever memory it takes; None if it takes more CPU than `most`."""
    return next(iter(_Search(space, Limits(cpu=most), memory_weight=0.0).run()), None)


def list_sets(space: Space) -> list[Mask]:
    """List the sets of streams that may stand below a join, small ones first."""
    connected: list[Mask] = np.flatnonzero(space.connected_table).tolist()
    return sorted(connected, key=int.bit_count)


def reserved_for_others(space: Space, mask: Mask) -> tuple[float, float]:
    """CPU and memory that the streams outside a set need at least, so that its plans are pruned early."""
    everyone, own = (sum(space.memory(1 << i) for i in bits(streams)) for streams in (space.everything, mask))
    cpu = sum(space.maintenance_seconds(1 << i) for i in bits(space.everything & ~mask))
    return cpu, everyone - own


def _tabulate_extensions(space: Space) -> tuple[ExtensionSeconds, dict[Mask, float]]:
    """`space.extension_seconds` to connected sets, by table, and what an input's first hop takes at least."""
    sets = np.flatnonzero(space.connected_table)
    first = np.nanmin(space.extension_table[sets[:-1]], axis=1) * space.renewal_table[sets[:-1]]
    column = {mask: i for i, mask in enumerate(sets.tolist())}
    # Single look-ups are faster in lists than in arrays.
    seconds: list[list[float]] = space.extension_table.tolist()
    first_hop = dict(zip(column, first.tolist(), strict=False))
    return lambda bound, partner: seconds[bound][column[partner]], first_hop


class _Search:
    """Finds the frontiers of all sets of streams, small sets first.

    Partitions of a set are built part by part; a partial one is pruned once a complete plan dominates it.
    """

    def __init__(self, space: Space, limits: Limits, memory_weight: float = 1.0) -> None:
        self._space, self._limits, self._memory_weight = space, limits, memory_weight
        self._extension_seconds, self._first_hop = _tabulate_extensions(space)
        # Of the sets done so far: their frontiers, and the least CPU and memory of each with its state.
        self._plans: dict[Mask, list[PlanCandidate]] = {}
        self._least: dict[Mask, tuple[float, float]] = {}
        # The same sets by their lowest stream, those with the highest streams first.
        self._by_lowest: dict[Mask, list[Mask]] = {1 << i: [] for i in range(len(space.names))}
        # Of the set at hand: its limits, the seconds of its matches, which all paths end with, and its
        # frontier, sorted by ascending CPU and so by descending memory.
        self._room, self._match_seconds = limits, 0.0
        self._frontier: list[PlanCandidate] = []

    def run(self) -> list[PlanCandidate]:
        """Return the frontier of all streams, least CPU first."""
        space = self._space
        for mask in list_sets(space):
            plans = self._search_set(mask) if mask.bit_count() > 1 else [make_leaf(mask)]
            if plans:
                cpu, memory = min(plan.cpu for plan in plans), min(plan.memory for plan in plans)
                memory = self._memory_weight * (memory + space.memory(mask))
                self._plans[mask], self._least[mask] = plans, (cpu + space.maintenance_seconds(mask), memory)
                insort(self._by_lowest[mask & -mask], mask, key=neg)
        return self._plans.get(space.everything, [])

    def _search_set(self, mask: Mask) -> list[PlanCandidate]:
        space, (cpu, memory) = self._space, reserved_for_others(self._space, mask)
        self._room, self._frontier = Limits(self._limits.cpu - cpu, self._limits.memory - memory), []
        self._match_seconds = (space.graph.costs.match + space.output_seconds(mask)) * space.rate(mask)
        # First the join of all streams: it prunes whatever takes more CPU and more memory.
        self._consider([1 << i for i in bits(mask)])
        for left in self._by_lowest[mask & -mask]:
            if not left & ~mask and mask ^ left in self._plans:
                self._consider([left, mask ^ left])
        for parts in self._partitions(mask, [], self._match_seconds, 0.0):
            if len(parts) < mask.bit_count():
                self._consider(parts)
        return self._frontier

    def _partitions(self, rest: Mask, parts: list[Mask], cpu: float, memory: float) -> Iterator[list[Mask]]:
        """Yield partitions into three and more parts that may lead to a plan that no other dominates."""
        for part in self._by_lowest[rest & -rest]:
            left = rest ^ part
            if part & ~rest or (not left and len(parts) < 2):
                continue
            part_cpu, part_memory = self._least[part]
            least_cpu = cpu + part_cpu + self._first_hop.get(part, 0.0)
            if self._is_pruned(least_cpu, memory + part_memory):
                continue
            if left:
                yield from self._partitions(left, [*parts, part], least_cpu, memory + part_memory)
            else:
                yield [*parts, part]

    def _consider(self, parts: Sequence[Mask]) -> None:
        """Add the plans that join these parts to the frontier."""
        cpu = sum(self._least[part][0] for part in parts)
        memory = sum(self._least[part][1] for part in parts)
        if self._is_pruned(cpu + self._least_seconds(parts), memory):
            return
        orders = find_best_orders(self._space, parts, self._extension_seconds)
        if self._is_pruned(cpu + orders.seconds, memory):
            return
        for inputs in self._combinations(parts):
            plan = join_candidates(self._space, inputs, orders)
            if not self._is_pruned(plan.cpu, self._memory_weight * plan.memory):
                self._add(plan)

    def _least_seconds(self, parts: Sequence[Mask]) -> float:
        """A lower bound of the join's own hops: the cheapest first hop of every input, and the matches."""
        space, first_hops = self._space, 0.0
        if len(parts) > 2:
            for part in parts:
                cheapest = min(self._extension_seconds(part, other) for other in parts if other != part)
                first_hops += space.renewal_rate(part) * cheapest
        return first_hops + self._match_seconds + space.join_overhead(parts)

    def _combinations(self, parts: Sequence[Mask]) -> list[tuple[PlanCandidate, ...]]:
        """One plan for each part, in all ways that no other way dominates in the sums of CPU and memory."""
        combinations: list[tuple[float, float, tuple[PlanCandidate, ...]]] = [(0.0, 0.0, ())]
        for part in parts:
            sums = sorted(
                ((cpu + plan.cpu, memory + plan.memory, (*inputs, plan))
                for cpu, memory, inputs in combinations
                for plan in self._plans[part]),
                key=lambda combination: combination[:2],
            )  # fmt: skip
            combinations, least = [], math.inf
            for combination in sums:
                if combination[1] < least:
                    combinations.append(combination)
                    least = combination[1]
        return [inputs for _, _, inputs in combinations]

    def _add(self, plan: PlanCandidate) -> None:
        """Insert a plan that no other dominates, and remove those that it dominates."""
        start = end = bisect_left(self._frontier, plan.cpu, key=_cpu)
        weight = self._memory_weight
        while end < len(self._frontier) and weight * self._frontier[end].memory >= weight * plan.memory:
            end += 1
        self._frontier[start:end] = [plan]

    def _is_pruned(self, cpu: float, memory: float) -> bool:
        """True if a plan with at least so much CPU and memory breaks a limit or is dominated."""
        if not self._room.allow(cpu, memory):
            return True
        end = bisect_right(self._frontier, cpu, key=_cpu)
        return end > 0 and self._memory_weight * self._frontier[end - 1].memory <= memory
