"""Placement of rows on partitions, and its changes at run time (Wang and Rundensteiner 2009, section 6).

By time (`psp`), time is cut into short cells, and a ring of cells goes round for ever:

    time    ──┬─────┬─────┬─────┬─────┬─────┬─────┬──▶
    cell      │  0  │  1  │  2  │  3  │  0  │  1  │        homes = (0, 0, 1, 2)
    home      │  0     0  │  1  │  2  │  0     0  │
              └── slice ──┘

So every time has one home, also that of a row which is late or far ahead. A slice is a run of cells with one
home. Before each batch the cells that no row has reached yet are laid out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from typing import Literal, get_args

from weir.errors import QueryError
from weir.partition.hardware import check_nodes

Shared = Literal["share", "psp"]
# The spreads by which rows find partners in any partition, so that it does not matter where old ones lie.
SHARED: frozenset[str] = frozenset(get_args(Shared))
# Slices of the shortest window that each partition holds at least, and usually: the more there are, the more
# evenly they can be given away.
_FEWEST, _USUAL = 4, 32
# The longest slice is this many times as long as the shortest: so far are counts levelled when rates change.
_FINEST = 32
# In all, the shortest window has no more cells than this, and the ring is so many such windows long.
_MOST_CELLS = 1024
_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Placement:
    """The spread of one batch, its partitions, and for psp the length of a cell (µs) and each cell's home.

    `relocate`: the slices of earlier batches are given away anew before the batch.
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
        """True if rows find partners in other partitions than their own: then old ones may lie anywhere."""
        return self.spread in SHARED

    def home(self, time: int) -> int:
        """The partition of a time (µs).

        >>> Placement("psp", 3, cell=10, homes=(0, 0, 1, 2)).home(45)
        0
        """
        return self.homes[time // self.cell % len(self.homes)]


@dataclass(frozen=True, slots=True)
class Load:
    """Rows of a partition, and the time (µs) of the newest row by which they are dead; None: never."""

    home: int
    rows: int
    until: int | None


@dataclass(frozen=True, slots=True)
class ArrivalForecast:
    """The newest time seen, the oldest that may still come; rows to expect a µs, and how long each counts."""

    newest: int
    oldest: int
    rate: float
    kept: int


def by_time(shortest: int, partitions: int) -> Placement:
    """Usual slices of a shortest window (µs) that go round the partitions."""
    cells = _cells(partitions)
    usual = max(1, cells // (_USUAL * partitions))
    homes = tuple(place // usual % partitions for place in range(_WINDOWS * cells))
    return Placement("psp", partitions, max(1, shortest // cells), homes)


def cut_anew(before: Placement, shortest: int, partitions: int, newest: int) -> Placement:
    """Slices for another number of partitions; times up to the newest keep their homes where these remain."""
    after = by_time(shortest, partitions)
    ring, last = len(after.homes), newest // after.cell
    homes = list(after.homes)
    for cell in range(last - ring + 1, last + 1):
        homes[cell % ring] = before.home(cell * after.cell) % partitions
    return replace(after, homes=tuple(homes))


def laid_out(before: Placement, held: Sequence[Load], outlook: ArrivalForecast) -> Placement:
    """The same with the cells beyond the newest row given away anew, slice by slice to the least loaded.

    A slice is as long as it takes for a usual slice's count of rows to come (workload smoothing of Wang and
    Rundensteiner 2009), within the bounds above. The load is in rows, each counting for the share of its life
    that is left: a partition whose rows are about to die gets new ones before they do. Partitions of equal
    load take turns.
    """
    rows = sum(one.rows for one in held)
    if not rows:
        return before
    if outlook.rate <= 0:  # not seen yet: what is held came in the time for which it is kept
        outlook = replace(outlook, rate=rows / max(1, outlook.kept))
    count, ring = before.partitions, len(before.homes)
    first = outlook.newest // before.cell + 1
    known = min(ring // 2, max(1, first - outlook.oldest // before.cell))
    length = _slice_length(before, rows, outlook)
    homes, loads = list(before.homes), _Loads(count, held, outlook)
    last = homes[(first - 1) % ring]
    for start in range(first, first + ring - known, length):
        cells = range(start, min(start + length, first + ring - known))
        last = loads.least(start * before.cell, last)
        loads.add(last, outlook.rate * len(cells) * before.cell, start * before.cell + outlook.kept)
        for cell in cells:
            homes[cell % ring] = last
    return replace(before, homes=tuple(homes))


def levelled(held: Sequence[Load], partitions: int) -> list[int]:
    """New homes for what is held, so that the partitions are level now and while rows die.

    >>> levelled([Load(0, 5, until) for until in (1, 2, 3, 4)], partitions=2)
    [1, 0, 1, 0]
    """
    loads = [0] * partitions
    homes = [0] * len(held)
    # Whenever some are dead, what is left has been dealt out before them.
    for place in sorted(range(len(held)), key=lambda place: _life(held[place]), reverse=True):
        own = held[place].home
        homes[place] = min(range(partitions), key=lambda home: (loads[home], home != own))
        loads[homes[place]] += held[place].rows
    return homes


def _life(one: Load) -> tuple[float, int]:
    return (inf if one.until is None else one.until), one.rows


def _cells(partitions: int) -> int:
    """Cells of the shortest window; at least one for each partition, or some would have nothing to do."""
    return max(partitions, min(_FEWEST * _FINEST * partitions, _MOST_CELLS))


def _slice_length(before: Placement, rows: int, outlook: ArrivalForecast) -> int:
    """Cells of a slice: its rows are the rows held over the usual slices in the time that they are kept."""
    cells = _cells(before.partitions)
    usual, longest = (max(1, cells // (slices * before.partitions)) for slices in (_USUAL, _FEWEST))
    share = rows * usual * before.cell / max(outlook.kept, before.cell)
    return max(1, round(min(longest, share / (outlook.rate * before.cell))))


class _Loads:
    """Rows of each partition, weighed by what is left of their lives as time goes on."""

    def __init__(self, partitions: int, held: Sequence[Load], outlook: ArrivalForecast) -> None:
        self._kept = max(1, outlook.kept)
        self._start = outlook.newest
        # A row at time t counts (until - t) / kept, so rows and rows * until are all there is to know.
        self._rows, self._ends, self._lasting = ([0.0] * partitions for _ in range(3))
        self._queue: list[tuple[int, int, float]] = []
        for one in held:
            if one.home < partitions and one.until is not None:
                self.add(one.home, one.rows, one.until)
            elif one.home < partitions:
                self._lasting[one.home] += one.rows

    def add(self, home: int, rows: float, until: int) -> None:
        heappush(self._queue, (until, home, rows))
        self._rows[home] += rows
        self._ends[home] += rows * (until - self._start)

    def least(self, now: int, last: int) -> int:
        """The least loaded partition at a time, of equals the next one after the last."""
        while self._queue and self._queue[0][0] <= now:
            until, home, rows = heappop(self._queue)
            self._rows[home] -= rows
            self._ends[home] -= rows * (until - self._start)
        passed, count = now - self._start, len(self._rows)

        def load(home: int) -> float:
            left = (self._ends[home] - self._rows[home] * passed) / self._kept
            return round(left + self._lasting[home], 6)

        return min(range(count), key=lambda home: (load(home), (home - last - 1) % count))
