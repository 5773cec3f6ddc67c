"""How a hop finds its candidates: by key, by value, by vector, or by time alone.

Every way returns, per driver row, a range of positions in an index of the slice: a superset of the matches
that the slice holds. What the range does not decide exactly is left to the hop's residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.evaluate import evaluate
from weir.expr.nodes import Expr, streams_of
from weir.kernel.index import ByKey, ByTime, ByValue, Spec, is_searchable, searchable
from weir.kernel.keys import Bools, Int64s, encode
from weir.kernel.partial import Partial, Picks
from weir.kernel.slice import Slice
from weir.kernel.state_schema import StateSchema, member
from weir.query.predicate import AttributeClass, Band, Comparison, Conjunct, Cosine

Ranges = tuple[Int64s, Int64s]
Numbers = npt.NDArray[Any]
Matrix = npt.NDArray[np.float32]
_LEAST, _MOST = -(2**63), 2**63 - 1
_MIRROR: dict[str, Literal["<", "<=", ">", ">="]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class KeyAccess:
    """Rows whose class codes equal those of the driver; `probes` compute the code from the bound side."""

    classes: tuple[AttributeClass, ...]
    probes: tuple[Expr, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The stored code columns, in the order of the classes."""
        return tuple(f"{c.name}@key" for c in self.classes)

    @property
    def spec(self) -> Spec:
        """The index it searches."""
        return ByKey(self.names)

    def codes(self, partial: Partial) -> tuple[list[Int64s], Bools | None]:
        """The driver's codes per class, and which rows may match at all."""
        found, valid = [], None
        for name, c, probe in zip(self.names, self.classes, self.probes, strict=True):
            if partial.holder(name) is not None:
                found.append(partial.numbers(name))
                continue
            codes, known = encode(evaluate(probe, partial.fetch, partial.rows), c.domain, c.null_safe)
            found.append(codes)
            valid = known if valid is None or known is None else valid & known
        return found, valid

    def few_codes(self, partial: Partial) -> tuple[Int64s, Picks] | None:
        """The codes of the fewer rows that the partial's rows were made from, if one group holds them all."""
        holder = partial.holder(self.names[0]) if len(self.names) == 1 else None
        if holder is None or holder.picks is None or holder.rows.count >= partial.rows:
            return None
        return holder.rows.numbers(self.names[0]), holder.picks


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound on the partner's value: `value op probe`, or within `width` of it for a band.

    A band's width counts units of the numbers that are searched, and is whole where they are.
    """

    op: Literal["<", "<=", ">", ">=", "band"]
    probe: Expr
    width: float = 0.0
    bits: int | None = None

    def wraps(self, numbers: Numbers, values: Numbers) -> Bools | None:
        """Which rows of the driver may differ from a value by more than the type holds (None: no row).

        Expressions wrap around there, and no range of values says which pairs fit.
        """
        if self.bits is None or not len(numbers) or not len(values):
            return None
        widest = 2 ** (self.bits - 1) - 1
        least, most = int(values[-1]) - widest, int(values[0]) + widest
        if least <= int(numbers.min()) and int(numbers.max()) <= most:
            return None
        return np.asarray((numbers < max(least, _LEAST)) | (numbers > min(most, _MOST)))


@dataclass(frozen=True, slots=True)
class ValueAccess:
    """Rows whose value lies between limits that the driver sets."""

    value: Expr
    limits: tuple[Limit, ...]

    @property
    def spec(self) -> Spec:
        """The index it searches."""
        return ByValue(self.value)


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """Rows whose vector points the same way as the driver's; found by a matrix product."""

    probe: Expr
    value: Expr
    threshold: float

    @property
    def spec(self) -> Spec:
        """The index it searches."""
        return ByTime()


@dataclass(frozen=True, slots=True)
class TimeAccess:
    """Every row in the driver's time range."""

    @property
    def spec(self) -> Spec:
        """The index it searches."""
        return ByTime()


Access = KeyAccess | ValueAccess | VectorAccess | TimeAccess


def choose(
    classes: tuple[AttributeClass, ...],
    conjuncts: tuple[Conjunct, ...],
    bound: frozenset[str],
    partner: StateSchema,
) -> tuple[Access, frozenset[Conjunct]]:
    """The narrowest way into a partner, and the conjuncts it decides by itself."""
    usable = [(c, member(c, bound)) for c in classes if f"{c.name}@key" in partner.keys]
    keyed = [(c, probe) for c, probe in usable if probe is not None]
    if keyed:
        return KeyAccess(tuple(c for c, _ in keyed), tuple(probe for _, probe in keyed)), frozenset()
    ranges = _value_accesses(conjuncts, partner.streams)
    if ranges:
        return max(ranges, key=lambda found: _narrowness(found[0]))
    for conjunct in conjuncts:
        if isinstance(conjunct, Cosine):
            probe, value = _oriented(conjunct.left, conjunct.right, partner.streams)
            return VectorAccess(probe, value, conjunct.threshold), frozenset()
    return TimeAccess(), frozenset()


def _value_accesses(
    conjuncts: tuple[Conjunct, ...], partner: frozenset[str]
) -> list[tuple[ValueAccess, frozenset[Conjunct]]]:
    limits: dict[Expr, list[tuple[Limit, Conjunct]]] = {}
    for conjunct in conjuncts:
        if isinstance(conjunct, Comparison | Band) and _is_across(conjunct, partner):
            probe, value = _oriented(conjunct.left, conjunct.right, partner)
            limits.setdefault(value, []).append((_limit(conjunct, probe, value), conjunct))
    return [
        (
            ValueAccess(value, tuple(limit for limit, _ in found)),
            frozenset(conjunct for limit, conjunct in found if limit.op != "band"),
        )
        for value, found in limits.items()
    ]


def _is_across(conjunct: Comparison | Band, partner: frozenset[str]) -> bool:
    left, right = streams_of(conjunct.left), streams_of(conjunct.right)
    split = (left <= partner and not right & partner) or (right <= partner and not left & partner)
    same = conjunct.left.type == conjunct.right.type
    return split and same and all(is_searchable(side.type) for side in (conjunct.left, conjunct.right))


def _oriented(left: Expr, right: Expr, partner: frozenset[str]) -> tuple[Expr, Expr]:
    return (right, left) if streams_of(left) <= partner else (left, right)


def _limit(conjunct: Comparison | Band, probe: Expr, value: Expr) -> Limit:
    if isinstance(conjunct, Band):
        return _band_limit(conjunct, probe, value.type)
    return Limit(conjunct.op if conjunct.left == value else _MIRROR[conjunct.op], probe)


def _band_limit(band: Band, probe: Expr, kind: pa.DataType) -> Limit:
    if pa.types.is_floating(kind):
        return Limit("band", probe, float(band.width.value))
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    width = min(int(Fraction(band.width.value) * 10**scale), _MOST)
    return Limit("band", probe, width, kind.bit_width if pa.types.is_integer(kind) else None)


def _narrowness(access: ValueAccess) -> int:
    """Two-sided beats one-sided."""
    ops = {limit.op for limit in access.limits}
    return 2 if "band" in ops or (ops & {"<", "<="} and ops & {">", ">="}) else 1


def key_ranges(keys: npt.NDArray[np.int64], codes: Int64s, valid: Bools | None) -> Ranges:
    """The positions of each code in sorted keys."""
    low = np.searchsorted(keys, codes, "left")
    found = np.flatnonzero(keys[np.minimum(low, len(keys) - 1)] == codes)
    high = low.copy()
    high[found] = np.searchsorted(keys, codes[found], "right")  # most codes are not in most slices
    return low, high if valid is None else np.where(valid, high, low)


class ValueProbe:
    """The limits of a value access, computed once for a partial and searched in every slice."""

    def __init__(self, access: ValueAccess, partial: Partial) -> None:
        self._limits = [(limit, *_probe_numbers(limit, partial)) for limit in access.limits]

    def ranges(self, values: Numbers) -> Ranges:
        """The positions in sorted values that every limit allows."""
        rows = len(self._limits[0][1])
        low, high = np.zeros(rows, np.int64), np.full(rows, len(values), np.int64)
        for limit, numbers, valid in self._limits:
            if limit.op == "band":
                first, last = _band_ranges(limit, numbers, values)
                low, high = np.maximum(low, first), np.minimum(high, last)
            elif limit.op in ("<", "<="):
                high = np.minimum(
                    high, np.searchsorted(values, numbers, "left" if limit.op == "<" else "right")
                )
            else:
                low = np.maximum(
                    low, np.searchsorted(values, numbers, "right" if limit.op == ">" else "left")
                )
            if valid is not None:
                high = np.where(valid, high, 0)
        return low, np.maximum(low, high)


def _probe_numbers(limit: Limit, partial: Partial) -> tuple[Numbers, Bools | None]:
    return searchable(evaluate(limit.probe, partial.fetch, partial.rows))


def _band_ranges(limit: Limit, numbers: Numbers, values: Numbers) -> Ranges:
    ends = _band_of_whole_numbers if values.dtype.kind == "i" else _band_of_floats
    least, most = ends(numbers, limit.width, values.dtype)
    first, last = np.searchsorted(values, least, "left"), np.searchsorted(values, most, "right")
    wraps = limit.wraps(numbers, values)
    return (first, last) if wraps is None else (np.where(wraps, 0, first), np.where(wraps, len(values), last))


def _band_of_whole_numbers(numbers: Numbers, width: float, _: np.dtype[Any]) -> tuple[Numbers, Numbers]:
    """The band's ends, cut off where int64 ends."""
    whole = int(width)
    return np.maximum(numbers, _LEAST + whole) - whole, np.minimum(numbers, _MOST - whole) + whole


def _band_of_floats(numbers: Numbers, width: float, kind: np.dtype[Any]) -> tuple[Numbers, Numbers]:
    """The band's ends, a few units in the last place too wide: rounding must not lose a match."""
    centre = numbers.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # an end beyond the largest number is infinite, as it should be
        slack = (np.abs(np.where(np.isfinite(centre), centre, 0)) + width) * (
            1e-6 if kind == np.float32 else 1e-14
        )
        return centre - width - slack, centre + width + slack


def unit_vectors(values: pa.Array) -> Matrix:
    """Vectors as rows of a matrix, each of length one; short ones are filled up with zeros.

    A vector that has no direction (null, zero, or not finite) is like no other, which NaN is too.
    """
    rows = _padded(values)
    with np.errstate(invalid="ignore"):
        peak = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
    peak = np.where(np.isfinite(peak) & (peak > 0), peak, np.nan)
    # First by the largest item: the squares of very long and very short vectors are no floats any more.
    unit: Matrix = (rows / peak[:, None]).astype(np.float32, copy=False)
    unit /= np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
    return unit


def _padded(values: pa.Array) -> Numbers:
    lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    flat = values.flatten().fill_null(0.0).to_numpy(zero_copy_only=False)
    width = int(lengths.max(initial=0))
    if len(flat) == len(lengths) * width:
        rows: Numbers = flat.reshape(len(lengths), width)
        return rows
    rows = np.zeros((len(lengths), width), flat.dtype)
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows


def similar(probe: Matrix, value: Matrix, threshold: float) -> tuple[Picks, Picks]:
    """The pairs whose cosine may reach the threshold; rounding is on the safe side."""
    width = min(probe.shape[1], value.shape[1])
    slack = 4e-7 * np.sqrt(width) + 1e-6
    cells = probe[:, :width] @ value[:, :width].T
    hits = np.flatnonzero(cells.ravel() >= np.float32(min(max(threshold, -2), 2) - slack))
    return np.divmod(hits, max(value.shape[0], 1))


def slice_vectors(one: Slice, expr: Expr) -> Matrix:
    """The unit vectors of a slice, made once."""
    found: Matrix = one.remember(("vectors", expr), lambda: unit_vectors(evaluate(expr, one.fetch, one.rows)))
    return found
