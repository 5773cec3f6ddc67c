"""Row ids: where the rows of a partial are stored; enough to send, concatenate or split it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.kernel.keys import Int64s
from weir.kernel.partial import Group, Partial, Rows
from weir.kernel.slice import Slice

# The rows of one group of a partial: slices and, for each row, the position of its slice and its row number.
RowIds = tuple[Sequence[Slice], Int64s, Int64s]


def get_row_ids(partial: Partial) -> list[RowIds]:
    """Return the row ids of each group of a partial."""
    row_ids: list[RowIds] = []
    for group in partial.groups:
        slices, positions, rows = group.rows.row_ids()
        if group.picks is not None:
            positions, rows = positions[group.picks], rows[group.picks]
        row_ids.append((slices, positions, rows))
    return row_ids


def partial_from_row_ids(row_ids: Sequence[RowIds]) -> Partial:
    """Return the partial with these row ids."""
    return Partial(tuple(_make_group(*ids) for ids in row_ids), len(row_ids[0][1]))


def concat_partials(partials: Sequence[Partial]) -> Partial:
    """Concatenate partials over the same states."""
    if len(partials) == 1:
        return partials[0]
    return partial_from_row_ids([_concat(ids) for ids in zip(*map(get_row_ids, partials), strict=True)])


def _concat(parts: Sequence[RowIds]) -> RowIds:
    """Concatenate row ids of one state; a slice that occurs in several parts is listed once."""
    position: dict[int, int] = {}
    slices: list[Slice] = []
    positions = []
    for part_slices, part_positions, _ in parts:
        for slice_ in part_slices:
            if id(slice_) not in position:
                position[id(slice_)] = len(slices)
                slices.append(slice_)
        positions.append(np.array([position[id(s)] for s in part_slices])[part_positions])
    return slices, np.concatenate(positions), np.concatenate([rows for _, _, rows in parts])


def _make_group(slices: Sequence[Slice], positions: Int64s, rows: Int64s) -> Group:
    if (positions[1:] >= positions[:-1]).all():
        return Group(_pick_rows(slices, positions, rows))
    order = np.argsort(positions, kind="stable")
    inverse = np.empty(len(order), np.intp)
    inverse[order] = np.arange(len(order))
    return Group(_pick_rows(slices, positions[order], rows[order]), inverse)


def _pick_rows(slices: Sequence[Slice], positions: Int64s, rows: Int64s) -> Rows:
    """Return rows whose slices come in the order of their positions."""
    edges = np.searchsorted(positions, np.arange(len(slices) + 1))
    parts = [
        (slice_, rows[first:last].astype(np.intp))
        for slice_, first, last in zip(slices, edges[:-1], edges[1:], strict=True)
        if last > first
    ]
    return Rows(slices[0].schema, parts)
