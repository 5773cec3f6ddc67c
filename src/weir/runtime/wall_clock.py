"""The driver's wall clock. A batch reads it once, into its decision; tests put another in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import time_ns

WallClock = Callable[[], int]


def read_system_clock() -> int:
    """Return the system's time, in microseconds since 1970."""
    return time_ns() // 1000


_CLOCKS: list[WallClock] = [read_system_clock]


def read_wall_clock() -> int:
    """Return the time of day that batches are decided by, in microseconds since 1970."""
    return _CLOCKS[-1]()


@contextmanager
def use_wall_clock(clock: WallClock) -> Iterator[None]:
    """Let all queries of this process read another clock, for tests.

    >>> with use_wall_clock(lambda: 7):
    ...     read_wall_clock()
    7
    """
    _CLOCKS.append(clock)
    try:
        yield
    finally:
        _CLOCKS.remove(clock)
