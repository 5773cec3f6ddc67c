"""Placement: which partition a row is stored in, and how that changes between batches.

With `psp`, time is cut into short cells, and a ring of cells repeats for ever:

    time       ──┬─────┬─────┬─────┬─────┬─────┬─────┬──▶
    cell         │  0  │  1  │  2  │  3  │  0  │  1  │        homes = (0, 0, 1, 2)
    partition    │  0     0  │  1  │  2  │  0     0  │
                 └── slice ──┘

So every event time has one partition, also that of a row which is late or far ahead. A slice is a run of
cells with one partition. Before each batch, the cells that no row has reached yet are assigned again, by load
(workload smoothing and relocation of Wang and Rundensteiner 2009, sections 5.5 and 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from typing import Literal, get_args

from weir.errors import QueryError

SharedSpread = Literal["share", "psp"]
# Spreads with which rows find partners in any partition, so that stored slices may lie anywhere.
SHARED_SPREADS: frozenset[str] = frozenset(get_args(SharedSpread))
# Slices per partition in the shortest window, at least and usually: more slices balance better.
_MIN_SLICES, _USUAL_SLICES = 4, 32
# The longest slice is this many times as long as the shortest, so that slices stay even when rates change.
_CELLS_PER_SLICE = 32
# The shortest window has at most this many cells, and the ring is this many such windows long.
_MAX_CELLS = 1024
_RING_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Placement:
    """The spread of one batch and its partitions; for psp the length of a cell (µs) and each cell's home.

    A home is the number of a partition. With `relocate`, slices of earlier batches are distributed again
    before the batch.
    """

    spread: str
    partitions: int
    cell: int = 0
    homes: tuple[int, ...] = ()
    relocate: bool = False

    def __post_init__(self) -> None:
        check_nodes(self.partitions)
        if (self.spread == "psp") != bool(self.homes) or bool(self.homes) != (self.cell > 0):
            raise QueryError(f"cells of time are for spread='psp', which needs them; got {self.spread!r}")
        if not all(0 <= home < self.partitions for home in self.homes):
            raise QueryError(f"every cell's home must be one of the {self.partitions} partitions")

    @property
    def is_shared(self) -> bool:
        """True if rows find partners in any partition, so that stored slices may lie anywhere."""
        return self.spread in SHARED_SPREADS

    def partition_at(self, time: int) -> int:
        """Return the partition of an event time (µs).

        >>> Placement("psp", 3, cell=10, homes=(0, 0, 1, 2)).partition_at(45)
        0
        """
        return self.homes[time // self.cell % len(self.homes)]


def check_nodes(nodes: int) -> int:
    """Return the number of nodes, or raise if there cannot be so many."""
    if nodes < 1:
        raise QueryError(f"a join needs at least one node to run on; got {nodes}")
    return nodes


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """A stored slice: its partition, its rows, and the newest event time (µs) at which all are dead.

    `until` is None if they never are.
    """

    partition: int
    rows: int
    until: int | None


@dataclass(frozen=True, slots=True)
class ArrivalForecast:
    """Newest time so far and oldest to come (µs), rows to expect per µs, and µs that each stays joinable."""

    newest: int
    oldest: int
    rate: float
    retention: int


def place_by_time(shortest: int, partitions: int) -> Placement:
    """Deal slices of usual length, for a shortest window (µs), to the partitions in turn."""
    cells = _cells_per_window(partitions)
    usual = max(1, cells // (_USUAL_SLICES * partitions))
    homes = tuple(cell // usual % partitions for cell in range(_RING_WINDOWS * cells))
    return Placement("psp", partitions, max(1, shortest // cells), homes)


def change_partitions(before: Placement, shortest: int, partitions: int, newest: int) -> Placement:
    """Change the number of partitions; times up to the newest keep their partitions where these remain."""
    after = place_by_time(shortest, partitions)
    ring, last = len(after.homes), newest // after.cell
    homes = list(after.homes)
    for cell in range(last - ring + 1, last + 1):
        homes[cell % ring] = before.partition_at(cell * after.cell) % partitions
    return replace(after, homes=tuple(homes))


def assign_future_cells(
    before: Placement, stored: Sequence[StoredSlice], forecast: ArrivalForecast
) -> Placement:
    """Assign the cells beyond the newest row again, slice by slice to the least loaded partition.

    A slice is as long as it takes for a usual slice's count of rows to come (workload smoothing of Wang and
    Rundensteiner 2009), within the bounds above. Load is counted in rows, each weighted by the share of its
    life that is left: a partition whose rows are about to die gets new ones before they do. Partitions of
    equal load take turns.
    """
    rows = sum(stored_slice.rows for stored_slice in stored)
    if not rows:
        return before
    if forecast.rate <= 0:  # not measured yet: stored rows came in the time for which they are kept
        forecast = replace(forecast, rate=rows / max(1, forecast.retention))
    ring = len(before.homes)
    first = forecast.newest // before.cell + 1
    fixed = min(ring // 2, max(1, first - forecast.oldest // before.cell))
    length = _slice_length(before, rows, forecast)
    homes, loads = list(before.homes), _Loads(before.partitions, stored, forecast)
    partition = homes[(first - 1) % ring]
    for start in range(first, first + ring - fixed, length):
        cells = range(start, min(start + length, first + ring - fixed))
        time = start * before.cell
        partition = loads.find_least(time, partition)
        loads.add(partition, forecast.rate * len(cells) * before.cell, time + forecast.retention)
        for cell in cells:
            homes[cell % ring] = partition
    return replace(before, homes=tuple(homes))


def balance_slices(stored: Sequence[StoredSlice], partitions: int) -> list[int]:
    """Choose new partitions for stored slices, so that loads are even now and while rows die.

    >>> balance_slices([StoredSlice(0, 5, until) for until in (1, 2, 3, 4)], partitions=2)
    [1, 0, 1, 0]
    """
    loads, homes = [0] * partitions, [0] * len(stored)
    lives = [(inf if each.until is None else each.until, each.rows) for each in stored]
    # Longest-lived first: whenever some slices have died, those left were dealt out evenly before them.
    for i in sorted(range(len(stored)), key=lives.__getitem__, reverse=True):
        own = stored[i].partition
        homes[i] = min(range(partitions), key=lambda partition: (loads[partition], partition != own))
        loads[homes[i]] += stored[i].rows
    return homes


def _cells_per_window(partitions: int) -> int:
    """Cells of the shortest window: at least one per partition, or some would have nothing to do."""
    return max(partitions, min(_MIN_SLICES * _CELLS_PER_SLICE * partitions, _MAX_CELLS))


def _slice_length(before: Placement, rows: int, forecast: ArrivalForecast) -> int:
    """Cells of a slice that gets as many rows as each of the usual slices holds now."""
    cells = _cells_per_window(before.partitions)
    usual, longest = (
        max(1, cells // (slices * before.partitions)) for slices in (_USUAL_SLICES, _MIN_SLICES)
    )
    share = rows * usual * before.cell / max(forecast.retention, before.cell)
    return max(1, round(min(longest, share / (forecast.rate * before.cell))))


class _Loads:
    """Rows of each partition, weighted by what is left of their lives as time goes on."""

    def __init__(self, partitions: int, stored: Sequence[StoredSlice], forecast: ArrivalForecast) -> None:
        self._retention = max(1, forecast.retention)
        self._start = forecast.newest
        # A row at time t counts (until - t) / retention, so the sums of rows and of rows * until suffice.
        self._rows, self._ends, self._lasting = ([0.0] * partitions for _ in range(3))
        self._queue: list[tuple[int, int, float]] = []
        for each in (each for each in stored if each.partition < partitions):
            if each.until is not None:
                self.add(each.partition, each.rows, each.until)
            else:
                self._lasting[each.partition] += each.rows

    def add(self, partition: int, rows: float, until: int) -> None:
        heappush(self._queue, (until, partition, rows))
        self._rows[partition] += rows
        self._ends[partition] += rows * (until - self._start)

    def find_least(self, now: int, last: int) -> int:
        """The least loaded partition at a time; of equals, the next one after the last chosen."""
        while self._queue and self._queue[0][0] <= now:
            until, partition, rows = heappop(self._queue)
            self._rows[partition] -= rows
            self._ends[partition] -= rows * (until - self._start)
        passed, count = now - self._start, len(self._rows)

        def load(partition: int) -> float:
            left = (self._ends[partition] - self._rows[partition] * passed) / self._retention
            return round(left + self._lasting[partition], 6)

        return min(range(count), key=lambda partition: (load(partition), (partition - last - 1) % count))
