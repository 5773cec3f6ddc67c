"""How far apart the event times of a result may be: windows and time bounds as difference constraints.

Every constraint has the form `T_j - T_i <= c`: an edge from i to j of length c. The shortest path from i to j
is the tightest constraint that follows from all of them, and a cycle of negative length is a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir.errors import QueryError
from weir.query.predicate import TimeBound
from weir.query.windows import RowWindow, TimeWindow, Window, check_length
from weir.units import show_interval


@dataclass(frozen=True, slots=True)
class Bounds:
    """Closed constraints: `upper[i][j]` is the largest allowed `T_j - T_i` in µs, None where unbounded."""

    names: tuple[str, ...]
    upper: tuple[tuple[int | None, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.names)
        if len(self.upper) != size or any(len(row) != size for row in self.upper):
            raise ValueError(f"bounds of {size} streams need {size} rows and columns")
        if any(self.upper[i][i] != 0 for i in range(size)):
            raise ValueError("a row is at distance zero from itself")

    def retention(self, i: int) -> int | None:
        """The strict upper bound on `T_j - T_i` over all other j; None if some j may come any time later.

        Not positive: a row of i is never earlier than a partner. It is stored all the same while the
        watermark is below its time plus this, because the partner, though earlier, may come after it.
        """
        row = [bound for j, bound in enumerate(self.upper[i]) if j != i]
        finite = [bound for bound in row if bound is not None]
        return max(finite) + 1 if len(finite) == len(row) else None


def closure(names: Sequence[str], windows: Sequence[Window | None], bounds: Iterable[TimeBound]) -> Bounds:
    """The tightest bounds that follow, or the error that names who contradicts whom or who is left unbounded.

    >>> closed = closure(["a", "b", "c"], [None] * 3, [
    ...     TimeBound("a", "b", 5), TimeBound("b", "a", 0), TimeBound("b", "c", 2), TimeBound("c", "b", 0)])
    >>> [closed.retention(i) for i in range(3)]
    [8, 3, 1]
    """
    closed = tightest(names, windows, bounds)
    for i, name in enumerate(names):
        if closed.retention(i) is None and not isinstance(windows[i], RowWindow):
            raise _unbounded(closed, i, name)
        _check_reach(closed, i)
    return closed


def _check_reach(closed: Bounds, i: int) -> None:
    """Bounds that are each short enough may add up to one that is not."""
    for j, bound in enumerate(closed.upper[i]):
        if bound is not None:
            said = f"{closed.names[j]} - {closed.names[i]} <= {show_interval(bound)}"
            check_length(bound, f"what the time bounds add up to, {said},")


def tightest(names: Sequence[str], windows: Sequence[Window | None], bounds: Iterable[TimeBound]) -> Bounds:
    """The shortest paths over the constraints of windows and bounds, unbounded where there is none."""
    upper = _edges(names, windows, bounds)
    cycle = _negative_cycle(upper)
    if cycle:
        raise _contradiction(names, upper, cycle)
    everyone = range(len(names))
    for k in everyone:
        for i in everyone:
            for j in everyone:
                upper[i][j] = _shorter(upper[i][j], _sum(upper[i][k], upper[k][j]))
    return Bounds(tuple(names), tuple(map(tuple, upper)))


def _edges(
    names: Sequence[str], windows: Sequence[Window | None], bounds: Iterable[TimeBound]
) -> list[list[int | None]]:
    reach = [window.microseconds - 1 if isinstance(window, TimeWindow) else None for window in windows]
    everyone = range(len(names))
    upper = [[0 if i == j else reach[i] for j in everyone] for i in everyone]
    for bound in bounds:
        i, j = names.index(bound.earlier), names.index(bound.later)
        upper[i][j] = _shorter(upper[i][j], bound.microseconds)
    return upper


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _shorter(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else min(left, right)


def _negative_cycle(upper: list[list[int | None]]) -> list[int]:
    """Bellman and Ford, from distance zero to all: what still shrinks after n rounds hangs on a cycle."""
    size = len(upper)
    distance, before, shrunk = [0] * size, [0] * size, -1
    for _ in range(size + 1):
        shrunk = -1
        for i in range(size):
            for j in range(size):
                through = _sum(distance[i], upper[i][j])
                if through is not None and through < distance[j]:
                    distance[j], before[j], shrunk = through, i, j
        if shrunk < 0:
            return []
    return _cycle_before(before, shrunk)


def _cycle_before(before: list[int], start: int) -> list[int]:
    for _ in before:
        start = before[start]
    cycle = [start]
    while before[cycle[-1]] != start:
        cycle.append(before[cycle[-1]])
    return cycle[::-1]


def _contradiction(names: Sequence[str], upper: list[list[int | None]], cycle: list[int]) -> QueryError:
    steps = zip(cycle, cycle[1:] + cycle[:1], strict=True)
    said = [str(TimeBound(names[i], names[j], upper[i][j] or 0)) for i, j in steps]
    streams = ", ".join(f"'{name}'" for name in names if names.index(name) in cycle)
    return QueryError(
        f"the time bounds of {streams} contradict each other, so no rows could ever join: "
        f"{' and '.join(said)}"
    )


def _unbounded(closed: Bounds, i: int, name: str) -> QueryError:
    free = ", ".join(f"'{closed.names[j]}'" for j, bound in enumerate(closed.upper[i]) if bound is None)
    return QueryError(
        f"stream '{name}' is unbounded: nothing says how much later a row of {free} may be, so its rows "
        f"would be kept for ever; give '{name}' a window (within=) or add a time bound to the condition"
    )
