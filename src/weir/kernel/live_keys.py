"""Live keys: skip partials that a later partner of their path cannot complete.

    f ──▶ a ──▶ b ──▶ d        f.i = d.i: a row of f whose i is no key of d need not start,
                ▲              and a partial (a, f) need not probe b
                └── d is asked for its keys as soon as they are known

Only keys are compared, not times, so what is kept is a superset of what completes. Skipped partials count as
probes without matches of the hop that they come to; the matches that they would have had at the hops between
are not counted. So nothing is skipped where somebody learns from the counts, where an allowance samples, or
where the steps are capped: what is skipped depends on how partials were cut into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.kernel.access_path import KeyAccess
from weir.kernel.decision import Decision
from weir.kernel.keys import Bools, Int64s, combine
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import HalfJoinPlan, TimeBounds
from weir.kernel.slice import Slice
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state_schema import StateSchema
from weir.kernel.time_range import TimeRange

# Fewer partials are joined sooner than looked up.
_FEW_ROWS = 512
# So many partials are looked up first; the others only if at most this share of these has a live key.
_SAMPLE = 128
_WORTH_SKIPPING = 0.5
# The keys of slices are not indexed for so few partials that another hop may leave none of.
_MOST_ROWS_PER_PARTIAL = 32


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """The keys that one later partner of a path holds, as rows up to a rank see them."""

    plan: HalfJoinPlan
    access: KeyAccess
    slice_index: SliceIndex
    batch: int
    rank: int

    def skip(self, partial: Partial) -> Partial:
        """Return the rows whose key the partner holds, or all of them where looking does not pay."""
        if partial.rows < _FEW_ROWS:
            return partial
        slices = self._select_slices(partial)
        if sum(s.rows for s in slices) > _MOST_ROWS_PER_PARTIAL * partial.rows:
            return partial
        code = combine([partial.numbers(name) for name in self.access.names])
        if not self._are_mostly_dead(code[:: len(code) // _SAMPLE], slices):
            return partial
        slices = self.slice_index.combine(slices, self.access.spec, self.batch, self.rank, partial.rows)
        live = np.zeros(len(code), np.bool_)
        for s in slices:
            live |= self._find(code, s)
        return partial.pick(np.flatnonzero(live))

    def _select_slices(self, partial: Partial) -> list[Slice]:
        lead = self.plan.lead
        lows, highs = (
            tuple(bound for bound in bounds if partial.stores(bound[0])) for bounds in (lead.lows, lead.highs)
        )
        reach = TimeRange(TimeBounds(lead.name, lows, highs), partial)
        return list(self.slice_index.find_overlapping(reach.earliest, reach.latest, self.batch, self.rank))

    def _are_mostly_dead(self, code: Int64s, slices: Sequence[Slice]) -> bool:
        """True if few of the codes are keys; the largest slice tells most cases where they are not."""
        live = np.zeros(len(code), np.bool_)
        for s in sorted(slices, key=lambda s: -s.rows):
            live |= self._find(code, s)
            if np.count_nonzero(live) > _WORTH_SKIPPING * len(code):
                return False
        return True

    def _find(self, code: Int64s, source: Slice) -> Bools:
        return source.key_index(self.access.spec).find_ranks(code, None)[1]


def find_live_keys(
    path: Sequence[HalfJoinPlan],
    number: int,
    driver: StateSchema,
    decision: Decision,
    slice_indexes: Sequence[SliceIndex],
    batch: int,
    rank: int,
) -> tuple[LiveKeys, ...]:
    """Return the partners after the hop `number` whose keys are known there and were not known before it."""
    if decision.learns or decision.allowance is not None or decision.work_cap is not None:
        return ()
    if decision.max_candidates is not None:
        return ()
    known, known_before = _known_keys(path, number, driver), _known_keys(path, number - 1, driver)
    return tuple(
        LiveKeys(hop, hop.access, index, batch, rank)
        for hop, index in zip(path[number + 1 :], slice_indexes[number + 1 :], strict=True)
        if isinstance(hop.access, KeyAccess) and known.issuperset(hop.access.names)
        if not known_before.issuperset(hop.access.names)
    )


def _known_keys(path: Sequence[HalfJoinPlan], number: int, driver: StateSchema) -> frozenset[str]:
    """The key codes that partials store when they come to a hop."""
    if number < 0:
        return frozenset()
    return frozenset(driver.keys).union(*(hop.partner.keys for hop in path[:number]))
