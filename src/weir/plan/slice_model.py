"""How the kernel keeps a state: slices that come, that a probe visits, that are rewritten, what they hold.

A state of one stream is cut into basic windows, a state of several by the basic windows of its first stream,
the *lead*. A slice goes when its last row is dead, and rows that complete a join may lead in any basic window
that is still alive:

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
    """One state: slices a batch brings, slices a probe visits, rows kept, rows rewritten each second."""

    fresh: float
    visited: float
    kept: float
    rewritten: float


def slicing(graph: JoinGraph, streams: tuple[str, ...], rows: float) -> SliceModel:
    """Of a state over some streams, the lead first, of which so many rows are alive.

    Without basic windows, states are what papers take them for: alive rows, and nothing else.
    """
    if not graph.basic:
        return SliceModel(1.0, graph.slices, rows, 0.0)
    lead, *others = streams
    window, basic, batch = graph.window_seconds(lead), graph.basic[lead], graph.batch
    extra = basic / 2 + graph.lag
    cells = window / basic + 1
    born = rows / window * batch
    fresh, kept = _occupied(batch / basic + 1, born), rows * (1 + extra / window)
    for other in others:
        # Completed by a row of another stream, the lead's row is half a window old on average, and any row
        # of the slice that lives a whole window more keeps the slice.
        later = rows / graph.window_seconds(other) * batch
        fresh += _occupied(cells + batch / basic, later)
        kept += later / batch * (window / 2 + extra)
        born += later
    # Of one stream, only the basic window that is still filling is merged, like a binary counter; of
    # several, each one that new rows fall into.
    again = min(1.0, basic / batch) + max(0.0, math.log2(basic / batch))
    rewritten = kept / batch * -math.expm1(-born / cells) if others else rows / window * again
    # Of the slices of its own batch, a row sees those of lower ranks: half of them.
    return SliceModel(fresh, _occupied(cells, kept) + fresh / 2, kept, rewritten)


def slicings(graph: JoinGraph, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """The same of all sets of streams at once, which lead by their first: fresh, visited and rewritten.

    Sets are numbered by the bits of their streams; `rows` tells how many rows of each are alive.
    """
    if not graph.basic:
        return np.ones(len(rows)), np.full(len(rows), graph.slices), np.zeros(len(rows))
    windows = np.array([graph.window_seconds(name) for name in graph.streams])
    masks, batch = np.arange(len(rows)), graph.batch
    # The empty set is led by the first stream, and holds nothing.
    low = np.where(masks, masks & -masks, 1)
    lead = np.bitwise_count(low - 1)
    window, basic = windows[lead], np.array([graph.basic[name] for name in graph.streams])[lead]
    extra, cells = basic / 2 + graph.lag, window / basic + 1
    born = rows / window * batch
    fresh, kept = _spread(batch / basic + 1, born), rows * (1 + extra / window)
    for i, other in enumerate(windows):
        later = np.where((masks & ~low) >> i & 1, rows / other * batch, 0.0)
        fresh += _spread(cells + batch / basic, later)
        kept += later / batch * (window / 2 + extra)
        born += later
    again = np.minimum(1.0, basic / batch) + np.maximum(0.0, np.log2(basic / batch))
    alone = rows / window * again
    rewritten = np.where(masks & ~low, kept / batch * -np.expm1(-born / cells), alone)
    return fresh, _spread(cells, kept) + fresh / 2, rewritten


def _occupied(cells: float, rows: float) -> float:
    """How many of some cells get a row, if rows fall into them at random."""
    return cells * -math.expm1(-rows / cells)


def _spread(cells: Floats, rows: Floats) -> Floats:
    return cells * -np.expm1(-rows / cells)
