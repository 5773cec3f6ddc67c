"""Costly predicates: asked once for each combination of the rows they read, a cache-full at a time.

What is correct: what a predicate says of a pair depends on the rows that it reads, and on nothing else. A
partial (a, b) that looks for c by a predicate on b and c repeats the question of every other a with that b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weir.expr.evaluate import holds
from weir.expr.nodes import Expr, streams_of
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Group, Partial, Picks, Rows
from weir.kernel.row_ids import partial_at, places
from weir.kernel.slice import Slice

# What a predicate reads at a time: values and its own intermediate ones should stay in the cache. With images
# of 60 kB a pair takes five times as long when gathered by the hundreds of megabytes.
_BYTES = 1 << 21
# How many times as many numbers as values a table may have that is looked up instead of sorting.
_SPARSE = 16


def in_order(exprs: Sequence[Expr], partial: Partial) -> Partial:
    """The partials sorted by the rows that the predicates read, so that equal questions come together."""
    read = _read(exprs, partial)
    if len(read) == len(partial.groups):
        return partial
    return partial.pick(np.argsort(_combinations(read, partial.rows), kind="stable"))


def holds_for(expr: Expr, partial: Partial, driver: Picks, partner: Rows) -> Bools:
    """Where a costly predicate is true, for pairs of a partial's row and the partner's row of that number."""
    read = _read([expr], partial)
    used, which = _distinct(driver, partial.rows)
    slices, numbers, rows = partner.places()
    if len(read) == len(partial.groups):
        return _answers(expr, partial.pick(driver[used]), which, slices, numbers, rows)
    codes = _combinations([group.pick(driver[used]) for group in read], len(used))
    first, number = _distinct(codes, int(codes.max()) + 1)
    probes = Partial(tuple(group.pick(driver[used][first]) for group in read), len(first))
    which = number[which]
    starts = np.cumsum([0, *(one.rows for one in slices)])
    # Sorted by the partner's row, so that those asked together lie in few slices.
    pair = (starts[numbers] + rows) * probes.rows + which
    once, back = _distinct(pair, int(starts[-1]) * probes.rows)
    return _answers(expr, probes, which[once], slices, numbers[once], rows[once])[back]


def _read(exprs: Sequence[Expr], partial: Partial) -> list[Group]:
    """The groups of a partial that some of the predicates read."""
    streams = frozenset().union(*map(streams_of, exprs))
    return [group for group in partial.groups if not streams.isdisjoint(group.layout.streams)]


def _combinations(groups: Sequence[Group], rows: int) -> Int64s:
    """A number for each row of a partial, the same for those that hold the same rows in these groups."""
    codes = np.zeros(rows, np.int64)
    for group in groups:
        slices, numbers, own = group.rows.places()
        starts = np.cumsum([0, *(one.rows for one in slices)])
        held = starts[numbers] + own
        held = held if group.picks is None else held[group.picks]
        _, codes = np.unique(codes * int(starts[-1]) + held, return_inverse=True)
    return codes


def _distinct(codes: npt.NDArray[np.int64], size: int) -> tuple[Picks, Picks]:
    """Of each code, which run from 0 to `size`, one place where it stands; and of each place its code's."""
    if size > _SPARSE * len(codes):
        _, first, back = np.unique(codes, return_index=True, return_inverse=True)
        return first, back
    place = np.full(size, -1, np.intp)
    place[codes] = np.arange(len(codes))
    known = np.flatnonzero(place >= 0)
    number = np.empty(size, np.intp)
    number[known] = np.arange(len(known))
    return place[known], number[codes]


def _answers(
    expr: Expr, probes: Partial, which: Picks, slices: Sequence[Slice], numbers: Int64s, rows: Int64s
) -> Bools:
    """The predicate on pairs of one of the probes and a row of a slice; slices stand in order."""
    compact = partial_at(places(probes)) if probes.groups else probes
    widest = compact.width + max(one.bytes / max(one.rows, 1) for one in slices)
    step = max(1, int(_BYTES / max(widest, 1.0)))
    found = np.empty(len(which), np.bool_)
    for first in range(0, len(which), step):
        some = slice(first, first + step)
        pairs = compact.joined(which[some], _rows(slices, numbers[some], rows[some]))
        found[some] = holds(expr, pairs.fetch, pairs.rows)
    return found


def _rows(slices: Sequence[Slice], numbers: Int64s, rows: Int64s) -> Rows:
    ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    parts = [
        (slices[numbers[first]], rows[first:last].astype(np.intp, copy=False))
        for first, last in zip([0, *ends[:-1]], ends, strict=True)
    ]
    return Rows(slices[0].layout, parts)
