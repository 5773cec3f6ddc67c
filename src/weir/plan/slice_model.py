"""Model of how the kernel stores a state in slices.

A state is cut by the lead time of its first stream, at edges of a grid of cells, into slices of a number of
rows: a dense state has one slice per cell, a sparse one few slices over many cells. A slice expires when its
last row is dead; one over many cells is rewritten without its dead rows once they are many. Rows that
complete a combination may lead in any slice that is still alive:

    lead time  ──┬─ dead ─┬────────┬────────┬────────┬── now
                 └ kept ──┘        new rows fall into each of these, and it is rewritten
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.stats.join_graph import JoinGraph

Floats = NDArray[np.float64]

# The share of dead rows at which the kernel rewrites a slice.
_DEAD_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class SliceModel:
    """One state: new slices per batch, slices visited by a probe, rows stored, rows rewritten per second."""

    new_slices: float
    visited_slices: float
    stored_rows: float
    rewritten_rows: float


def model_state(graph: JoinGraph, streams: tuple[str, ...], rows: float) -> SliceModel:
    """Model a state over some streams, the lead first, of which so many rows are alive.

    Without cells a state is what the papers take it for: alive rows, and nothing else.
    """
    if not graph.basic:
        return SliceModel(1.0, graph.slices, rows, 0.0)
    lead, *others = streams
    completed = [rows / graph.window_seconds(other) * graph.batch for other in others]
    figures = _model(graph, graph.window_seconds(lead), graph.basic[lead], rows, completed, bool(others))
    return SliceModel(*map(float, figures))


def model_all_states(graph: JoinGraph, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Model all sets of streams at once, each led by its first: new slices, visited and rewritten.

    Arrays are indexed by bit mask; `rows` has the alive rows of each set.
    """
    if not graph.basic:
        return np.ones(len(rows)), np.full(len(rows), graph.slices), np.zeros(len(rows))
    windows = np.array([graph.window_seconds(name) for name in graph.streams])
    basic = np.array([graph.basic[name] for name in graph.streams])
    masks = np.arange(len(rows))
    # The empty set is led by the first stream, and stores nothing.
    low = np.where(masks, masks & -masks, 1)
    lead, others = np.bitwise_count(low - 1), masks & ~low
    completed = [np.where(others >> i & 1, rows / w * graph.batch, 0.0) for i, w in enumerate(windows)]
    new_slices, visited, _, rewritten = _model(graph, windows[lead], basic[lead], rows, completed, others > 0)
    return new_slices, visited, rewritten


def _model(
    graph: JoinGraph, window: Any, basic: Any, rows: Any, completed: Sequence[Any], has_others: Any
) -> tuple[Any, Any, Any, Any]:
    """The figures of `SliceModel`, for one state or for arrays of them.

    `window` and `basic` are those of the lead; `completed` are the rows per batch that each other stream
    completes.
    """
    batch = graph.batch
    # A slice covers a cell, or as much time as it takes to fill one.
    length = np.maximum(basic, graph.slice_rows * window / np.maximum(rows, 1.0))
    cells = window / length + 1
    new_rows = rows / window * batch
    new_slices = _occupied(batch / length + 1, new_rows)
    for more in completed:
        parts = np.minimum(cells + batch / length, 1 + more / graph.slice_rows)
        new_slices = new_slices + _occupied(parts, more)
        new_rows = new_rows + more
    # Of one stream, slices within a cell expire as a whole; longer ones are rewritten without dead rows.
    grace = np.where(length > basic, _dead_seconds(np.minimum(length, window), batch), basic / 2)
    lifetime = rows * batch / np.maximum(new_rows, 1e-300)
    grace = np.where(has_others, _dead_seconds_of_combinations(lifetime, batch), grace) + graph.lag
    # As many rows die as are new.
    stored = rows + new_rows / batch * grace
    # Of one stream, only the slice that is still filling is merged, like a binary counter; of several
    # streams, every slice that new rows fall into.
    rewrites = np.minimum(1.0, length / batch) + np.maximum(0.0, np.log2(length / batch))
    merged = stored / batch * -np.expm1(-new_rows / cells)
    rewritten = np.where(has_others, merged, rows / window * rewrites)
    # Of the slices of its own batch, a row sees those of lower ranks: half of them.
    return new_slices, _occupied(cells, stored) + new_slices / 2, stored, rewritten


def _dead_seconds(live: Any, batch: float) -> Any:
    """How many seconds of dead rows a state keeps on average: slices with `_DEAD_SHARE` are rewritten.

    Rows die batch by batch, and are dropped at the start of the batch after that which reaches the share.
    """
    return batch * np.ceil(live * _DEAD_SHARE / (1 - _DEAD_SHARE) / batch) / 2


def _dead_seconds_of_combinations(lifetime: Any, batch: float) -> Any:
    """The same for a state of several streams, whose rows live for `lifetime` seconds on average.

    New rows fall into all slices, so that these are merged in almost every batch: but for the rows that died
    in the last batch, dead ones are dropped as soon as they are many. Old slices reach that share at once.
    """
    return (batch + np.maximum(batch, lifetime * _DEAD_SHARE / (1 - _DEAD_SHARE))) / 2


def _occupied(cells: Any, rows: Any) -> Any:
    """How many of these cells get a row, if rows fall into them at random."""
    return cells * -np.expm1(-rows / cells)
