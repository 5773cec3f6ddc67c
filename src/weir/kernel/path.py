"""Paths: run the rows of a batch along the hops of one join.

Each hop sheds probes as the allowance says, or skips partials that cannot complete, and then probes one
partner. Paths are followed depth first, so that at most one run of candidates per hop is in flight. With a
work cap, the rows of a path start in runs, and none of them once its part of the cap is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import thread_time

import numpy as np

from weir.kernel.age_filter import AgeFilter
from weir.kernel.decision import Decision
from weir.kernel.half_join import HalfJoin
from weir.kernel.live_keys import LiveKeys, find_live_keys
from weir.kernel.partial import Partial
from weir.kernel.path_weights import PathWeights
from weir.kernel.physical_plan import HalfJoinPlan, NodePlan, PhysicalPlan
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.probe_shedding import Cutoff, ProbeShedding
from weir.kernel.quarantine import Quarantine
from weir.kernel.row_ids import concat_partials
from weir.kernel.row_window import RowWindowOrder, order_row_window
from weir.kernel.slice import Slice
from weir.kernel.slice_index import SliceIndex
from weir.kernel.state import State
from weir.kernel.state_schema import ROW_ORDER
from weir.kernel.work_cap import divide_rows
from weir.stats.batch_counts import count_steps
from weir.stats.hop import Hop, HopStats

Path = tuple[HalfJoinPlan, ...]


class PathRun:
    """A path during one batch: its sample, the shedding and the probe of each of its hops, its weights."""

    def __init__(
        self,
        path: Path,
        physical: PhysicalPlan,
        decision: Decision,
        batch: int,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.path, self._physical, self._decision, self._batch = path, physical, decision, batch
        self._quarantine = quarantine
        self.sample = ProbeSample.of(decision.allowance, path[0].hop, batch)
        self._cutoff: Cutoff | None = None

    def shedding(self, number: int) -> ProbeShedding:
        """Return the shedding at a hop, by its number on the path."""
        return ProbeShedding.of(self._decision.allowance, self.path[number].hop, self._batch, self.sample)

    def admit_rows(self, rows: list[Partial], work: HopStats) -> Sequence[Partial]:
        """Return those of the driver's rows that may probe at the first hop, partial by partial."""
        shedding = self.shedding(0)
        if self.sample is not None:
            self._cutoff = shedding.find_cutoff(rows)
        return shedding.admit_rows(rows, work)

    @cached_property
    def weights(self) -> PathWeights:
        """How to weigh the outputs of rows that were admitted, here or by another partition."""
        allowance = self._decision.allowance
        age_filters = [AgeFilter.of(self._physical, allowance, hop, self.sample) for hop in self.path]
        shedding = [self.shedding(number) for number in range(len(self.path))]
        return PathWeights.of(shedding, age_filters, self.sample, self._cutoff)

    def half_join(
        self,
        number: int,
        rank: int,
        index: SliceIndex,
        row_windows: Mapping[str, RowWindowOrder],
        rows_to_come: int = 0,
    ) -> HalfJoin:
        """Return the probe of a hop for driver rows up to a rank, in the slices of an index."""
        hop = self.path[number]
        return HalfJoin(
            hop,
            AgeFilter.of(self._physical, self._decision.allowance, hop, self.sample),
            index,
            row_windows,
            self._batch,
            rank,
            self._decision.max_candidates,
            self.sample,
            self._quarantine,
            rows_to_come,
        )

    def follow(
        self,
        rows: list[Partial],
        rank: int,
        indexes: Mapping[str, SliceIndex],
        row_windows: Mapping[str, RowWindowOrder],
        hops: MutableMapping[Hop, HopStats],
        max_steps: int | None = None,
    ) -> Iterator[Partial]:
        """Yield what rows up to a rank that the first hop has admitted find on the whole path, weighed.

        With `max_steps`, no run of rows starts once the hops have taken so many.
        """
        slice_indexes = [indexes[hop.partner.node] for hop in self.path]
        rows_to_come = 0 if max_steps is None else sum(partial.rows for partial in rows)
        hop_runs = [
            _HopRun(
                self.shedding(number),
                self._live_keys(number, rank, slice_indexes),
                self.half_join(number, rank, slice_indexes[number], row_windows, rows_to_come),
                hops[hop.hop],
            )
            for number, hop in enumerate(self.path)
        ]
        work, runs = [hop_run.work for hop_run in hop_runs], iter([rows])
        if max_steps is not None:
            runs = divide_rows(rows, slice_indexes[0].rows, max_steps, work)
        for run in runs:
            yield from self._follow(run, hop_runs)

    def _follow(self, rows: list[Partial], hop_runs: list[_HopRun]) -> Iterator[Partial]:
        # The first hop has admitted its rows already; only what comes after it treats sampled rows apart.
        ages = any(hop_run.half_join.age_filter.is_active for hop_run in hop_runs)
        if self.sample is not None and (ages or any(hop_run.shedding.share < 1 for hop_run in hop_runs[1:])):
            rows = _put_sampled_first(rows, self.sample)
        # Expensive predicates are evaluated once for all rows of a run, not again for each slice.
        if len(rows) > 1 and any(hop.expensive for hop in self.path):
            rows = [concat_partials(rows)]
        first, *later = hop_runs
        for partial in rows:
            for output in _follow(first.run(partial), later):
                yield self.weights.weigh(output)

    def _live_keys(self, number: int, rank: int, slice_indexes: Sequence[SliceIndex]) -> tuple[LiveKeys, ...]:
        driver = self._physical.schemas[self.path[0].hop.driver]
        return find_live_keys(self.path, number, driver, self._decision, slice_indexes, self._batch, rank)


@dataclass(frozen=True, slots=True)
class _HopRun:
    """One hop of a path: which partials may probe, which of them can complete, the probe, and its counts."""

    shedding: ProbeShedding
    live_keys: tuple[LiveKeys, ...]
    half_join: HalfJoin
    work: HopStats

    def run(self, partial: Partial) -> Iterator[Partial]:
        """Yield what admitted partials find."""
        return self.half_join.run(self._skip(partial), self.work)

    def _skip(self, partial: Partial) -> Partial:
        """Skip partials that cannot complete; they count as probes without matches."""
        if not self.live_keys:
            return partial
        started, rows = thread_time(), partial.rows
        for live_keys in self.live_keys:
            partial = live_keys.skip(partial)
        self.work.probes += rows - partial.rows
        self.work.seconds += thread_time() - started
        return partial


def run_join(
    node: NodePlan,
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    batch: int,
    hops: MutableMapping[Hop, HopStats],
    drivers: Collection[int] | None = None,
    quarantine: Quarantine | None = None,
    max_steps: int | None = None,
) -> Iterator[tuple[int | None, Partial]]:
    """Yield every new output of a join with its rank, lowest rank first; None: its rows differ in rank.

    Rows of one rank run together, and so do all rows of an input whose slices have a rank per row. Those that
    are still to run divide evenly what is left of `max_steps`.
    """
    indexes = {name: SliceIndex(state.of(name)) for name in node.inputs}
    row_windows = _order_row_windows(physical, state, batch)
    runs: dict[tuple[str, int | None], _Run] = {}
    for name, path in zip(node.inputs, node.paths, strict=True):
        slices = [s for s in state.of(name) if s.batch == batch and (drivers is None or id(s) in drivers)]
        starts = _pick_seeing(slices, [indexes[hop.partner.node].lowest_rank(batch) for hop in path])
        if starts:
            path_run = PathRun(path, physical, decision, batch, quarantine)
            admitted = path_run.admit_rows([p for _, p in starts], hops[path[0].hop])
            for (s, _), partial in zip(starts, admitted, strict=True):
                key = (name, s.rank if s.ranks is None else None)
                runs.setdefault(key, _Run(path_run)).add(s, partial)
    in_order = sorted(runs.items(), key=lambda item: item[1].lowest)
    for number, ((_, rank), run) in enumerate(in_order):
        part = None if max_steps is None else max_steps // (len(in_order) - number)
        work = [hops[hop.hop] for hop in run.path_run.path]
        before = count_steps(work)
        for output in run.path_run.follow(run.rows, run.highest, indexes, row_windows, hops, part):
            yield rank, output
        if max_steps is not None and part is not None:
            # What a path took beyond its part, by its last run, is not taken from those after it.
            max_steps -= min(count_steps(work) - before, part)


@dataclass(slots=True)
class _Run:
    """Rows that follow a path together, and the range of their ranks."""

    path_run: PathRun
    rows: list[Partial] = field(default_factory=list)
    lowest: int = 2**62
    highest: int = 0

    def add(self, source: Slice, partial: Partial) -> None:
        self.lowest = min(self.lowest, source.rank)
        self.highest = max(self.highest, source.highest_rank)
        if partial.rows:
            self.rows.append(partial)


def _pick_seeing(slices: list[Slice], lowest_ranks: list[int | None]) -> list[tuple[Slice, Partial]]:
    """Pick the rows that see some row of each partner: a path with an empty partner completes no result."""
    known = [rank for rank in lowest_ranks if rank is not None]
    if len(known) < len(lowest_ranks):
        return []
    hidden, seeing = max(known), []
    for s in slices:
        if s.rank > hidden:
            seeing.append((s, Partial.of(s)))
        elif s.ranks is not None and s.highest_rank > hidden:
            seeing.append((s, Partial.of(s).pick(np.flatnonzero(s.ranks > hidden))))
    return seeing


def probe_earlier_batches(
    path: Path,
    starts: list[Partial],
    physical: PhysicalPlan,
    decision: Decision,
    state: State,
    since: int,
    hops: MutableMapping[Hop, HopStats],
    quarantine: Quarantine | None = None,
) -> Iterator[Partial]:
    """Yield all that rows find on a path in slices of batches before `since`, without shedding."""
    run = PathRun(path, physical, replace(decision, allowance=None), since, quarantine)
    indexes = {hop.partner.node: SliceIndex(state.of(hop.partner.node)) for hop in path}
    return run.follow(starts, 0, indexes, {}, hops)


def _put_sampled_first(rows: list[Partial], sample: ProbeSample) -> list[Partial]:
    """Concatenate the few sampled rows, which visit every slice, and put them before the others."""
    marks = [sample.mark(partial) for partial in rows]
    sampled = [partial.pick(np.flatnonzero(mark)) for partial, mark in zip(rows, marks, strict=True)]
    sampled = [partial for partial in sampled if partial.rows]
    if len(sampled) < 2:
        return rows
    others = [
        partial.pick(np.flatnonzero(~mark)) if mark.any() else partial
        for partial, mark in zip(rows, marks, strict=True)
    ]
    return [concat_partials(sampled), *(partial for partial in others if partial.rows)]


def _follow(partials: Iterable[Partial], hop_runs: list[_HopRun]) -> Iterator[Partial]:
    if not hop_runs:
        yield from partials
        return
    first, *later = hop_runs
    for partial in partials:
        admitted = first.shedding.admit_partial(partial, first.work)
        yield from _follow(first.run(admitted), later)


def _order_row_windows(physical: PhysicalPlan, state: State, batch: int) -> Mapping[str, RowWindowOrder]:
    """Order the rows that this batch brings into each row window."""
    orders = {}
    for schema in physical.schemas.values():
        for window in schema.row_windows:
            if schema.node == window.name and schema.sequence is not None:
                next_row_number = state.next_row_numbers.get(window.name, 0)
                slices = state.of(window.name + ROW_ORDER) or state.of(window.name)
                orders[window.name] = order_row_window(
                    window, schema.sequence, next_row_number, slices, batch
                )
    return orders
