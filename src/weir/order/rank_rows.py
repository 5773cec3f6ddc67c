"""Rank the rows of a batch by the driver order.

Rows of one rank belong to one stream, and of two rows of different streams one has the lower rank, so that
exactly one of them sees the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from weir.order.pending import Int64s, PendingRows
from weir.order.policies import DriverOrder, apply_policy


def rank_rows(order: DriverOrder, pending: PendingRows, times: Mapping[str, Int64s]) -> dict[str, Int64s]:
    """Return the rank of every row of a batch, given the event times of each stream's rows.

    >>> from weir.plan.tree import join
    >>> pending = PendingRows(join("a", "b"), {"a": 3, "b": 1}, {})
    >>> by_stream = rank_rows("timestamp", pending, {"a": np.array([5, 1, 9]), "b": np.array([7])})
    >>> by_stream["a"].tolist(), by_stream["b"].tolist()
    ([0, 0, 2], [1])
    """
    if isinstance(order, str):
        chosen = apply_policy(order, replace(pending, times=times))
        if isinstance(chosen, dict):
            return chosen
        order = chosen
    return {name: np.full(len(rows), order.index(name), np.int64) for name, rows in times.items()}
