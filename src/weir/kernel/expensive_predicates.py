"""Expensive predicates: evaluate once per combination of the rows that they read, a cache-full at a time.

A predicate depends on nothing but the rows it reads. Partials (a, b) that look for c by a predicate on b
and c repeat the evaluation for every a with the same b, so it is done once per pair (b, c).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from weir.expr.nodes import Expr, streams_of
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Group, Partial, Picks, Rows
from weir.kernel.quarantine import Quarantine
from weir.kernel.row_ids import RowIds, get_row_ids, partial_from_row_ids
from weir.kernel.slice import Slice
from weir.kernel.split_partial import evaluate_by_bytes

# Bytes read by one evaluation: inputs and intermediate values should stay in the cache. With images of 60 kB
# a pair takes five times as long when hundreds of megabytes are gathered at once.
_BYTES = 1 << 21
# Distinct numbers are found in a lookup table, unless it had this many times as many entries as numbers.
_SPARSE = 16


def sort_by_rows_read(exprs: Sequence[Expr], partial: Partial) -> Partial:
    """Sort partials by the rows that predicates read, so that repeated combinations are neighbours."""
    groups = _groups_read(exprs, partial)
    if len(groups) == len(partial.groups):
        return partial
    return partial.pick(np.argsort(_number_combinations(groups, partial.rows), kind="stable"))


def holds_for_pairs(
    expr: Expr, partial: Partial, driver: Picks, partner: Rows, quarantine: Quarantine | None = None
) -> Bools:
    """Evaluate a predicate on pairs of row `driver[i]` of a partial and row i of the partner."""
    groups = _groups_read([expr], partial)
    used, probe = _distinct(driver, partial.rows)
    if len(groups) == len(partial.groups):
        return _evaluate(expr, partial.pick(driver[used]), probe, partner.row_ids(), quarantine)
    slices, positions, rows = partner.row_ids()
    codes = _number_combinations([group.pick(driver[used]) for group in groups], len(used))
    first, number = _distinct(codes, int(codes.max()) + 1)
    probes = Partial(tuple(group.pick(driver[used][first]) for group in groups), len(first))
    probe = number[probe]
    starts = np.cumsum([0, *(s.rows for s in slices)])
    # Sorted by the partner's row, so that one evaluation reads few slices.
    pair = (starts[positions] + rows) * probes.rows + probe
    once, inverse = _distinct(pair, int(starts[-1]) * probes.rows)
    row_ids = (slices, positions[once], rows[once])
    return _evaluate(expr, probes, probe[once], row_ids, quarantine)[inverse]


def _groups_read(exprs: Sequence[Expr], partial: Partial) -> list[Group]:
    streams = frozenset().union(*map(streams_of, exprs))
    return [group for group in partial.groups if not streams.isdisjoint(group.schema.streams)]


def _number_combinations(groups: Sequence[Group], rows: int) -> Int64s:
    """Number the rows of a partial so that rows with the same rows in these groups have equal numbers."""
    codes = np.zeros(rows, np.int64)
    for group in groups:
        slices, positions, row_numbers = group.rows.row_ids()
        starts = np.cumsum([0, *(s.rows for s in slices)])
        stored = starts[positions] + row_numbers
        stored = stored if group.picks is None else stored[group.picks]
        _, codes = np.unique(codes * int(starts[-1]) + stored, return_inverse=True)
    return codes


def _distinct(codes: Int64s | Picks, size: int) -> tuple[Picks, Picks]:
    """Return one index of each distinct code below `size`, in code order, and the rank of each code."""
    if size > _SPARSE * len(codes):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return first, inverse
    index = np.full(size, -1, np.intp)
    index[codes] = np.arange(len(codes))
    present = np.flatnonzero(index >= 0)
    rank = np.empty(size, np.intp)
    rank[present] = np.arange(len(present))
    return index[present], rank[codes]


def _evaluate(
    expr: Expr, probes: Partial, probe: Picks, partner: RowIds, quarantine: Quarantine | None
) -> Bools:
    """Evaluate a predicate on pairs of row `probe[i]` of `probes` and row i of the partner."""
    slices, positions, rows = partner
    compact = partial_from_row_ids(get_row_ids(probes)) if probes.groups else probes
    pair_bytes = compact.row_bytes + max(s.row_bytes for s in slices)
    step = max(1, int(_BYTES / max(pair_bytes, 1.0)))
    truth = np.empty(len(probe), np.bool_)
    for first in range(0, len(probe), step):
        chunk = slice(first, first + step)
        pairs = compact.extend(probe[chunk], _make_rows(slices, positions[chunk], rows[chunk]))
        truth[chunk] = evaluate_by_bytes(expr, pairs, quarantine=quarantine)
    return truth


def _make_rows(slices: Sequence[Slice], positions: Int64s, rows: Int64s) -> Rows:
    edges = [0, *(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(positions)]
    parts = [
        (slices[positions[first]], rows[first:last].astype(np.intp, copy=False))
        for first, last in pairwise(edges)
    ]
    return Rows(slices[0].schema, parts)
