"""Which row goes when: deltas one after the other, or interleaved row by row.

What is correct: rows of one rank belong to one stream, and of two rows of different streams one has the lower
rank, so that exactly one of them sees the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weir.order.pending import PendingRows
from weir.order.policies import DriverOrder, order

Int64s = NDArray[np.int64]


def ranks(wanted: DriverOrder, waiting: PendingRows, times: Mapping[str, Int64s]) -> dict[str, Int64s]:
    """The rank of every row of a batch, for the event times of each stream's rows.

    `timestamp` goes strictly by time, as an mjoin without batches does; `round-robin` takes the oldest row
    left of each stream in turn. Neighbours of one stream share a rank.

    >>> from weir.plan import join
    >>> waiting = Waiting(join("a", "b"), {"a": 3, "b": 1}, {})
    >>> found = ranks("timestamp", waiting, {"a": np.array([5, 1, 9]), "b": np.array([7])})
    >>> found["a"].tolist(), found["b"].tolist()
    ([0, 0, 2], [1])
    """
    if wanted == "timestamp":
        return _in_turn(times, list(times.values()))
    if wanted == "round-robin":
        # The n-th oldest row of each stream goes in round n.
        return _in_turn(times, [np.argsort(np.argsort(found, kind="stable")) for found in times.values()])
    listed = order(wanted, waiting) if isinstance(wanted, str) else wanted
    return {name: np.full(len(found), listed.index(name), np.int64) for name, found in times.items()}


def _in_turn(times: Mapping[str, Int64s], moments: list[Int64s]) -> dict[str, Int64s]:
    """Ranks of rows that go by (moment, stream)."""
    if not moments:
        return {}
    lengths = [len(found) for found in moments]
    streams = np.repeat(np.arange(len(lengths)), lengths)
    sequence = np.lexsort((streams, np.concatenate(moments)))
    changes = np.diff(streams[sequence], prepend=streams[sequence[:1]]) != 0
    found = np.empty(len(sequence), np.int64)
    found[sequence] = np.cumsum(changes)
    return dict(zip(times, np.split(found, np.cumsum(lengths)[:-1]), strict=True))
