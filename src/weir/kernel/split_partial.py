"""Split partials by the bytes of their values: rows may be wide (images, documents), and unequally so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from weir.expr.evaluate import evaluate_predicate
from weir.expr.nodes import Column, Expr, columns_of
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Group, Partial
from weir.kernel.quarantine import Quarantine, Rejection
from weir.kernel.row_ids import get_row_ids, partial_from_row_ids

# The most bytes of the values that are gathered at a time: many times what calls into Arrow cost, and little
# beside the memory of a process. Arrow could not put more than 2 GB of texts into one array.
BYTES = 1 << 26
# Of numbers and times, the only values whose width is the same for all.
_NUMBER_BYTES = 8


def split_by_bytes(partial: Partial, columns: Iterable[Column], row_bytes: int = 0) -> Iterator[Partial]:
    """Split a partial into pieces whose values of some columns have at most `BYTES`, or a single row.

    Each piece gathers no other rows than its own. Beside those values, a row may take `row_bytes`.
    """
    columns = set(columns)
    wide = [partial.locate(column) for column in columns if not pa.types.is_primitive(column.type)]
    numbers = row_bytes + _NUMBER_BYTES * (len(columns) - len(wide))
    most = partial.rows * (numbers + sum(group.rows.most_bytes(name) for group, name in wide))
    if most <= BYTES and not any(_gathers_more(group, name) for group, name in wide):
        yield partial
        return
    sizes = np.full(partial.rows, numbers, np.int64)
    for group, name in wide:
        sizes += group.value_bytes(name)
    row_ids = get_row_ids(partial)
    for first, last in pairwise(cut_by_bytes(sizes, BYTES)):
        piece = partial_from_row_ids(
            [(slices, at[first:last], rows[first:last]) for slices, at, rows in row_ids]
        )
        piece.weights = None if partial.weights is None else partial.weights[first:last]
        yield piece


def evaluate_by_bytes(
    expr: Expr, partial: Partial, among: Bools | None = None, quarantine: Quarantine | None = None
) -> Bools:
    """Tell for which rows a predicate holds; gather a bounded number of bytes at a time.

    With `among`, failures of other rows do not count.
    """
    among = np.ones(partial.rows, np.bool_) if among is None else among
    truth = []
    for piece in split_by_bytes(partial, columns_of(expr)):
        rejection = Rejection(piece, quarantine)
        truth.append(evaluate_predicate(expr, piece.fetch, piece.rows, among[: piece.rows], rejection))
        among = among[piece.rows :]
    return truth[0] if len(truth) == 1 else np.concatenate(truth)


def cut_by_bytes(sizes: Int64s, max_bytes: int) -> list[int]:
    """Return the edges of runs that have at most `max_bytes` each, or a single value.

    >>> cut_by_bytes(np.array([3, 3, 3, 20, 1, 1]), 6)
    [0, 2, 3, 4, 6]
    """
    ends = np.cumsum(sizes)
    edges = [0]
    while edges[-1] < len(sizes):
        done = int(ends[edges[-1] - 1]) if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(ends, done + max_bytes, "right"))))
    return edges


def _gathers_more(group: Group, name: str) -> bool:
    """True if the column of a group could be gathered only with too many values of other partials."""
    return group.picks is not None and group.rows.most_bytes_gathered(name) > BYTES
