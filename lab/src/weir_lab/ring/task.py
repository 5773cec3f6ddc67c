"""The join that the nodes share: its rows, its windows, and who is probed in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.errors import QueryError
from weir_lab.ring.matching import Matching


@dataclass(frozen=True, slots=True)
class Task:
    """A join of streams 0..m-1: a window in seconds for each, and whom each stream's rows probe in turn."""

    windows: tuple[float, ...]
    orders: tuple[tuple[int, ...], ...]
    matching: Matching

    def __post_init__(self) -> None:
        if len(self.windows) < 2:
            raise QueryError(f"a join needs at least two streams; got {len(self.windows)}")
        if not all(window > 0 for window in self.windows):
            raise QueryError(f"every window must be longer than zero; got {list(self.windows)}")
        for stream, order in enumerate(self.orders):
            others = set(range(self.streams)) - {stream}
            if len(order) != len(others) or set(order) != others:
                raise QueryError(
                    f"rows of stream {stream} must probe every other stream once; got {list(order)}"
                )

    @property
    def streams(self) -> int:
        """M, the number of streams."""
        return len(self.windows)


def cyclic_orders(streams: int) -> tuple[tuple[int, ...], ...]:
    """Each stream probes the next ones in turn.

    >>> cyclic_orders(3)
    ((1, 2), (2, 0), (0, 1))
    """
    return tuple(tuple((driver + k) % streams for k in range(1, streams)) for driver in range(streams))


def even_ends(windows: Sequence[float], nodes: int) -> tuple[tuple[float, ...], ...]:
    """For each stream the age at which a row leaves each node of a ring, slices of equal length.

    >>> even_ends([10.0], 4)
    ((2.5, 5.0, 7.5, 10.0),)
    """
    return tuple((*(window * place / nodes for place in range(1, nodes)), window) for window in windows)
