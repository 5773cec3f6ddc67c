"""Half-way join: probe one partner's state with partials and return longer partials.

Every pair of a partial and a visible partner row that satisfies the time bounds, row windows and predicates
of the hop is returned once: each row lies in one slice, so each pair is a candidate once. Candidates come
from an index range over a slice; what the range does not decide is checked pair by pair, cheapest check
first. Driver rows are taken in runs of about `_CANDIDATES` candidates, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from time import thread_time

import numpy as np

from weir.kernel.access_path import KeyAccess, VectorAccess
from weir.kernel.age_filter import AgeFilter
from weir.kernel.expensive_predicates import holds_for_pairs, sort_by_rows_read
from weir.kernel.index_probe import Candidates, IndexProbe
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Partial, Picks, Rows
from weir.kernel.physical_plan import HalfJoinPlan, TimeBounds
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.quarantine import Quarantine
from weir.kernel.row_window import NEVER, RowWindowOrder, sequence_columns
from weir.kernel.slice import Slice
from weir.kernel.slice_index import SliceIndex
from weir.kernel.split_partial import evaluate_by_bytes
from weir.kernel.time_range import TimeRange
from weir.stats.hop import HopStats

# Large enough that calls into NumPy and Arrow cost little compared with their work; small enough, where
# expressions are evaluated on candidates, that their columns stay in the processor's cache.
_CANDIDATES = 1 << 19
_CANDIDATES_EVALUATED = 1 << 17
_CANDIDATES_IN_PRODUCT = 1 << 22
# Expensive predicates are evaluated in cache-sized steps anyway; more candidates repeat more combinations.
_CANDIDATES_EXPENSIVE = 1 << 20
# The ranges in slices that are searched at a time: one for each driver row and slice.
_RANGES = 1 << 23
# Rows may be wide (images, documents): the bytes in flight are bounded too.
_BYTES = 1 << 28

# Rows of one slice that are paired with driver rows.
_Part = tuple[Slice, Picks]


@dataclass(frozen=True, slots=True)
class HalfJoin:
    """One hop during one batch, for driver rows of one rank, or of several of which `rank` is the highest."""

    plan: HalfJoinPlan
    age_filter: AgeFilter
    slice_index: SliceIndex
    row_windows: Mapping[str, RowWindowOrder]
    batch: int
    rank: int
    max_candidates: int | None = None
    sample: ProbeSample | None = None
    quarantine: Quarantine | None = None
    rows_to_come: int = 0  # of a path whose rows start in several runs

    def run(self, partial: Partial, work: HopStats) -> Iterator[Partial]:
        """Yield the longer partials, a bounded number at a time."""
        started = thread_time()
        work.probes += partial.rows
        if self.sample is not None:
            work.sampled += self.sample.count(partial)
        for matches in self._find_matches(partial, work):
            if self.sample is not None:
                work.sampled_matches += self.sample.count(matches)
            work.seconds += thread_time() - started
            yield matches
            started = thread_time()
        work.seconds += thread_time() - started

    def _find_matches(self, partial: Partial, work: HopStats) -> Iterator[Partial]:
        if not partial.rows:
            return
        if self.plan.expensive:
            partial = sort_by_rows_read(self.plan.expensive, partial)
        visited: set[int] = set()
        for rows, bounds in self.age_filter.apply(partial):
            lead, others = self._time_ranges(rows, bounds)
            slices = self._select_slices(lead, others)
            work.visited += len(slices)
            if bounds is not self.age_filter.all_ages:  # sampled rows visit all slices
                visited.update(map(id, slices))
            # A batch that is repeated with fewer candidates at a time may have failed for want of memory.
            if isinstance(self.plan.access, KeyAccess) and self.max_candidates is None:
                spec = self.plan.access.spec
                probes = max(rows.rows, self.rows_to_come)
                slices = self.slice_index.combine(slices, spec, self.batch, self.rank, probes)
            if slices:
                order = lead.order_rows(slices)
                if order is not None:
                    rows = rows.pick(order)
                    lead, others = self._time_ranges(rows, bounds)
                for run in _divide_rows(rows, max(1, _RANGES // len(slices))):
                    if run is not rows:
                        lead, others = self._time_ranges(run, bounds)
                    index_probe = IndexProbe(self.plan, run, lead, others)
                    yield from self._probe_slices(index_probe, lead, slices, work)
        if self.age_filter.is_active:
            work.narrowed += partial.rows - (0 if self.sample is None else self.sample.count(partial))
            all_ages = self._select_slices(*self._time_ranges(partial, self.plan.lead))
            work.unvisited += len(all_ages) - len(visited)

    def _time_ranges(self, partial: Partial, bounds: TimeBounds) -> tuple[TimeRange, list[TimeRange]]:
        return TimeRange(bounds, partial), [TimeRange(other, partial) for other in self.plan.others]

    def _select_slices(self, lead: TimeRange, others: list[TimeRange]) -> list[Slice]:
        in_range = self.slice_index.find_overlapping(lead.earliest, lead.latest, self.batch, self.rank)
        return [s for s in in_range if not any(other.misses(s) for other in others)]

    def _probe_slices(
        self, probe: IndexProbe, lead: TimeRange, slices: list[Slice], work: HopStats
    ) -> Iterator[Partial]:
        runs = zip(slices, lead.find_runs(slices), strict=True)
        searched = (probe.find_candidates(s, first, last) for s, (first, last) in runs if first < last)
        per_slice = [candidates for candidates in searched if candidates.count.any()]
        limits = self._limits(probe.partial, slices)
        for first, last in _cut_runs(per_slice, probe.partial.rows, *limits):
            yield from self._match_run(probe, per_slice, first, last, 2 * limits[0], work)

    def _limits(self, partial: Partial, slices: list[Slice]) -> tuple[int, int]:
        """Return how many candidates and how many driver rows a run may have: all may be gathered."""
        candidates = self._usual_candidates()
        if self.max_candidates is not None:
            candidates = min(self.max_candidates, candidates)
        if self.plan.verify:
            pair_bytes = partial.row_bytes + max(s.row_bytes for s in slices)
            candidates = min(candidates, int(_BYTES / pair_bytes))
        return max(1, candidates), max(1, int(_BYTES / max(partial.row_bytes, 1.0)))

    def _usual_candidates(self) -> int:
        if isinstance(self.plan.access, VectorAccess):
            return _CANDIDATES_IN_PRODUCT
        if self.plan.residual or self.plan.verify:
            return _CANDIDATES_EVALUATED
        return _CANDIDATES_EXPENSIVE if self.plan.expensive else _CANDIDATES

    def _match_run(
        self,
        probe: IndexProbe,
        per_slice: list[Candidates],
        first: int,
        last: int,
        most: int,
        work: HopStats,
    ) -> Iterator[Partial]:
        """Yield the matches of the driver rows in [first, last), about `most` or a slice's at a time."""
        drivers: list[Picks] = []
        parts: list[_Part] = []
        pairs = 0
        for candidates in per_slice:
            if candidates.first >= last or candidates.last <= first:
                continue
            work.comparisons += int(candidates.count[candidates.within(first, last)].sum())
            driver, row = probe.pairs(candidates, first, last)
            driver, row = self._check_windows(probe, candidates.source, driver, row)
            if len(driver):
                drivers.append(driver)
                parts.append((candidates.source, row))
                pairs += len(driver)
            if pairs >= most:  # a single row may have any number of them
                yield from self._match_pairs(probe, drivers, parts, work)
                drivers, parts, pairs = [], [], 0
        yield from self._match_pairs(probe, drivers, parts, work)

    def _match_pairs(
        self, probe: IndexProbe, drivers: list[Picks], parts: list[_Part], work: HopStats
    ) -> Iterator[Partial]:
        if not drivers:
            return
        driver = drivers[0] if len(drivers) == 1 else np.concatenate(drivers)
        driver, parts = self._check_predicates(probe, driver, parts)
        work.matches += len(driver)
        if len(driver):
            yield probe.partial.extend(driver, Rows(self.plan.partner, parts))

    def _check_windows(
        self, probe: IndexProbe, slice_: Slice, driver: Picks, row: Picks
    ) -> tuple[Picks, Picks]:
        """Keep the pairs whose ranks, times and row windows fit, where the index has not decided that."""
        if slice_.batch >= self.batch and slice_.highest_rank >= probe.partial.groups[0].rows.lowest_rank:
            keep = slice_.row_ranks()[row] < probe.partial.ranks_of(driver)
            driver, row = driver[keep], row[keep]
        for time_range in probe.others:
            if not time_range.covers(slice_):
                keep = time_range.contains(slice_.numbers(time_range.name)[row], driver)
                driver, row = driver[keep], row[keep]
        if self.plan.partner.sequence is not None and len(driver):
            keep = self._check_row_windows(probe.partial, slice_, driver, row)
            driver, row = driver[keep], row[keep]
        return driver, row

    def _check_row_windows(self, partial: Partial, slice_: Slice, driver: Picks, row: Picks) -> Bools:
        """Neither may a row of the partial have left its window when the partner arrived, nor the reverse."""
        (sequence,) = sequence_columns(slice_.schema)
        keep: Bools = slice_.numbers(sequence)[row] < self._leaves_at(partial)[driver]
        latest = partial.latest(sequence_columns)[driver]
        for window in slice_.schema.row_windows:
            row_numbers = slice_.numbers(window.row_number)[row]
            keep &= latest < self.row_windows[window.name].leaves_at(row_numbers)
        return keep

    def _leaves_at(self, partial: Partial) -> Int64s:
        """Return the sequence number at whose arrival the first row of each partial leaves its window."""
        earliest = np.full(partial.rows, NEVER)
        for group in partial.groups:
            for window in group.schema.row_windows:
                leaves = self.row_windows[window.name].leaves_at(group.numbers(window.row_number))
                np.minimum(earliest, leaves, out=earliest)
        return earliest

    def _check_predicates(
        self, probe: IndexProbe, driver: Picks, parts: list[_Part]
    ) -> tuple[Picks, list[_Part]]:
        """Keep the pairs that pass the residual, then the expensive predicates."""
        plan, partial = self.plan, probe.partial
        if plan.residual and len(driver):
            pairs = partial.extend(driver, Rows(plan.partner, parts))
            keep = np.ones(len(driver), np.bool_)
            for expr in plan.residual:
                keep &= evaluate_by_bytes(expr, pairs, keep, self.quarantine)
            driver, parts = _filter(driver, parts, keep)
        for expr in plan.expensive:
            if len(driver):
                keep = holds_for_pairs(expr, partial, driver, Rows(plan.partner, parts), self.quarantine)
                driver, parts = _filter(driver, parts, keep)
        return driver, parts


def _divide_rows(rows: Partial, most: int) -> Iterator[Partial]:
    """Divide the rows of a partial into runs of at most so many."""
    if rows.rows <= most:
        yield rows
        return
    for first in range(0, rows.rows, most):
        yield rows.pick(np.arange(first, min(first + most, rows.rows)))


def _cut_runs(
    per_slice: list[Candidates], rows: int, max_candidates: int, max_rows: int
) -> Iterator[tuple[int, int]]:
    """Cut the driver rows into runs of 1 to `max_rows` rows with about `max_candidates` candidates each."""
    if not per_slice:
        return
    total = np.zeros(rows, np.int64)
    for candidates in per_slice:
        total[candidates.first : candidates.last] += candidates.count
    total = np.cumsum(total)
    if total[-1] <= max_candidates and rows <= max_rows:
        yield 0, rows
        return
    cuts = np.searchsorted(total, np.arange(max_candidates, int(total[-1]), max_candidates), "left") + 1
    edges = np.unique(np.concatenate((np.arange(0, rows, max_rows), cuts, [rows])))
    yield from pairwise(edges.tolist())


def _filter(driver: Picks, parts: list[_Part], keep: Bools) -> tuple[Picks, list[_Part]]:
    if keep.all():
        return driver, parts
    edges = np.cumsum([0, *(len(row) for _, row in parts)])
    kept = [(s, row[keep[a:b]]) for (s, row), (a, b) in zip(parts, pairwise(edges.tolist()), strict=True)]
    return driver[keep], [(s, row) for s, row in kept if len(row)]
