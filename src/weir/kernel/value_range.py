"""Value ranges: find the rows whose value satisfies comparisons and bands against the driver's values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Expr
from weir.kernel.index import to_sortable
from weir.kernel.keys import Bools, Int64s
from weir.kernel.partial import Partial
from weir.query.predicate import Band, Comparison

Ranges = tuple[Int64s, Int64s]
Numbers = npt.NDArray[Any]
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_MIRROR: dict[str, Literal["<", "<=", ">", ">="]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on the partner's value: `value op probe` or, for a band, within `width` of the probe.

    The width of a band is in units of the sorted numbers, and whole if they are. `bits` is the size of the
    type if the difference of two values can wrap around.
    """

    op: Literal["<", "<=", ">", ">=", "band"]
    probe: Expr
    width: float = 0.0
    bits: int | None = None

    @staticmethod
    def of(conjunct: Comparison | Band, probe: Expr, value: Expr) -> Limit:
        """Return the bound that a conjunct sets on the partner's `value`."""
        if isinstance(conjunct, Comparison):
            return Limit(conjunct.op if conjunct.left == value else _MIRROR[conjunct.op], probe)
        if pa.types.is_floating(value.type):
            return Limit("band", probe, float(conjunct.width.value))
        scale = value.type.scale if pa.types.is_decimal(value.type) else 0
        width = min(int(Fraction(conjunct.width.value) * 10**scale), _INT64_MAX)
        return Limit("band", probe, width, value.type.bit_width if pa.types.is_integer(value.type) else None)


class ValueProbe:
    """The driver's side of some limits, computed once for a partial and searched in every slice."""

    def __init__(self, limits: tuple[Limit, ...], partial: Partial) -> None:
        self._limits = [
            (limit, *to_sortable(evaluate(limit.probe, partial.fetch, partial.rows))) for limit in limits
        ]

    def search(self, values: Numbers, run: slice) -> Ranges:
        """Return, per driver row of a run, the range of positions in sorted values within all limits."""
        rows = run.stop - run.start
        low, high = np.zeros(rows, np.int64), np.full(rows, len(values), np.int64)
        for limit, numbers, valid in self._limits:
            first, last = _search_limit(limit, numbers[run], values)
            low = low if first is None else np.maximum(low, first)
            high = high if last is None else np.minimum(high, last)
            if valid is not None:
                high = np.where(valid[run], high, 0)
        return low, np.maximum(low, high)


def _search_limit(limit: Limit, numbers: Numbers, values: Numbers) -> tuple[Int64s | None, Int64s | None]:
    if limit.op == "band":
        return _search_band(limit, numbers, values)
    end = np.searchsorted(values, numbers, "left" if limit.op in ("<", ">=") else "right")
    return (None, end) if limit.op in ("<", "<=") else (end, None)


def _search_band(limit: Limit, numbers: Numbers, values: Numbers) -> Ranges:
    if values.dtype.kind == "i":
        width = int(limit.width)
        least, most = np.maximum(numbers, _INT64_MIN + width), np.minimum(numbers, _INT64_MAX - width)
        least, most = least - width, most + width
    else:
        least, most = _float_band(numbers, limit.width, values.dtype)
    first, last = np.searchsorted(values, least, "left"), np.searchsorted(values, most, "right")
    wraps = _may_wrap(limit, numbers, values)
    return (first, last) if wraps is None else (np.where(wraps, 0, first), np.where(wraps, len(values), last))


def _may_wrap(limit: Limit, numbers: Numbers, values: Numbers) -> Bools | None:
    """Tell which rows of the driver may differ from a value by more than the type holds (None: no row).

    Expressions wrap around there, and no range of values says which pairs fit.
    """
    if limit.bits is None or not len(numbers) or not len(values):
        return None
    widest = 2 ** (limit.bits - 1) - 1
    least, most = int(values[-1]) - widest, int(values[0]) + widest
    if least <= int(numbers.min()) and int(numbers.max()) <= most:
        return None
    return np.asarray((numbers < max(least, _INT64_MIN)) | (numbers > min(most, _INT64_MAX)))


def _float_band(numbers: Numbers, width: float, kind: np.dtype[Any]) -> tuple[Numbers, Numbers]:
    """Return the ends of the band, slightly widened: rounding must not lose a match."""
    centre = numbers.astype(np.float64, copy=False)
    relative = 1e-6 if kind == np.float32 else 1e-14
    with np.errstate(over="ignore"):  # an end beyond the largest number is infinite, as it should be
        slack = (np.abs(np.where(np.isfinite(centre), centre, 0)) + width) * relative
        return centre - width - slack, centre + width + slack
