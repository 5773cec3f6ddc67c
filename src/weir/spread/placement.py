"""Where the rows of a batch go, and how that changes while a query runs (004, section 6; DESIGN, section 9).

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
from heapq import heapify, heappop, heappush
from typing import Any

from weir.errors import QueryError
from weir.spread.hardware import check_nodes

# Slices of the shortest window that each partition holds at least, and usually: the more there are, the more
# evenly they can be given away.
_FEWEST, _USUAL = 4, 16
# The longest slice is this many times as long as the shortest: so far are counts levelled when rates change.
_FINEST = 16
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
        return self.spread in ("share", "psp")

    def home(self, time: int) -> int:
        """The partition of a time (µs).

        >>> Placement("psp", 3, cell=10, homes=(0, 0, 1, 2)).home(45)
        0
        """
        return self.homes[time // self.cell % len(self.homes)]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a decision."""
        return {
            "spread": self.spread,
            "partitions": self.partitions,
            "cell": self.cell,
            "homes": list(self.homes),
            "relocate": self.relocate,
        }

    @staticmethod
    def from_json(found: dict[str, Any]) -> Placement:
        """The placement of `to_json`."""
        return Placement(**{**found, "homes": tuple(found["homes"])})


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of a partition, and the time (µs) of the newest row by which they are dead; None: never."""

    home: int
    rows: int
    until: int | None


@dataclass(frozen=True, slots=True)
class Outlook:
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


def laid_out(before: Placement, held: Sequence[Held], outlook: Outlook) -> Placement:
    """The same with the cells beyond the newest row given away anew, each slice to who holds the fewest rows.

    A slice is as long as it takes for a usual slice's count of rows to come (004: workload smoothing), within
    the bounds above; partitions of equal load take turns. Loads are rows, those left out that will be dead.
    """
    count, ring = before.partitions, len(before.homes)
    first = outlook.newest // before.cell + 1
    known = min(ring // 2, max(1, first - outlook.oldest // before.cell))
    length = _slice_length(before, held, outlook)
    homes, loads = list(before.homes), _Loads(count, held)
    last = homes[(first - 1) % ring]
    for start in range(first, first + ring - known, length):
        cells = range(start, min(start + length, first + ring - known))
        loads.forget(start * before.cell)
        last = loads.least(last)
        loads.add(last, outlook.rate * len(cells) * before.cell, start * before.cell + outlook.kept)
        for cell in cells:
            homes[cell % ring] = last
    return replace(before, homes=tuple(homes))


def levelled(rows: Sequence[int], homes: Sequence[int], partitions: int) -> list[int]:
    """New homes for slices of so many rows, so that all partitions hold about as many; few have to move.

    >>> levelled([5, 5, 5, 5], [0, 0, 0, 0], partitions=2)
    [0, 0, 1, 1]
    """
    fair = sum(rows) / partitions
    loads = [0.0] * partitions
    found = list(homes)
    moving = []
    for one in sorted(range(len(rows)), key=lambda one: -rows[one]):
        home = homes[one]
        if home < partitions and loads[home] + rows[one] <= fair:
            loads[home] += rows[one]
        else:
            moving.append(one)
    for one in moving:
        found[one] = min(range(partitions), key=lambda home: (loads[home], home != homes[one]))
        loads[found[one]] += rows[one]
    return found


def _cells(partitions: int) -> int:
    """Cells of the shortest window; at least one for each partition, or some would have nothing to do."""
    return max(partitions, min(_FEWEST * _FINEST * partitions, _MOST_CELLS))


def _slice_length(before: Placement, held: Sequence[Held], outlook: Outlook) -> int:
    """Cells of a slice: its rows are the rows held over the usual slices in the time that they are kept."""
    cells = _cells(before.partitions)
    usual, longest = (max(1, cells // (slices * before.partitions)) for slices in (_USUAL, _FEWEST))
    rows = sum(one.rows for one in held)
    if not rows or outlook.rate <= 0:
        return usual
    share = rows * usual * before.cell / max(outlook.kept, before.cell)
    return max(1, min(longest, round(share / (outlook.rate * before.cell))))


class _Loads:
    """Rows of each partition, as time goes on."""

    def __init__(self, partitions: int, held: Sequence[Held]) -> None:
        self._rows = [0.0] * partitions
        here = [one for one in held if one.home < partitions]
        for one in here:
            self._rows[one.home] += one.rows
        self._ends = [(one.until, one.home, float(one.rows)) for one in here if one.until is not None]
        heapify(self._ends)

    def add(self, home: int, rows: float, until: int) -> None:
        self._rows[home] += rows
        heappush(self._ends, (until, home, rows))

    def forget(self, now: int) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, home, rows = heappop(self._ends)
            self._rows[home] -= rows

    def least(self, last: int) -> int:
        """The least loaded, of equals the next one after the last."""
        count = len(self._rows)
        return min(range(count), key=lambda home: (round(self._rows[home], 6), (home - last - 1) % count))
