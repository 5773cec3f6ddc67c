"""JTree-Finder (001, algorithm 1): every qualified plan, or proof that there is none."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.orders import best_orders
from weir.plan.sketch import Sketch, joined, leaf
from weir.plan.space import Mask, Space, bits


def all_qualified(space: Space, limits: Limits, cross: bool = False) -> list[Sketch]:
    """All qualified plans, as the paper finds them: every partition of every set, every sub-plan that fits.

    With `cross`, sub-plans may also join streams that no edge connects. For up to six or seven streams.
    """
    plans: dict[Mask, list[Sketch]] = {}
    least = _least_memory(space)
    for mask in _sets(space, cross):
        # What the streams outside will take at least, so that a sub-plan is dropped as early as can be.
        outside = least - _least_memory(space, mask)
        found = []
        for parts in partitions(mask, plans):
            orders = best_orders(space, parts)
            for inputs in product(*(plans[part] for part in parts)):
                plan = joined(space, inputs, orders)
                if limits.allow(plan.cpu + _more(space, mask), plan.memory + outside):
                    found.append(plan)
        plans[mask] = found if mask.bit_count() > 1 else [leaf(mask)]
        if not plans[mask]:
            del plans[mask]
    return plans.get(space.everything, [])


def frontier(space: Space, limits: Limits = NO_LIMITS, cross: bool = False) -> list[Sketch]:
    """The qualified plans that no other beats in both CPU and memory, least CPU first.

    The same guarantee as `all_qualified`, for more streams: what a join adds does not depend on how its
    inputs are made, so a sub-plan that another beats in both can be part of no better plan.
    """
    plans: dict[Mask, list[Sketch]] = {}
    least = _least_memory(space)
    for mask in _sets(space, cross):
        if mask.bit_count() == 1:
            plans[mask] = [leaf(mask)]
            continue
        room = limits.less(_more(space, mask), least - _least_memory(space, mask))
        found = _Frontier(space, mask, room, plans).search()
        if found:
            plans[mask] = found
    return plans.get(space.everything, [])


class _Frontier:
    """The plans of one set: partitions are built part by part, and given up once they cannot pay."""

    def __init__(self, space: Space, mask: Mask, limits: Limits, plans: dict[Mask, list[Sketch]]) -> None:
        self._space, self._mask, self._limits, self._plans = space, mask, limits, plans
        self._least = {
            part: (
                min(plan.cpu for plan in found) + space.upkeep(part),
                min(plan.memory for plan in found) + space.memory(part),
            )
            for part, found in plans.items()
            if part & mask == part
        }
        self._last_hops = space.graph.costs.match * space.rate(mask)
        # Sorted by CPU, and so by memory the other way round.
        self._found: list[Sketch] = []

    def search(self) -> list[Sketch]:
        """All of them, least CPU first."""
        # First the single join of all streams: whatever takes more CPU and more memory is cut off.
        self._weigh([1 << i for i in bits(self._mask)])
        for parts in self._worthwhile(self._mask, [], 0.0, 0.0):
            if 1 < len(parts) < self._mask.bit_count():
                self._weigh(parts)
        return self._found

    def _worthwhile(self, rest: Mask, parts: list[Mask], cpu: float, memory: float) -> Iterator[list[Mask]]:
        """Partitions that may lead to a plan that none found so far beats."""
        if self._is_hopeless(cpu + self._last_hops, memory):
            return
        if not rest:
            yield parts
            return
        for part in _parts(rest, self._least):
            if part != self._mask:
                more, stored = self._least[part]
                yield from self._worthwhile(rest ^ part, [*parts, part], cpu + more, memory + stored)

    def _weigh(self, parts: Sequence[Mask]) -> None:
        space = self._space
        cpu = sum(self._least[part][0] for part in parts)
        memory = sum(self._least[part][1] for part in parts)
        if self._is_hopeless(cpu + self._at_least(parts), memory):
            return
        orders = best_orders(space, parts)
        if self._is_hopeless(cpu + orders.seconds, memory):
            return
        for inputs in self._combinations(parts):
            plan = joined(space, inputs, orders)
            if not self._is_hopeless(plan.cpu, plan.memory):
                self._add(plan)

    def _combinations(self, parts: Sequence[Mask]) -> list[tuple[Sketch, ...]]:
        """How the parts may be made: sums of sub-plans that no other sum beats in both."""
        combinations: list[tuple[float, float, tuple[Sketch, ...]]] = [(0.0, 0.0, ())]
        for part in parts:
            sums = sorted(
                ((cpu + plan.cpu, memory + plan.memory, (*inputs, plan))
                for cpu, memory, inputs in combinations
                for plan in self._plans[part]),
                key=lambda one: one[:2],
            )  # fmt: skip
            combinations, least = [], math.inf
            for one in sums:
                if one[1] < least:
                    combinations.append(one)
                    least = one[1]
        return [inputs for _, _, inputs in combinations]

    def _add(self, plan: Sketch) -> None:
        place = bisect_left(self._found, plan.cpu, key=_cpu)
        end = place
        while end < len(self._found) and self._found[end].memory >= plan.memory:
            end += 1
        self._found[place:end] = [plan]

    def _at_least(self, parts: Sequence[Mask]) -> float:
        """Every input makes its cheapest first hop, and all end with the same matches."""
        space, costs = self._space, self._space.graph.costs
        firsts = 0.0
        if len(parts) > 2:
            for part in parts:
                cheapest = min(space.step(part, other) for other in parts if other != part)
                firsts += space.turnover(part) * cheapest
        return firsts + costs.match * space.rate(self._mask) + space.fixed(parts)

    def _is_hopeless(self, cpu: float, memory: float) -> bool:
        if not self._limits.allow(cpu, memory):
            return True
        place = bisect_right(self._found, cpu, key=_cpu)
        return place > 0 and self._found[place - 1].memory <= memory


def _cpu(plan: Sketch) -> float:
    return plan.cpu


def partitions(mask: Mask, known: dict[Mask, list[Sketch]]) -> Iterator[list[Mask]]:
    """Every way to cut a set into two or more sets that have plans."""
    for first in _parts(mask, known):
        rest = mask ^ first
        if rest:
            yield from ([first, *others] for others in _cover(rest, known))


def _cover(mask: Mask, known: dict[Mask, list[Sketch]]) -> Iterator[list[Mask]]:
    if not mask:
        yield []
        return
    for first in _parts(mask, known):
        yield from ([first, *others] for others in _cover(mask ^ first, known))


def _parts(mask: Mask, known: Mapping[Mask, object]) -> Iterator[Mask]:
    """The subsets with plans that hold a set's lowest stream."""
    low = mask & -mask
    rest = mask ^ low
    subset = rest
    while True:
        part = subset | low
        if part in known:
            yield part
        if not subset:
            return
        subset = (subset - 1) & rest


def _sets(space: Space, cross: bool) -> list[Mask]:
    """The sets of streams that may stand below a join, small ones first."""
    sets = range(1, space.everything + 1)
    return sorted((s for s in sets if cross or space.is_connected(s)), key=int.bit_count)


def _least_memory(space: Space, mask: Mask | None = None) -> float:
    """What the streams' own states take: no plan takes less."""
    return sum(space.memory(1 << i) for i in bits(space.everything if mask is None else mask))


def _more(space: Space, mask: Mask) -> float:
    """The CPU that a plan of some streams lacks at least: the upkeep of the others."""
    return sum(space.upkeep(1 << i) for i in bits(space.everything & ~mask))
