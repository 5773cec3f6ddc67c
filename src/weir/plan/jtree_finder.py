"""JTree-Finder (Zhu et al. 2010, algorithm 1): the qualified plans that no other plan dominates.

The paper lists every qualified plan. What a join costs does not depend on the plans of its inputs, so a
sub-plan that another dominates in CPU and memory can be part of no better plan. Keeping only the frontier
gives the same guarantee, a plan if there is one, for more streams.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import neg

import numpy as np

from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, join_candidates, make_leaf
from weir.plan.probing_orders import ExtensionSeconds, find_best_orders
from weir.plan.space import Space
from weir.plan.stream_sets import Mask, bits


def find_frontier(space: Space, limits: Limits = NO_LIMITS, cross: bool = False) -> list[PlanCandidate]:
    """Find the qualified plans that no other dominates in CPU and memory, least CPU first.

    With `cross`, sub-plans may also join streams that no edge connects.
    """
    known = _Known({}, {}, {1 << i: [] for i in range(len(space.names))})
    extension_seconds = space.extension_seconds if cross else tabulate_extensions(space)
    for mask in list_sets(space, cross):
        cpu, memory = reserved_for_others(space, mask)
        room = Limits(limits.cpu - cpu, limits.memory - memory)
        if mask.bit_count() == 1:
            known.add(space, mask, [make_leaf(mask)])
        elif plans := _SetSearch(space, mask, room, known, extension_seconds).run():
            known.add(space, mask, plans)
    return known.plans.get(space.everything, [])


def list_sets(space: Space, cross: bool) -> list[Mask]:
    """List the sets of streams that may stand below a join, small ones first."""
    sets = range(1, space.everything + 1)
    return sorted((s for s in sets if cross or space.is_connected(s)), key=int.bit_count)


def reserved_for_others(space: Space, mask: Mask) -> tuple[float, float]:
    """CPU and memory that the streams outside a set need at least, so that its plans are pruned early."""
    others = [1 << i for i in bits(space.everything & ~mask)]
    everyone = sum(space.memory(1 << i) for i in range(len(space.names)))
    own = sum(space.memory(1 << i) for i in bits(mask))
    return sum(space.maintenance_seconds(other) for other in others), everyone - own


def tabulate_extensions(space: Space) -> ExtensionSeconds:
    """Return `space.extension_seconds`, to connected sets only, as a look-up in a table."""
    column = {mask: i for i, mask in enumerate(np.flatnonzero(space.connected_table).tolist())}
    # Single look-ups are faster in lists than in arrays.
    seconds: list[list[float]] = space.extension_table.tolist()
    return lambda bound, partner: seconds[bound][column[partner]]


@dataclass(frozen=True, slots=True)
class _Known:
    """Frontiers of the sets done so far, and the least CPU and memory of each with its state.

    `by_lowest` lists the sets by their lowest stream, those with the highest streams first.
    """

    plans: dict[Mask, list[PlanCandidate]]
    least: dict[Mask, tuple[float, float]]
    by_lowest: dict[Mask, list[Mask]]

    def add(self, space: Space, mask: Mask, plans: list[PlanCandidate]) -> None:
        cpu, memory = min(plan.cpu for plan in plans), min(plan.memory for plan in plans)
        self.plans[mask] = plans
        self.least[mask] = cpu + space.maintenance_seconds(mask), memory + space.memory(mask)
        insort(self.by_lowest[mask & -mask], mask, key=neg)


class _SetSearch:
    """The search for the frontier of one set of streams.

    Partitions of the set are built part by part; a partial one is pruned once a complete plan dominates it.
    """

    def __init__(
        self, space: Space, mask: Mask, limits: Limits, known: _Known, extension_seconds: ExtensionSeconds
    ) -> None:
        self._space, self._mask, self._limits, self._known = space, mask, limits, known
        self._extension_seconds = extension_seconds
        # All paths end with the same matches.
        self._match_seconds = space.graph.costs.match * space.rate(mask)
        # Sorted by ascending CPU, and so by descending memory.
        self._frontier: list[PlanCandidate] = []

    def run(self) -> list[PlanCandidate]:
        """Return the frontier, least CPU first."""
        # First the join of all streams: it prunes whatever takes more CPU and more memory.
        self._consider([1 << i for i in bits(self._mask)])
        for parts in self._partitions(self._mask, [], 0.0, 0.0):
            if 1 < len(parts) < self._mask.bit_count():
                self._consider(parts)
        return self._frontier

    def _partitions(self, rest: Mask, parts: list[Mask], cpu: float, memory: float) -> Iterator[list[Mask]]:
        """Yield partitions that may lead to a plan that none of the frontier dominates."""
        if self._is_pruned(cpu + self._match_seconds, memory):
            return
        if not rest:
            yield parts
            return
        for part in self._known.by_lowest[rest & -rest]:
            if not part & ~rest:
                part_cpu, part_memory = self._known.least[part]
                yield from self._partitions(rest ^ part, [*parts, part], cpu + part_cpu, memory + part_memory)

    def _consider(self, parts: Sequence[Mask]) -> None:
        """Add the plans that join these parts to the frontier."""
        least = self._known.least
        cpu = sum(least[part][0] for part in parts)
        memory = sum(least[part][1] for part in parts)
        if self._is_pruned(cpu + self._least_seconds(parts), memory):
            return
        orders = find_best_orders(self._space, parts, self._extension_seconds)
        if self._is_pruned(cpu + orders.seconds, memory):
            return
        for inputs in self._combinations(parts):
            plan = join_candidates(self._space, inputs, orders)
            if not self._is_pruned(plan.cpu, plan.memory):
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
                for plan in self._known.plans[part]),
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
        start = bisect_left(self._frontier, plan.cpu, key=_cpu)
        end = start
        while end < len(self._frontier) and self._frontier[end].memory >= plan.memory:
            end += 1
        self._frontier[start:end] = [plan]

    def _is_pruned(self, cpu: float, memory: float) -> bool:
        """True if a plan with at least so much CPU and memory breaks a limit or is dominated."""
        if not self._limits.allow(cpu, memory):
            return True
        end = bisect_right(self._frontier, cpu, key=_cpu)
        return end > 0 and self._frontier[end - 1].memory <= memory


def _cpu(plan: PlanCandidate) -> float:
    return plan.cpu
