"""JTree-Finder (Zhu et al. 2010, algorithm 1): every qualified plan, or proof that there is none."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import neg

import numpy as np
from numpy.typing import NDArray

from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, joined, leaf
from weir.plan.probing_orders import Step, best_orders
from weir.plan.space import Mask, Space, bits


def all_qualified(space: Space, limits: Limits, cross: bool = False) -> list[PlanCandidate]:
    """All qualified plans, as the paper finds them: every partition of every set, every sub-plan that fits.

    With `cross`, sub-plans may also join streams that no edge connects. For up to six or seven streams.
    """
    plans: dict[Mask, list[PlanCandidate]] = {}
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


def frontier(space: Space, limits: Limits = NO_LIMITS, cross: bool = False) -> list[PlanCandidate]:
    """The qualified plans that no other beats in both CPU and memory, least CPU first.

    The same guarantee as `all_qualified`, for more streams: what a join adds does not depend on how its
    inputs are made, so a sub-plan that another beats in both can be part of no better plan.
    """
    known = _Known({}, {}, {1 << i: [] for i in range(len(space.names))})
    least = _least_memory(space)
    step = space.step if cross else _tabulated(space)
    for mask in _sets(space, cross):
        room = limits.less(_more(space, mask), least - _least_memory(space, mask))
        found = _Frontier(space, mask, room, known, step).search() if mask.bit_count() > 1 else [leaf(mask)]
        if found:
            cpu, memory = (min(one) for one in zip(*((p.cpu, p.memory) for p in found), strict=True))
            known.plans[mask] = found
            known.least[mask] = cpu + space.upkeep(mask), memory + space.memory(mask)
            insort(known.led[mask & -mask], mask, key=neg)
    return known.plans.get(space.everything, [])


@dataclass(frozen=True, slots=True)
class _Known:
    """The plans of sets, the least that each takes with its state; sets by lowest stream, last ones first."""

    plans: dict[Mask, list[PlanCandidate]]
    least: dict[Mask, tuple[float, float]]
    led: dict[Mask, list[Mask]]


def _tabulated(space: Space) -> Step:
    """`space.step` to connected sets, all found at once."""
    column = {mask: i for i, mask in enumerate(np.flatnonzero(space.connected).tolist())}
    steps = [_listed(row) for row in space.step_table]
    return lambda bound, partner: steps[bound][column[partner]]


def cheapest(space: Space, most: float = math.inf) -> PlanCandidate | None:
    """The plan with the least CPU, if it takes no more than `most`: the first of the frontier, found sooner.

    As long as memory does not count, the cheapest plan of a set is made of the cheapest ones of its parts.
    """
    return _Cheapest(space, most).search()


class _Cheapest:
    """One search: sets of streams small ones first, of each the partitions that may still be the best."""

    def __init__(self, space: Space, most: float) -> None:
        self._space, self._most = space, most
        connected = np.flatnonzero(space.connected).tolist()
        self._sets = sorted(connected, key=int.bit_count)
        self._step = _tabulated(space)
        self._fresh, _, self._hop, self._upkeep, self._turnover = (
            _listed(one) for one in (*space.state_tables, space.turnover_table)
        )
        # What an input's first hop takes at least, whatever it probes.
        reached = np.nanmin(space.step_table[connected[:-1]], axis=1) * space.turnover_table[connected[:-1]]
        self._first = dict(zip(connected, reached.tolist(), strict=False))
        # The sets that have a plan within the limit, by their lowest stream: the plan, and what it takes with
        # the state it makes.
        self._plans: dict[Mask, PlanCandidate] = {}
        self._least: dict[Mask, float] = {}
        self._led: dict[Mask, list[Mask]] = {1 << i: [] for i in range(len(space.names))}
        # The least that a plan of the set at hand is known to take.
        self._bound = math.inf

    def search(self) -> PlanCandidate | None:
        """The cheapest plan; None if none is within the limit."""
        space = self._space
        for mask in self._sets:
            outside = sum(self._upkeep[1 << i] for i in bits(space.everything & ~mask))
            plan = self._best(mask, self._most - outside) if mask.bit_count() > 1 else leaf(mask)
            if plan is not None:
                self._plans[mask], self._least[mask] = plan, plan.cpu + self._upkeep[mask]
                insort(self._led[mask & -mask], mask, key=neg)
        return self._plans.get(space.everything)

    def _best(self, mask: Mask, room: float) -> PlanCandidate | None:
        """The cheapest plan of a set, if there is room for it."""
        space = self._space
        best: tuple[Mask, ...] | None = None
        self._bound = room
        for one in self._led[mask & -mask]:
            other = mask ^ one
            if not one & ~mask and other in self._least and (cpu := self._pair(one, other)) <= self._bound:
                best, self._bound = (one, other), cpu
        last = (space.graph.costs.match + space.out(mask)) * space.rate(mask)
        for parts in self._worthwhile(mask, (), last, 0.0, 0.0):
            cpu = best_orders(space, parts, self._step).seconds + sum(self._least[part] for part in parts)
            if cpu <= self._bound:
                best, self._bound = parts, cpu
        if best is None:
            return None
        return joined(space, [self._plans[part] for part in best], best_orders(space, best, self._step))

    def _pair(self, one: Mask, other: Mask) -> float:
        hops = self._fresh[one] * self._hop[other] + self._fresh[other] * self._hop[one]
        steps = self._turnover[one] * self._step(one, other) + self._turnover[other] * self._step(other, one)
        return self._least[one] + self._least[other] + hops + steps

    def _worthwhile(
        self, rest: Mask, parts: tuple[Mask, ...], least: float, fresh: float, hop: float
    ) -> Iterator[tuple[Mask, ...]]:
        """Partitions into three and more, as long as inputs, first, last and fixed hops may be the least.

        `fresh` and `hop` are sums over the parts: with one part more, all their new slices make a hop more,
        and its own make theirs.
        """
        for part in self._led[rest & -rest]:
            left = rest ^ part
            if part & ~rest or (not left and len(parts) < 2):
                continue
            fixed = fresh * self._hop[part] + self._fresh[part] * hop
            more = least + self._least[part] + self._first[part] + fixed
            if more <= self._bound:
                if not left:
                    yield (*parts, part)
                else:
                    slices, hops = fresh + self._fresh[part], hop + self._hop[part]
                    yield from self._worthwhile(left, (*parts, part), more, slices, hops)


def _listed(table: NDArray[np.float64]) -> list[float]:
    """For look-ups one by one, a list is faster."""
    return [float(one) for one in table.tolist()]


class _Frontier:
    """The plans of one set: partitions are built part by part, and given up once they cannot pay."""

    def __init__(self, space: Space, mask: Mask, limits: Limits, known: _Known, step: Step) -> None:
        self._space, self._mask, self._limits, self._known = space, mask, limits, known
        self._least, self._step = known.least, step
        self._last_hops = space.graph.costs.match * space.rate(mask)
        # Sorted by CPU, and so by memory the other way round.
        self._found: list[PlanCandidate] = []

    def search(self) -> list[PlanCandidate]:
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
        for part in self._known.led[rest & -rest]:
            if not part & ~rest:
                more, stored = self._least[part]
                yield from self._worthwhile(rest ^ part, [*parts, part], cpu + more, memory + stored)

    def _weigh(self, parts: Sequence[Mask]) -> None:
        space = self._space
        cpu = sum(self._least[part][0] for part in parts)
        memory = sum(self._least[part][1] for part in parts)
        if self._is_hopeless(cpu + self._at_least(parts), memory):
            return
        orders = best_orders(space, parts, self._step)
        if self._is_hopeless(cpu + orders.seconds, memory):
            return
        for inputs in self._combinations(parts):
            plan = joined(space, inputs, orders)
            if not self._is_hopeless(plan.cpu, plan.memory):
                self._add(plan)

    def _combinations(self, parts: Sequence[Mask]) -> list[tuple[PlanCandidate, ...]]:
        """How the parts may be made: sums of sub-plans that no other sum beats in both."""
        combinations: list[tuple[float, float, tuple[PlanCandidate, ...]]] = [(0.0, 0.0, ())]
        for part in parts:
            sums = sorted(
                ((cpu + plan.cpu, memory + plan.memory, (*inputs, plan))
                for cpu, memory, inputs in combinations
                for plan in self._known.plans[part]),
                key=lambda one: one[:2],
            )  # fmt: skip
            combinations, least = [], math.inf
            for one in sums:
                if one[1] < least:
                    combinations.append(one)
                    least = one[1]
        return [inputs for _, _, inputs in combinations]

    def _add(self, plan: PlanCandidate) -> None:
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
                first = min(self._step(part, other) for other in parts if other != part)
                firsts += space.turnover(part) * first
        return firsts + costs.match * space.rate(self._mask) + space.fixed(parts)

    def _is_hopeless(self, cpu: float, memory: float) -> bool:
        if not self._limits.allow(cpu, memory):
            return True
        place = bisect_right(self._found, cpu, key=_cpu)
        return place > 0 and self._found[place - 1].memory <= memory


def _cpu(plan: PlanCandidate) -> float:
    return plan.cpu


def partitions(mask: Mask, known: dict[Mask, list[PlanCandidate]]) -> Iterator[list[Mask]]:
    """Every way to cut a set into two or more sets that have plans."""
    for first in _parts(mask, known):
        rest = mask ^ first
        if rest:
            yield from ([first, *others] for others in _cover(rest, known))


def _cover(mask: Mask, known: dict[Mask, list[PlanCandidate]]) -> Iterator[list[Mask]]:
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
