"""Model of how the kernel stores a state in slices.

A state of one stream is cut into basic windows, a state of several by the basic windows of its first stream,
the *lead*. A slice expires when its last row is dead. Rows that complete a combination may lead in any basic
window that is still alive:

    lead time  ──┬─ dead ─┬────────┬────────┬────────┬── now
                 └ kept ──┘        new rows fall into each of these, and it is rewritten
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.stats.join_graph import JoinGraph

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SliceModel:
    """One state: new slices per batch, slices visited by a probe, rows stored, rows rewritten per second."""

    new_slices: float
    visited_slices: float
    stored_rows: float
    rewritten_rows: float


def model_state(graph: JoinGraph, streams: tuple[str, ...], rows: float) -> SliceModel:
    """Model a state over some streams, the lead first, of which so many rows are alive.

    Without basic windows a state is what the papers take it for: alive rows, and nothing else.
    """
    if not graph.basic:
        return SliceModel(1.0, graph.slices, rows, 0.0)
    lead, *others = streams
    window, basic, batch = graph.window_seconds(lead), graph.basic[lead], graph.batch
    grace = basic / 2 + graph.lag
    cells = window / basic + 1
    new_rows = rows / window * batch
    new_slices, stored = _occupied(batch / basic + 1, new_rows), rows * (1 + grace / window)
    for other in others:
        # When another stream's row completes a combination, the lead's row is half a window old on average;
        # any row of the slice that lives a whole window more keeps the slice.
        completed = rows / graph.window_seconds(other) * batch
        new_slices += _occupied(cells + batch / basic, completed)
        stored += completed / batch * (window / 2 + grace)
        new_rows += completed
    # Of one stream, only the basic window that is still filling is merged, like a binary counter; of
    # several streams, every basic window that new rows fall into.
    rewrites = min(1.0, basic / batch) + max(0.0, math.log2(basic / batch))
    rewritten = stored / batch * -math.expm1(-new_rows / cells) if others else rows / window * rewrites
    # Of the slices of its own batch, a row sees those of lower ranks: half of them.
    return SliceModel(new_slices, _occupied(cells, stored) + new_slices / 2, stored, rewritten)


def model_all_states(graph: JoinGraph, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Model all sets of streams at once, each led by its first: new slices, visited and rewritten.

    Arrays are indexed by bit mask; `rows` has the alive rows of each set.
    """
    if not graph.basic:
        return np.ones(len(rows)), np.full(len(rows), graph.slices), np.zeros(len(rows))
    windows = np.array([graph.window_seconds(name) for name in graph.streams])
    masks, batch = np.arange(len(rows)), graph.batch
    # The empty set is led by the first stream, and stores nothing.
    low = np.where(masks, masks & -masks, 1)
    lead = np.bitwise_count(low - 1)
    window, basic = windows[lead], np.array([graph.basic[name] for name in graph.streams])[lead]
    grace, cells = basic / 2 + graph.lag, window / basic + 1
    new_rows = rows / window * batch
    new_slices, stored = _occupied_all(batch / basic + 1, new_rows), rows * (1 + grace / window)
    for i, other in enumerate(windows):
        completed = np.where((masks & ~low) >> i & 1, rows / other * batch, 0.0)
        new_slices += _occupied_all(cells + batch / basic, completed)
        stored += completed / batch * (window / 2 + grace)
        new_rows += completed
    rewrites = np.minimum(1.0, basic / batch) + np.maximum(0.0, np.log2(basic / batch))
    alone = rows / window * rewrites
    rewritten = np.where(masks & ~low, stored / batch * -np.expm1(-new_rows / cells), alone)
    return new_slices, _occupied_all(cells, stored) + new_slices / 2, rewritten


def _occupied(cells: float, rows: float) -> float:
    """How many of these cells get a row, if rows fall into them at random."""
    return cells * -math.expm1(-rows / cells)


def _occupied_all(cells: Floats, rows: Floats) -> Floats:
    return cells * -np.expm1(-rows / cells)
