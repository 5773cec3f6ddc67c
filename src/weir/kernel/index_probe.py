"""Index probe: search one partial in the slices of one partner, first ranges of candidates, then pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.expr.evaluate import evaluate
from weir.kernel.access_path import KeyAccess, ValueAccess, VectorAccess
from weir.kernel.index import Index, refine
from weir.kernel.keys import Bools, Int64s, combine
from weir.kernel.partial import Partial, Picks
from weir.kernel.physical_plan import HalfJoinPlan
from weir.kernel.slice import Slice
from weir.kernel.time_range import TimeRange
from weir.kernel.value_range import Ranges, ValueProbe
from weir.kernel.vector_similarity import similar_pairs, slice_vectors, unit_vectors


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates in one slice: per driver row a range of positions in an index.

    With `check_lead`, the range does not decide the lead time and each pair must be checked.
    """

    slice: Slice
    index: Index
    low: Int64s
    count: Int64s
    check_lead: bool = False


class IndexProbe:
    """The driver's side of a hop's access path, computed once and used on every slice."""

    def __init__(
        self, plan: HalfJoinPlan, partial: Partial, lead: TimeRange, others: list[TimeRange]
    ) -> None:
        self.partial, self.others, self._plan, self._lead = partial, others, plan, lead
        self.codes: list[Int64s] = []
        access = plan.access
        if isinstance(access, KeyAccess):
            self.codes, self._valid = access.codes(partial)
            self._code = combine(self.codes)
            self._distinct = access.distinct_codes(partial)
        elif isinstance(access, ValueAccess):
            self._values = ValueProbe(access.limits, partial)
        elif isinstance(access, VectorAccess):
            self._vectors = unit_vectors(evaluate(access.probe, partial.fetch, partial.rows))

    def find_candidates(self, slice_: Slice) -> Candidates:
        """Return the candidates of a slice."""
        access = self._plan.access
        index = slice_.index(access.spec)
        covered = self._lead.covers(slice_)
        if isinstance(access, ValueAccess):
            low, high = self._values.search(index.values)
            return Candidates(slice_, index, low, high - low, check_lead=not covered)
        if isinstance(access, KeyAccess):
            low, high = self._search_keys(index)
            if not covered:
                low, high = self._refine_by_time(slice_, index, low, high)
            return Candidates(slice_, index, low, high - low)
        low, high = self._search_times(index)
        return Candidates(slice_, index, low, np.maximum(high - low, 0))

    def _search_keys(self, index: Index) -> Ranges:
        """Search each code once: the rows of a partial often repeat those of a shorter one."""
        if self._distinct is None:
            return _key_ranges(index.values, self._code, self._valid)
        codes, picks = self._distinct
        low, high = _key_ranges(index.values, codes, None)
        return low[picks], high[picks]

    def _refine_by_time(self, slice_: Slice, index: Index, low: Int64s, high: Int64s) -> Ranges:
        times = slice_.numbers(self._lead.name)
        if index.rows is not None:
            times = slice_.cached(("times", self._plan.access.spec), lambda: times[index.rows])
        if self._lead.low is not None:
            low = refine(times, low, high, self._lead.low, after=False)
        if self._lead.high is not None:
            high = refine(times, low, high, self._lead.high, after=True)
        return low, high

    def _search_times(self, index: Index) -> Ranges:
        rows = self.partial.rows
        low, high = np.zeros(rows, np.int64), np.full(rows, len(index.values), np.int64)
        if self._lead.low is not None:
            low = np.searchsorted(index.values, self._lead.low, "left")
        if self._lead.high is not None:
            high = np.searchsorted(index.values, self._lead.high, "right")
        return low, high

    def pairs(self, candidates: Candidates, first: int, last: int) -> tuple[Picks, Picks]:
        """Return the candidate pairs (driver row, row of the slice) of the driver rows in [first, last)."""
        if isinstance(self._plan.access, VectorAccess):
            driver, position = self._similar(self._plan.access, candidates, first, last)
        else:
            driver, position = _expand(candidates.low[first:last], candidates.count[first:last])
        row = candidates.index.pick(position)
        driver = driver + first if first else driver
        if not candidates.check_lead:
            return driver, row
        keep = self._lead.contains(candidates.slice.numbers(self._lead.name)[row], driver)
        return driver[keep], row[keep]

    def _similar(
        self, access: VectorAccess, candidates: Candidates, first: int, last: int
    ) -> tuple[Picks, Picks]:
        low, count = candidates.low[first:last], candidates.count[first:last]
        begin, end = int(low.min()), int((low + count).max())
        vectors = slice_vectors(candidates.slice, access.value)
        rows = candidates.index.rows
        vectors = vectors[begin:end] if rows is None else vectors[rows[begin:end]]
        driver, position = similar_pairs(self._vectors[first:last], vectors, access.threshold)
        position = position + begin
        keep = (position >= low[driver]) & (position < (low + count)[driver])
        return (driver, position) if keep.all() else (driver[keep], position[keep])


def _key_ranges(keys: Int64s, codes: Int64s, valid: Bools | None) -> Ranges:
    """Return the positions of each code in sorted keys."""
    low = np.searchsorted(keys, codes, "left")
    present = np.flatnonzero(keys[np.minimum(low, len(keys) - 1)] == codes)
    high = low.copy()
    high[present] = np.searchsorted(keys, codes[present], "right")  # most codes are not in most slices
    return low, high if valid is None else np.where(valid, high, low)


def _expand(low: Int64s, count: Int64s) -> tuple[Picks, Picks]:
    """List every (row, position) of the ranges that start at `low` and hold `count` positions."""
    driver = np.repeat(np.arange(len(count)), count)
    position = np.repeat(low - (np.cumsum(count) - count), count)
    position += np.arange(len(position))
    return driver, position
