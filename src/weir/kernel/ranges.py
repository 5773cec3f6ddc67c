"""Ranges of positions in an index: found by key and time, and expanded into pairs.

These two loops take most of the time of dense joins by key. NumPy runs them in several passes; with the extra
`weir-streams[fast]` Numba compiles each into one (`weir.kernel.compiled_ranges`), once a process has made so
many steps that it pays for the import, and in a thread of its own, so that no batch is charged for it. Both
forms return the same ranges, so that both count the same steps, and the same pairs in the same order.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from functools import cache
from importlib.util import find_spec
from threading import Thread
from types import ModuleType

import numpy as np
import numpy.typing as npt

from weir.kernel.index import KeyIndex
from weir.kernel.keys import Bools, Int64s

_LOG = logging.getLogger("weir")
Picks = npt.NDArray[np.intp]

# The import of Numba takes as long as some ten million steps in NumPy; to compile, once on a machine, ten
# times as long.
_WORTH_COMPILING = 1 << 25


class _Steps:
    """The steps that this process has made in NumPy."""

    made = 0


def find_ranges(
    index: KeyIndex, ranks: Int64s, present: Bools, low: Int64s | None, high: Int64s | None
) -> tuple[Int64s, Int64s]:
    """Return where the rows of each rank with times from `low` to `high` begin, and how many they are.

    A rank that is not present has no rows.
    """
    compiled = _compiled(len(ranks))
    if compiled is None:
        return _find_ranges(index, ranks, present, low, high)
    none = np.empty(0, np.int64)
    least = none if low is None else index.offset(low, "left")
    most = none if high is None else index.offset(high, "right")
    first, count = compiled.find_ranges(index.starts, index.codes, index.bits, ranks, present, least, most)
    return first, count


def expand(low: Int64s, count: Int64s, start: int, rows: Picks | None) -> tuple[Picks, Picks]:
    """List the pairs of all ranges: driver row `start + i` with `count[i]` positions from `low[i]` on.

    With `rows`, a pair has the row number that stands at the position, not the position itself.

    >>> expand(np.array([7, 3]), np.array([2, 1]), 10, None)
    (array([10, 10, 11]), array([7, 8, 3]))
    """
    compiled = _compiled(int(count.sum()))
    if compiled is None:
        return _expand(low, count, start, rows)
    driver, position = compiled.expand(low, count, start)
    return driver, position if rows is None else rows[position]


def use_compiled() -> None:
    """Wait for the compiled form and use it from now on: for measurements, which must not change midway."""
    _Steps.made = _WORTH_COMPILING
    _start_loading().result()


def _find_ranges(
    index: KeyIndex, ranks: Int64s, present: Bools, low: Int64s | None, high: Int64s | None
) -> tuple[Int64s, Int64s]:
    first, count = np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64)
    rows = np.flatnonzero(present)  # most keys are not in most slices
    if not len(rows):
        return first, count
    least, most = (None if bound is None else bound[rows] for bound in (low, high))
    begin, end = index.find_rows(ranks[rows], least, most)
    first[rows], count[rows] = begin, np.maximum(end - begin, 0)
    return first, count


def _expand(low: Int64s, count: Int64s, start: int, rows: Picks | None) -> tuple[Picks, Picks]:
    driver = np.repeat(np.arange(start, start + len(count)), count)
    position = np.repeat(low - (np.cumsum(count) - count), count)
    position += np.arange(len(position))
    return driver, position if rows is None else rows[position]


def _compiled(steps: int) -> ModuleType | None:
    """Return the compiled form if it pays and is loaded by now; count the steps until it pays."""
    if _Steps.made < _WORTH_COMPILING:
        _Steps.made += steps
        return None
    loading = _start_loading()
    return loading.result() if loading.done() else None


@cache
def _start_loading() -> Future[ModuleType | None]:
    """Load the compiled form in the background: some seconds, which a batch would count as its own work."""
    loading: Future[ModuleType | None] = Future()
    Thread(target=lambda: loading.set_result(_load()), name="weir-compile").start()
    return loading


def _load() -> ModuleType | None:
    """Import the compiled form; None if Numba is missing or does not work here, where NumPy goes on."""
    if find_spec("numba") is None:
        return None
    try:
        from numba import config

        from weir.kernel import compiled_ranges
    except Exception as error:  # it refuses versions of NumPy that it does not know, among others
        _LOG.warning("Numba is installed but does not work, so joins run without it: %s", error)
        return None
    return None if getattr(config, "DISABLE_JIT", False) else compiled_ranges
