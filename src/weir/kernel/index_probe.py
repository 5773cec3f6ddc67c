"""Index probe: search one partial in the slices of one partner, first ranges of candidates, then pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weir.expr.evaluate import evaluate
from weir.kernel.access_path import KeyAccess, ValueAccess, VectorAccess
from weir.kernel.index import ByTime, Index
from weir.kernel.key_probe import KeyProbe
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Partial, Picks
from weir.kernel.physical_plan import HalfJoinPlan
from weir.kernel.ranges import expand, find_ranges
from weir.kernel.slice import Slice
from weir.kernel.time_range import TimeRange
from weir.kernel.value_range import Ranges, ValueProbe
from weir.kernel.vector_similarity import similar_pairs, slice_vectors, unit_vectors

# What the range of candidates does not decide: which pairs (driver row, row of the slice) to keep.
Check = Callable[[Picks, Picks], Bools]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates in one slice: per driver row of a run a range of positions in an index.

    The run starts with driver row `first`.
    """

    source: Slice
    index: Index
    first: int
    low: Int64s
    count: Int64s
    check: Check | None = None

    @property
    def last(self) -> int:
        """The end of the run of driver rows."""
        return self.first + len(self.count)

    def within(self, first: int, last: int) -> slice:
        """Return which of the ranges belong to driver rows in [first, last)."""
        return slice(max(first - self.first, 0), max(last - self.first, 0))


class IndexProbe:
    """The driver's side of a hop's access path, computed once and used on every slice."""

    def __init__(
        self, plan: HalfJoinPlan, partial: Partial, lead: TimeRange, others: list[TimeRange]
    ) -> None:
        self.partial, self.others, self._plan, self._lead = partial, others, plan, lead
        access = plan.access
        if isinstance(access, KeyAccess):
            self._keys = KeyProbe(plan, access, partial)
        elif isinstance(access, ValueAccess):
            self._values = ValueProbe(access.limits, partial)
        elif isinstance(access, VectorAccess):
            self._vectors = unit_vectors(evaluate(access.probe, partial.fetch, partial.rows))

    def find_candidates(self, slice_: Slice, first: int, last: int) -> Candidates:
        """Return the candidates that the driver rows in [first, last) have in a slice."""
        access = self._plan.access
        run = slice(first, last)
        if isinstance(access, KeyAccess):
            return self._search_keys(access, slice_, run)
        if isinstance(access, ValueAccess):
            return self._search_values(access, slice_, run)
        index = slice_.index(access.spec)
        low, high = self._search_times(index, run)
        return Candidates(slice_, index, first, low, np.maximum(high - low, 0))

    def _search_keys(self, access: KeyAccess, slice_: Slice, run: slice) -> Candidates:
        index = slice_.key_index(access.spec)
        ranks, present = self._keys.find_ranks(slice_, index, run)
        bounds: tuple[Int64s | None, Int64s | None] = (None, None)
        if not self._lead.covers(slice_):
            bounds = _run_of(self._lead.low, run), _run_of(self._lead.high, run)
        low, count = find_ranges(index, ranks, present, *bounds)
        check = self._keys.check_pairs(slice_)
        return Candidates(slice_, slice_.index(access.spec), run.start, low, count, check)

    def _check_lead(self, slice_: Slice) -> Check:
        times = slice_.numbers(self._lead.name)
        return lambda driver, row: self._lead.contains(times[row], driver)

    def _search_values(self, access: ValueAccess, slice_: Slice, run: slice) -> Candidates:
        """Search by value or by time, whichever leaves fewer candidates; the other one is checked."""
        by_value = slice_.index(access.spec)
        low, high = self._values.search(by_value.values, run)
        if self._lead.covers(slice_):
            return Candidates(slice_, by_value, run.start, low, high - low)
        by_time = slice_.index(ByTime())
        begin, end = self._search_times(by_time, run)
        if (end - begin).clip(0).sum() >= (high - low).sum():
            return Candidates(slice_, by_value, run.start, low, high - low, self._check_lead(slice_))
        positions = slice_.positions(access.spec)

        def has_value(driver: Picks, row: Picks) -> Bools:
            position, driver = positions[row], driver - run.start
            inside: Bools = (position >= low[driver]) & (position < high[driver])
            return inside

        return Candidates(slice_, by_time, run.start, begin, (end - begin).clip(0), has_value)

    def _search_times(self, index: Index, run: slice) -> Ranges:
        rows = run.stop - run.start
        low, high = np.zeros(rows, np.int64), np.full(rows, len(index.values), np.int64)
        if self._lead.low is not None:
            low = np.searchsorted(index.values, self._lead.low[run], "left")
        if self._lead.high is not None:
            high = np.searchsorted(index.values, self._lead.high[run], "right")
        return low, high

    def pairs(self, candidates: Candidates, first: int, last: int) -> tuple[Picks, Picks]:
        """Return the candidate pairs (driver row, row of the slice) of the driver rows in [first, last)."""
        run, start = candidates.within(first, last), max(first, candidates.first)
        low, count = candidates.low[run], candidates.count[run]
        if isinstance(self._plan.access, VectorAccess):
            driver, position = self._similar(self._plan.access, candidates, start, low, count)
            driver, row = driver + start, candidates.index.pick(position)
        else:
            driver, row = expand(low, count, start, candidates.index.rows)
        if candidates.check is None or not len(driver):
            return driver, row
        keep = candidates.check(driver, row)
        return driver[keep], row[keep]

    def _similar(
        self, access: VectorAccess, candidates: Candidates, start: int, low: Int64s, count: Int64s
    ) -> tuple[Picks, Picks]:
        if not count.any():
            return np.empty(0, np.intp), np.empty(0, np.intp)
        begin, end = int(low[count > 0].min()), int((low + count).max())
        vectors = slice_vectors(candidates.source, access.value)
        rows = candidates.index.rows
        vectors = vectors[begin:end] if rows is None else vectors[rows[begin:end]]
        driver, position = similar_pairs(self._vectors[start : start + len(low)], vectors, access.threshold)
        position = position + begin
        keep = (position >= low[driver]) & (position < (low + count)[driver])
        return (driver, position) if keep.all() else (driver[keep], position[keep])


def _run_of(values: Int64s | None, run: slice) -> Int64s | None:
    return None if values is None else values[run]
