"""One half-way join, run: partials in, longer partials out.

What is correct: every pair of a partial and a visible partner row whose times, places and predicates fit is
returned once; a pair is a candidate in exactly one slice, as each row lies in one. Candidates come from an
index range over a slice; whatever the range does not decide is checked on the pairs themselves, cheapest
first. What is in flight stays bounded: driver rows are taken in runs of about `_CANDIDATES` candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from time import perf_counter

import numpy as np

from weir.expr import evaluate, holds
from weir.kernel.access import (
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
from weir.kernel.keys import Bools, Int64s, combine, exact
from weir.kernel.line import NEVER, Queue, latest_place
from weir.kernel.partial import Partial, Picks, Rows
from weir.kernel.program import HopPlan, Reach
from weir.kernel.shelf import Shelf
from weir.kernel.slice import Slice
from weir.stats import HopStats

# Large enough that calls into NumPy and Arrow cost little beside their work; small enough, where expressions
# are evaluated on candidates, that their columns stay in the processor's cache.
_CANDIDATES = 1 << 19
_CANDIDATES_EVALUATED = 1 << 17
_CANDIDATES_IN_PRODUCT = 1 << 22
_BEFORE, _AFTER = -(2**62), 2**62


@dataclass
class HopWork:
    """A running count of one hop's work in one batch."""

    probes: int = 0
    comparisons: int = 0
    matches: int = 0
    seconds: float = 0.0
    by_slice: dict[tuple[int, int], int] = field(default_factory=dict)

    def get(self) -> HopStats:
        """What was counted."""
        return HopStats(self.probes, self.comparisons, self.matches, self.seconds, dict(self.by_slice))


class Reached:
    """A partner's time range per driver row; computed only where the slices' spans do not decide alone."""

    def __init__(self, reach: Reach, partial: Partial) -> None:
        self.name = reach.name
        self._reach, self._partial = reach, partial
        lows = [(partial.span(name), back) for name, back in reach.lows]
        highs = [(partial.span(name), ahead) for name, ahead in reach.highs]
        self.least_low = max((first - back for (first, _), back in lows), default=_BEFORE)
        self._most_low = max((last - back for (_, last), back in lows), default=_BEFORE)
        self._least_high = min((first + ahead for (first, _), ahead in highs), default=_AFTER)
        self.most_high = min((last + ahead for (_, last), ahead in highs), default=_AFTER)

    def misses(self, one: Slice) -> bool:
        """True if no driver row can reach into the slice."""
        first, last = one.spans[self.name]
        return last < self.least_low or first > self.most_high

    def covers(self, one: Slice) -> bool:
        """True if every driver row reaches all of the slice."""
        first, last = one.spans[self.name]
        return self._most_low <= first and last <= self._least_high

    @cached_property
    def low(self) -> Int64s | None:
        """The least time per driver row; None if nothing bounds it."""
        ends = [self._partial.numbers(name) - back for name, back in self._reach.lows]
        return reduce(np.maximum, ends) if ends else None

    @cached_property
    def high(self) -> Int64s | None:
        """The greatest time per driver row; None if nothing bounds it."""
        ends = [self._partial.numbers(name) + ahead for name, ahead in self._reach.highs]
        return reduce(np.minimum, ends) if ends else None

    def allows(self, times: Int64s, drivers: Picks) -> Bools:
        """Per pair: is the partner's time in its driver's range?"""
        allowed = np.ones(len(drivers), np.bool_)
        if self.low is not None:
            allowed &= times >= self.low[drivers]
        if self.high is not None:
            allowed &= times <= self.high[drivers]
        return allowed


@dataclass(frozen=True, slots=True)
class Candidates:
    """What one slice offers: per driver row a range of positions in an index."""

    one: Slice
    index: Index
    low: Int64s
    count: Int64s
    check_lead: bool


class HopRun:
    """A hop during one batch."""

    def __init__(
        self, plan: HopPlan, shelf: Shelf, queues: Mapping[str, Queue], batch: int, rank: int
    ) -> None:
        self._plan = plan
        self._shelf = shelf
        self._queues = queues
        self._seen = (batch, rank)

    def run(self, partial: Partial, work: HopWork) -> Iterator[Partial]:
        """The longer partials, a bounded number at a time."""
        started = perf_counter()
        work.probes += partial.rows
        for found in self._matches(partial, work) if partial.rows else ():
            work.seconds += perf_counter() - started
            yield found
            started = perf_counter()
        work.seconds += perf_counter() - started

    def _matches(self, partial: Partial, work: HopWork) -> Iterator[Partial]:
        lead = Reached(self._plan.lead, partial)
        others = [Reached(reach, partial) for reach in self._plan.others]
        slices = [
            one
            for one in self._shelf.between(lead.least_low, lead.most_high, *self._seen)
            if not lead.misses(one) and not any(reach.misses(one) for reach in others)
        ]
        if not slices:
            return
        search = _Search(self._plan, partial, lead)
        offers = [offer for one in slices if (offer := search.offer(one)).count.any()]
        for first, last in _runs(offers, self._limit):
            found = self._run_of(partial, search, offers, others, first, last, work)
            if found is not None:
                yield found

    @property
    def _limit(self) -> int:
        if isinstance(self._plan.access, VectorAccess):
            return _CANDIDATES_IN_PRODUCT
        checked = self._plan.residual or self._plan.costly or self._plan.verify
        return _CANDIDATES_EVALUATED if checked else _CANDIDATES

    def _run_of(
        self,
        partial: Partial,
        search: _Search,
        offers: list[Candidates],
        others: list[Reached],
        first: int,
        last: int,
        work: HopWork,
    ) -> Partial | None:
        drivers: list[Picks] = []
        parts: list[tuple[Slice, Picks]] = []
        for offer in offers:
            pairs = search.pairs(offer, first, last)
            work.comparisons += int(offer.count[first:last].sum())
            driver, row = self._timely(partial, offer, others, *pairs)
            work.by_slice.setdefault((offer.one.window, offer.one.batch), 0)
            if len(driver):
                drivers.append(driver)
                parts.append((offer.one, row))
        if not drivers:
            return None
        driver = drivers[0] if len(drivers) == 1 else np.concatenate(drivers)
        driver, parts = self._checked(partial, search, driver, parts)
        for one, row in parts:
            work.by_slice[one.window, one.batch] += len(row)
        work.matches += len(driver)
        return partial.joined(driver, Rows(self._plan.partner, parts)) if len(driver) else None

    def _timely(
        self, partial: Partial, offer: Candidates, others: list[Reached], driver: Picks, row: Picks
    ) -> tuple[Picks, Picks]:
        """The pairs whose times and places fit, where the index has not decided that."""
        one = offer.one
        for reach in others:
            if not reach.covers(one):
                keep = reach.allows(one.numbers(reach.name)[row], driver)
                driver, row = driver[keep], row[keep]
        if self._plan.in_line and len(driver):
            keep = self._in_line(partial, one, driver, row)
            driver, row = driver[keep], row[keep]
        return driver, row

    def _in_line(self, partial: Partial, one: Slice, driver: Picks, row: Picks) -> Bools:
        latest = partial.extreme(latest_place, np.maximum)
        place = one.layout.place
        assert latest is not None and place is not None
        keep = one.numbers(place)[row] < self._leaves(partial)[driver]
        for line in one.layout.lines:
            keep &= latest[driver] < self._queues[line.name].leaves(one.numbers(line.number)[row])
        return keep

    def _leaves(self, partial: Partial) -> Int64s:
        leaves = np.full(partial.rows, NEVER)
        for group in partial.groups:
            for line in group.layout.lines:
                np.minimum(leaves, self._queues[line.name].leaves(group.numbers(line.number)), out=leaves)
        return leaves

    def _checked(
        self, partial: Partial, search: _Search, driver: Picks, parts: list[tuple[Slice, Picks]]
    ) -> tuple[Picks, list[tuple[Slice, Picks]]]:
        """The pairs that pass verification, then the residual, then what is costly."""
        plan = self._plan
        if plan.verify or (isinstance(plan.access, KeyAccess) and len(plan.access.classes) > 1):
            keep = self._verified(partial, search, driver, parts)
            driver, parts = _filter(driver, parts, keep)
        for exprs in (plan.residual, *((expr,) for expr in plan.costly)):
            if exprs and len(driver):
                pairs = partial.joined(driver, Rows(plan.partner, parts))
                keep = np.ones(len(driver), np.bool_)
                for expr in exprs:
                    keep &= holds(expr, pairs.fetch, pairs.rows)
                driver, parts = _filter(driver, parts, keep)
        return driver, parts

    def _verified(
        self, partial: Partial, search: _Search, driver: Picks, parts: list[tuple[Slice, Picks]]
    ) -> Bools:
        """Per pair: do the classes really agree? Codes of several classes are hashed, long values too."""
        access = self._plan.access
        assert isinstance(access, KeyAccess)
        rows = Rows(self._plan.partner, parts)
        keep = np.ones(len(driver), np.bool_)
        if len(access.classes) > 1:
            for codes, name in zip(search.codes, access.names, strict=True):
                keep &= codes[driver] == rows.numbers(name)
        for i, equality in self._plan.verify:
            c = access.classes[i]
            doubtful = np.flatnonzero(keep & ~exact(search.codes[i][driver], c.domain, c.null_safe))
            if len(doubtful):
                pairs = partial.joined(driver, rows).pick(doubtful)
                keep[doubtful] = holds(equality, pairs.fetch, pairs.rows)
        return keep


class _Search:
    """The driver's side of a hop's access, computed once and used on every slice."""

    def __init__(self, plan: HopPlan, partial: Partial, lead: Reached) -> None:
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


def _runs(offers: list[Candidates], limit: int) -> Iterator[tuple[int, int]]:
    """Runs of driver rows with about `limit` candidates each, at least one row."""
    if not offers:
        return
    rows = len(offers[0].count)
    total = np.cumsum(np.sum([offer.count for offer in offers], axis=0))
    if total[-1] <= limit:
        yield 0, rows
        return
    cuts = np.searchsorted(total, np.arange(limit, int(total[-1]), limit), "left") + 1
    edges = np.unique(np.concatenate(([0], cuts, [rows])))
    yield from pairwise(edges.tolist())


def _filter(
    driver: Picks, parts: list[tuple[Slice, Picks]], keep: Bools
) -> tuple[Picks, list[tuple[Slice, Picks]]]:
    if keep.all():
        return driver, parts
    edges = np.cumsum([0, *(len(row) for _, row in parts)])
    kept = [(one, row[keep[a:b]]) for (one, row), (a, b) in zip(parts, pairwise(edges.tolist()), strict=True)]
    return driver[keep], [(one, row) for one, row in kept if len(row)]
