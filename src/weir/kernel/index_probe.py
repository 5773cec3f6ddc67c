"""The search of one partial in the slices of one partner: first ranges of candidates, then the pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.expr.evaluate import evaluate
from weir.kernel.access_path import (
    KeyAccess,
    ValueAccess,
    ValueProbe,
    VectorAccess,
    key_ranges,
    similar,
    slice_vectors,
    unit_vectors,
)
from weir.kernel.index import Index, refine
from weir.kernel.keys import Int64s, combine
from weir.kernel.partial import Partial, Picks
from weir.kernel.physical_plan import HalfJoinPlan
from weir.kernel.slice import Slice
from weir.kernel.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class Candidates:
    """What one slice offers: per driver row a range of positions in an index."""

    one: Slice
    index: Index
    low: Int64s
    count: Int64s
    check_lead: bool


class IndexProbe:
    """The driver's side of a hop's access, computed once and used on every slice."""

    def __init__(self, plan: HalfJoinPlan, partial: Partial, lead: TimeRange) -> None:
        self._plan, self._lead, self._rows = plan, lead, partial.rows
        self.codes: list[Int64s] = []
        access = plan.access
        if isinstance(access, KeyAccess):
            self.codes, self._valid = access.codes(partial)
            self._code = combine(self.codes)
            self._few = access.few_codes(partial)
        elif isinstance(access, ValueAccess):
            self._probe = ValueProbe(access, partial)
        elif isinstance(access, VectorAccess):
            self._vectors = unit_vectors(evaluate(access.probe, partial.fetch, partial.rows))

    def offer(self, one: Slice) -> Candidates:
        """The candidates of a slice."""
        index = one.index(self._plan.access.spec)
        access = self._plan.access
        covered = self._lead.covers(one)
        if isinstance(access, ValueAccess):
            low, high = self._probe.ranges(index.values)
            return Candidates(one, index, low, high - low, not covered)
        if isinstance(access, KeyAccess):
            low, high = self._by_key(index)
            if not covered:
                low, high = self._cut(one, index, low, high)
            return Candidates(one, index, low, high - low, False)
        low, high = self._by_time(index)
        return Candidates(one, index, low, np.maximum(high - low, 0), False)

    def _by_key(self, index: Index) -> tuple[Int64s, Int64s]:
        """Search each code once: the partial's rows often repeat those of a shorter one."""
        if self._few is None:
            return key_ranges(index.values, self._code, self._valid)
        codes, picks = self._few
        low, high = key_ranges(index.values, codes, None)
        return low[picks], high[picks]

    def _cut(self, one: Slice, index: Index, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
        times = one.numbers(self._lead.name)
        times = (
            times
            if index.rows is None
            else one.remember(("times", self._plan.access.spec), lambda: times[index.rows])
        )
        if self._lead.low is not None:
            low = refine(times, low, high, self._lead.low, after=False)
        if self._lead.high is not None:
            high = refine(times, low, high, self._lead.high, after=True)
        return low, high

    def _by_time(self, index: Index) -> tuple[Int64s, Int64s]:
        low, high = np.zeros(self._rows, np.int64), np.full(self._rows, len(index.values), np.int64)
        if self._lead.low is not None:
            low = np.searchsorted(index.values, self._lead.low, "left")
        if self._lead.high is not None:
            high = np.searchsorted(index.values, self._lead.high, "right")
        return low, high

    def pairs(self, offer: Candidates, first: int, last: int) -> tuple[Picks, Picks]:
        """The candidate pairs of the driver rows from `first` to `last`: (driver row, row of the slice)."""
        if isinstance(self._plan.access, VectorAccess):
            driver, position = self._similar(offer, first, last)
        else:
            driver, position = _expand(offer.low[first:last], offer.count[first:last])
        row = offer.index.pick(position)
        driver = driver + first if first else driver
        if not offer.check_lead:
            return driver, row
        keep = self._lead.allows(offer.one.numbers(self._lead.name)[row], driver)
        return driver[keep], row[keep]

    def _similar(self, offer: Candidates, first: int, last: int) -> tuple[Picks, Picks]:
        access = self._plan.access
        assert isinstance(access, VectorAccess)
        low, count = offer.low[first:last], offer.count[first:last]
        begin, end = int(low.min()), int((low + count).max())
        vectors = slice_vectors(offer.one, access.value)
        vectors = vectors[begin:end] if offer.index.rows is None else vectors[offer.index.rows[begin:end]]
        driver, position = similar(self._vectors[first:last], vectors, access.threshold)
        position = position + begin
        keep = (position >= low[driver]) & (position < (low + count)[driver])
        return (driver, position) if keep.all() else (driver[keep], position[keep])


def _expand(low: Int64s, count: Int64s) -> tuple[Picks, Picks]:
    """Every (row, position) of the ranges that start at `low` and hold `count` positions."""
    driver = np.repeat(np.arange(len(count)), count)
    position = np.repeat(low - (np.cumsum(count) - count), count)
    position += np.arange(len(position))
    return driver, position
