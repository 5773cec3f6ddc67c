"""Windows, time bounds, and how far apart the event times of a result's rows may be by both of them.

Every constraint has the form `T_j - T_i <= c`, an edge from i to j of length c. The shortest path from i to j
is the tightest constraint that follows from all of them; a cycle of negative length is a contradiction.

    b - a <= 5, c - b <= 2      a ──5──▶ b ──2──▶ c      so c - a <= 7, and a row of a is kept for 8 µs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from weir.errors import QueryError
from weir.units import format_interval

# Times and lengths are int64; below this, a time and a few lengths can be added without overflow.
MAX_LENGTH = 2**61
_DAY = 86_400_000_000


def check_length(microseconds: int, what: str) -> None:
    """Raise for a length of time that could overflow when it is added to a time."""
    if abs(microseconds) >= MAX_LENGTH:
        raise QueryError(f"{what} is too long; it must be shorter than {MAX_LENGTH // _DAY} days")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """How long a row stays joinable after its event time.

    >>> str(TimeWindow(600_000_000))
    '10 minutes'
    """

    microseconds: int

    def __post_init__(self) -> None:
        if self.microseconds <= 0:
            raise QueryError(f"a window must be longer than zero, or no row could ever join; got {self}")
        check_length(self.microseconds, f"a length of {self}")

    def __str__(self) -> str:
        return format_interval(self.microseconds)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """How many of its own stream's latest rows stay joinable."""

    rows: int

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int):
            raise QueryError(f"a row window is a whole number of rows; got {self.rows!r}")
        if self.rows <= 0:
            raise QueryError(f"a window must hold at least one row, or no row could ever join; got {self}")
        if self.rows >= MAX_LENGTH:
            raise QueryError(f"a window must hold fewer than {MAX_LENGTH} rows; got {self}")

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows != 1)}"


Window = TimeWindow | RowWindow
Windows = Sequence[Window | None]


def rows(count: int) -> RowWindow:
    """Return a window of the last `count` rows.

    >>> str(rows(1000))
    '1000 rows'
    """
    return RowWindow(count)


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`T_later - T_earlier <= microseconds`; the bound may be negative.

    >>> str(TimeBound("a", "b", 5_000_000)), str(TimeBound("a", "b", 4_999_999))
    ('b - a <= 5 seconds', 'b - a < 5 seconds')
    """

    earlier: str
    later: str
    microseconds: int

    def __post_init__(self) -> None:
        if self.earlier == self.later:
            raise ValueError(f"a time bound needs two different streams; got '{self.later}' twice")
        check_length(self.microseconds, f"the time bound {self}")

    @property
    def streams(self) -> frozenset[str]:
        """The two streams that it connects."""
        return frozenset([self.earlier, self.later])

    def __str__(self) -> str:
        limit, below = format_interval(self.microseconds), format_interval(self.microseconds + 1)
        bound = f"<= {limit}" if len(limit) <= len(below) else f"< {below}"
        return f"{self.later} - {self.earlier} {bound}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """A closed difference-bound matrix: `upper[i][j]` is the maximum of `T_j - T_i` in µs, None for none."""

    names: tuple[str, ...]
    upper: tuple[tuple[int | None, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.names)
        if len(self.upper) != size or any(len(row) != size for row in self.upper):
            raise ValueError(f"bounds of {size} streams need {size} rows and columns")
        if any(self.upper[i][i] != 0 for i in range(size)):
            raise ValueError("a row is at distance zero from itself")

    def retention(self, i: int) -> int | None:
        """Return the strict upper bound on `T_j - T_i` over all other j; None if one of them is unbounded.

        If it is not positive, a row of i is never earlier than its partners. It is still stored while the
        watermark is below its time plus the retention, because an earlier partner may arrive after it.
        """
        uppers = [bound for j, bound in enumerate(self.upper[i]) if j != i]
        return None if None in uppers else max(bound for bound in uppers if bound is not None) + 1


def close_bounds(names: Sequence[str], windows: Windows, bounds: Iterable[TimeBound]) -> Bounds:
    """Tighten the bounds, and raise if streams contradict each other or a stream is unbounded.

    >>> closed = close_bounds(["a", "b", "c"], [None] * 3, [
    ...     TimeBound("a", "b", 5), TimeBound("b", "a", 0), TimeBound("b", "c", 2), TimeBound("c", "b", 0)])
    >>> [closed.retention(i) for i in range(3)]
    [8, 3, 1]
    """
    closed = tighten(names, windows, bounds)
    for i, name in enumerate(names):
        if closed.retention(i) is None and not isinstance(windows[i], RowWindow):
            raise _unbounded(closed, i, name)
        for other, bound in zip(names, closed.upper[i], strict=True):
            if bound is not None:  # bounds that are short enough may add up to one that is too long
                total = f"{other} - {name} <= {format_interval(bound)}"
                check_length(bound, f"the sum of the time bounds, {total},")
    return closed


def tighten(names: Sequence[str], windows: Windows, bounds: Iterable[TimeBound]) -> Bounds:
    """Compute the shortest paths over the constraints of windows and bounds (Floyd and Warshall)."""
    upper = _edges(names, windows, bounds)
    if cycle := _negative_cycle(upper):
        raise _contradiction(names, upper, cycle)
    for k, i, j in product(range(len(names)), repeat=3):
        upper[i][j] = min(upper[i][j], upper[i][k] + upper[k][j])
    rows = ((None if length == inf else int(length) for length in row) for row in upper)
    return Bounds(tuple(names), tuple(map(tuple, rows)))


def _edges(names: Sequence[str], windows: Windows, bounds: Iterable[TimeBound]) -> list[list[float]]:
    """Return the length of each edge in whole microseconds, infinite where there is none."""
    lengths = [window.microseconds - 1 if isinstance(window, TimeWindow) else inf for window in windows]
    upper = [[0 if i == j else length for j in range(len(names))] for i, length in enumerate(lengths)]
    for bound in bounds:
        i, j = names.index(bound.earlier), names.index(bound.later)
        upper[i][j] = min(upper[i][j], bound.microseconds)
    return upper


def _negative_cycle(upper: list[list[float]]) -> list[int]:
    """Find a negative cycle (Bellman and Ford): a distance that still shrinks after n rounds leads to one."""
    size = len(upper)
    distance: list[float] = [0] * size
    predecessor, shrunk = [0] * size, -1
    for _ in range(size + 1):
        shrunk = -1
        for i, j in product(range(size), repeat=2):
            if distance[i] + upper[i][j] < distance[j]:
                distance[j], predecessor[j], shrunk = distance[i] + upper[i][j], i, j
        if shrunk < 0:
            return []
    return _follow_cycle(predecessor, shrunk)


def _follow_cycle(predecessor: list[int], start: int) -> list[int]:
    for _ in predecessor:  # after n steps back, the node is on the cycle
        start = predecessor[start]
    cycle = [start]
    while predecessor[cycle[-1]] != start:
        cycle.append(predecessor[cycle[-1]])
    return cycle[::-1]


def _contradiction(names: Sequence[str], upper: list[list[float]], cycle: list[int]) -> QueryError:
    steps = zip(cycle, cycle[1:] + cycle[:1], strict=True)
    bounds = " and ".join(str(TimeBound(names[i], names[j], int(upper[i][j]))) for i, j in steps)
    streams = ", ".join(f"'{name}'" for name in names if names.index(name) in cycle)
    return QueryError(
        f"the time bounds of {streams} contradict each other, so no rows could ever join: {bounds}"
    )


def _unbounded(closed: Bounds, i: int, name: str) -> QueryError:
    free = ", ".join(f"'{closed.names[j]}'" for j, bound in enumerate(closed.upper[i]) if bound is None)
    return QueryError(
        f"stream '{name}' is unbounded: nothing says how much later a row of {free} may be, so its rows "
        f"would be kept for ever; give '{name}' a window (within=, in SQL WINDOW) or add a time bound to the "
        "condition"
    )
