"""Estimate how many stored rows a probe of a batch could reach: the denominator of a selectivity.

    stored rows  ───────────────────┤├── batch, L seconds ──┤
                      ├──────── window W ───────┤
                                     ├──── u ───┤ row

A row u seconds into the batch reaches stored rows of the last W - u seconds, and those rows of its own batch
that are ranked before it. Averaged over u, it reaches the share 1 - L/2W of stored rows if L <= W, else W/2L.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.adapt.average import Average
from weir.adapt.batch_report import BatchReport
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.stats.hop import Hop


def count_reachable_rows(query: Query, batch: BatchReport, hop: Hop) -> float:
    """Count the rows of the partner that a probe could reach, on average over the batch."""
    return _count_reachable(query, batch, hop.partner, _visible_share(hop, batch.order))


def measure_window_fill(query: Query, batch: BatchReport, rates: Mapping[str, Average]) -> float:
    """Return the reachable rows as a multiple of what the windows will hold at the current rates.

    It is above 1 after rates have fallen, as long as windows are full of earlier rows, and below 1 while
    windows fill up.
    """
    reachable = expected = 0.0
    for name in query.names:
        window, rate = _window_seconds(query, name), rates[name].value
        if window is not None and rate is not None:
            reachable += _count_reachable(query, batch, name, 0.5)
            expected += rate * window
    return reachable / expected if expected > 0 else 1.0


def _count_reachable(query: Query, batch: BatchReport, node: str, visible_share: float) -> float:
    """Count the reachable rows of a state, given the share of the batch's own rows that are visible."""
    stored, new = batch.held.get(node, 0), batch.rows.get(node, 0)
    window, length = _window_seconds(query, node), batch.span
    if window is None or not length:
        return stored + visible_share * new
    stored_share = 1 - length / (2 * window) if length <= window else window / (2 * length)
    new_share = 1.0 if length <= window else (2 * window * length - window * window) / (length * length)
    return stored * stored_share + visible_share * new * new_share


def _window_seconds(query: Query, node: str) -> float | None:
    """Return how long rows of a stream can be reached; None for intermediate states and row windows."""
    if node not in query.names:
        return None
    i = query.names.index(node)
    retention = query.bounds.retention(i)
    if isinstance(query.windows[i], RowWindow) or not retention or retention < 0:
        return None
    return retention / 1e6


def _visible_share(hop: Hop, order: tuple[str, ...] | None) -> float:
    """Return the share of the partner's new rows that a driver row sees; half if the order is not fixed."""
    if order is None or hop.driver not in order or hop.partner not in order:
        return 0.5
    return float(order.index(hop.partner) < order.index(hop.driver))
