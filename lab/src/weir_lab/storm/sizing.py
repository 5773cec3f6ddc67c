"""Choose sizes for this machine: rows that are calm, and the share to drop so that a storm fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weir_lab.storm.schedule import FACTOR
from weir_lab.storm.setup import CPU

# What a batch takes without rows may be this share of an interval.
_FIXED = 0.35
# A storm asks for so many intervals of work.
_OVERLOAD = 2.5
_SHORTEST = 1.0
# How many times the rows that were measured may be taken for calm: beyond, nothing is known.
_FURTHER = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """The time of batches of so many rows a stream, with full windows."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """The trigger interval, the calm rows of a tick and stream, and the share to keep."""

    interval: float
    rows: int
    keep: float
    fixed: float
    calm_seconds: float
    storm_seconds: float

    def describe(self) -> str:
        """The sizes in a sentence."""
        return (
            f"a batch without rows takes {self.fixed:.2f} s here, so triggers are {self.interval:g} s "
            f"apart; {self.rows:,} rows a tick and stream are calm (about {self.calm_seconds:.2f} s), "
            f"{FACTOR} times as many would take {self.storm_seconds:.1f} s; of those, dropping rows keeps "
            f"{self.keep:.0%} of each stream"
        )


def choose_sizes(measured: Sequence[Measured]) -> Sizes:
    """Choose sizes by three measurements of a fixed cost, a cost per row and one per pair of rows."""
    fixed, by_row, by_pair = _fitted(measured)
    interval = max(_SHORTEST, math.ceil(2 * fixed / _FIXED) / 2)
    work = _OVERLOAD * interval
    most = _FURTHER * max(batch.rows for batch in measured)
    rows = min(most, max(100, round(_root(by_row, by_pair, work) / FACTOR)))
    left = max(CPU * interval - fixed, 0.05 * interval)
    keep = min(1.0, _root(by_row, by_pair, left) / (FACTOR * rows))

    def takes(count: float) -> float:
        return fixed + by_row * count + by_pair * count * count

    return Sizes(interval, rows, keep, fixed, takes(rows), takes(FACTOR * rows))


def _fitted(measured: Sequence[Measured]) -> tuple[float, float, float]:
    """Fit seconds per batch, per row and per pair of rows, none negative."""
    _, few, many = sorted(measured, key=lambda batch: batch.rows)
    # A machine that was busy meanwhile makes any of them too long.
    fixed = min(batch.seconds for batch in measured)
    each = [max(batch.seconds - fixed, 1e-3) / batch.rows for batch in (few, many)]
    by_pair = (each[1] - each[0]) / (many.rows - few.rows)
    by_row = each[0] - by_pair * few.rows
    if by_pair <= 0 or by_row < 0:
        # A machine that was busy in between: what most rows took counts.
        by_row, by_pair = 0.0, each[1] / many.rows
    return fixed, by_row, by_pair


def _root(by_row: float, by_pair: float, work: float) -> float:
    """Return how many rows take so much work."""
    return (math.sqrt(by_row**2 + 4 * by_pair * work) - by_row) / (2 * by_pair)
