"""One half-way join, run: partials in, longer partials out.

What is correct: every pair of a partial and a visible partner row whose times, places and predicates fit is
returned once; a pair is a candidate in exactly one slice, as each row lies in one. Candidates come from an
index range over a slice; whatever the range does not decide is checked on the pairs themselves, cheapest
first. What is in flight stays bounded: driver rows are taken in runs of about `_CANDIDATES` candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import numpy as np

from weir.expr.evaluate import holds
from weir.kernel.access_path import KeyAccess, VectorAccess
from weir.kernel.age_filter import AgeFilter
from weir.kernel.expensive_predicates import holds_for, in_order
from weir.kernel.index_probe import Candidates, IndexProbe
from weir.kernel.keys import Bools, Int64s, exact
from weir.kernel.partial import Partial, Picks, Rows
from weir.kernel.physical_plan import HalfJoinPlan, TimeReach
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.row_window import NEVER, RowWindowOrder, latest_place
from weir.kernel.slice import Slice
from weir.kernel.slice_index import SliceIndex
from weir.kernel.time_range import TimeRange
from weir.stats.batch import HopStats

# Large enough that calls into NumPy and Arrow cost little beside their work; small enough, where expressions
# are evaluated on candidates, that their columns stay in the processor's cache.
_CANDIDATES = 1 << 19
_CANDIDATES_EVALUATED = 1 << 17
_CANDIDATES_IN_PRODUCT = 1 << 22
# Costly predicates see to the cache themselves; the more candidates, the more of them ask the same.
_CANDIDATES_ASKED_ONCE = 1 << 20
# Rows may be wide, images or documents: what is in flight is bounded in bytes too.
_BYTES = 1 << 28


@dataclass
class HopWork:
    """A running count of one hop's work in one batch."""

    probes: int = 0
    comparisons: int = 0
    matches: int = 0
    seconds: float = 0.0
    skipped: int = 0
    sampled: int = 0
    sampled_matches: int = 0
    narrowed: int = 0
    unvisited: int = 0
    by_slice: dict[tuple[int, int], int] = field(default_factory=dict)

    def get(self) -> HopStats:
        """What was counted."""
        return HopStats(
            self.probes,
            self.comparisons,
            self.matches,
            self.seconds,
            len(self.by_slice),
            self.skipped,
            self.sampled,
            self.sampled_matches,
            self.narrowed,
            self.unvisited,
        )


class HalfJoin:
    """A hop during one batch."""

    def __init__(
        self,
        plan: HalfJoinPlan,
        look: AgeFilter,
        shelf: SliceIndex,
        queues: Mapping[str, RowWindowOrder],
        batch: int,
        rank: int,
        most: int | None = None,
        sample: ProbeSample | None = None,
    ) -> None:
        self._plan = plan
        self._look = look
        self._shelf = shelf
        self._queues = queues
        self._seen = (batch, rank)
        self._most = most
        self._sample = sample

    @property
    def is_narrow(self) -> bool:
        """True if rows that are not sampled look at some ages only."""
        return self._look.is_narrow

    def run(self, partial: Partial, work: HopWork) -> Iterator[Partial]:
        """The longer partials, a bounded number at a time."""
        started = perf_counter()
        work.probes += partial.rows
        if self._sample is not None:
            work.sampled += self._sample.count(partial)
        for found in self._matches(partial, work):
            if self._sample is not None:
                work.sampled_matches += self._sample.count(found)
            work.seconds += perf_counter() - started
            yield found
            started = perf_counter()
        work.seconds += perf_counter() - started

    def _matches(self, partial: Partial, work: HopWork) -> Iterator[Partial]:
        if not partial.rows:
            return
        if self._plan.costly:
            partial = in_order(self._plan.costly, partial)
        visited: set[int] = set()
        for rows, reach in self._look.parts(partial):
            lead, others = self._reached(rows, reach)
            slices = self._slices(lead, others)
            visited.update(map(id, slices))
            if slices:
                yield from self._matches_in(rows, lead, others, slices, work)
        if self._look.is_narrow:
            work.narrowed += (
                partial.rows if self._sample is None else partial.rows - self._sample.count(partial)
            )
            work.unvisited += len(self._slices(*self._reached(partial, self._plan.lead))) - len(visited)

    def _reached(self, partial: Partial, reach: TimeReach) -> tuple[TimeRange, list[TimeRange]]:
        return TimeRange(reach, partial), [TimeRange(other, partial) for other in self._plan.others]

    def _slices(self, lead: TimeRange, others: list[TimeRange]) -> list[Slice]:
        return [
            one
            for one in self._shelf.between(lead.least_low, lead.most_high, *self._seen)
            if not lead.misses(one) and not any(reach.misses(one) for reach in others)
        ]

    def _matches_in(
        self, partial: Partial, lead: TimeRange, others: list[TimeRange], slices: list[Slice], work: HopWork
    ) -> Iterator[Partial]:
        search = IndexProbe(self._plan, partial, lead)
        offers = [offer for one in slices if (offer := search.offer(one)).count.any()]
        for first, last in _runs(offers, *self._most_in_flight(partial, slices)):
            found = self._run_of(partial, search, offers, others, first, last, work)
            if found is not None:
                yield found

    def _most_in_flight(self, partial: Partial, slices: list[Slice]) -> tuple[int, int]:
        """How many candidates a run may have, and how many rows: all their values may be gathered."""
        limit = self._usual_limit if self._most is None else min(self._most, self._usual_limit)
        if self._plan.residual or self._plan.verify:
            widest = partial.width + max(one.bytes / max(one.rows, 1) for one in slices)
            limit = min(limit, int(_BYTES / widest))
        return max(1, limit), max(1, int(_BYTES / max(partial.width, 1.0)))

    @property
    def _usual_limit(self) -> int:
        if isinstance(self._plan.access, VectorAccess):
            return _CANDIDATES_IN_PRODUCT
        if self._plan.residual or self._plan.verify:
            return _CANDIDATES_EVALUATED
        return _CANDIDATES_ASKED_ONCE if self._plan.costly else _CANDIDATES

    def _run_of(
        self,
        partial: Partial,
        search: IndexProbe,
        offers: list[Candidates],
        others: list[TimeRange],
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
        self, partial: Partial, offer: Candidates, others: list[TimeRange], driver: Picks, row: Picks
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
        self, partial: Partial, search: IndexProbe, driver: Picks, parts: list[tuple[Slice, Picks]]
    ) -> tuple[Picks, list[tuple[Slice, Picks]]]:
        """The pairs that pass verification, then the residual, then what is costly."""
        plan = self._plan
        if plan.verify or (isinstance(plan.access, KeyAccess) and len(plan.access.classes) > 1):
            keep = self._verified(partial, search, driver, parts)
            driver, parts = _filter(driver, parts, keep)
        if plan.residual and len(driver):
            pairs = partial.joined(driver, Rows(plan.partner, parts))
            keep = np.ones(len(driver), np.bool_)
            for expr in plan.residual:
                keep &= holds(expr, pairs.fetch, pairs.rows)
            driver, parts = _filter(driver, parts, keep)
        for expr in plan.costly:
            if len(driver):
                keep = holds_for(expr, partial, driver, Rows(plan.partner, parts))
                driver, parts = _filter(driver, parts, keep)
        return driver, parts

    def _verified(
        self, partial: Partial, search: IndexProbe, driver: Picks, parts: list[tuple[Slice, Picks]]
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


def _runs(offers: list[Candidates], limit: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs of at least one and at most `most` driver rows with about `limit` candidates each."""
    if not offers:
        return
    rows = len(offers[0].count)
    total = np.cumsum(np.sum([offer.count for offer in offers], axis=0))
    if total[-1] <= limit and rows <= most:
        yield 0, rows
        return
    cuts = np.searchsorted(total, np.arange(limit, int(total[-1]), limit), "left") + 1
    edges = np.unique(np.concatenate((np.arange(0, rows, most), cuts, [rows])))
    yield from pairwise(edges.tolist())


def _filter(
    driver: Picks, parts: list[tuple[Slice, Picks]], keep: Bools
) -> tuple[Picks, list[tuple[Slice, Picks]]]:
    if keep.all():
        return driver, parts
    edges = np.cumsum([0, *(len(row) for _, row in parts)])
    kept = [(one, row[keep[a:b]]) for (one, row), (a, b) in zip(parts, pairwise(edges.tolist()), strict=True)]
    return driver[keep], [(one, row) for one, row in kept if len(row)]
