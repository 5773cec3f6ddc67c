"""Functions over dates and timestamps, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.errors import QueryError, unknown
from weir.expr.casts import cast
from weir.expr.nodes import Expr, Literal
from weir.expr.rules import BIGINT, DATE, INT, STRING, Function, Signature, counted, refuse, takes
from weir.expr.types import TIMESTAMP, is_time
from weir.expr.values import Value, elementwise

SECOND = 1_000_000
DAY = 86_400 * SECOND
UNITS = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month",
         "mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute",
         "second": "second", "millisecond": "millisecond", "microsecond": "microsecond"}  # fmt: skip


def _naive(value: Value) -> Value:
    # Without a zone Arrow need not look anything up, and UTC has nothing to look up.
    if not is_a.is_timestamp(value.type) or not value.type.tz:
        return value
    return (
        pc.cast(pc.cast(value, BIGINT), pa.timestamp("us"))
        if isinstance(value, pa.Scalar)
        else value.view("timestamp[us]")
    )


def _part(kernel: Callable[..., Any], type: pa.DataType, **options: Any) -> Function:
    def run(out: pa.DataType, value: Value) -> Value:
        return pc.cast(kernel(_naive(value), **options), out)

    return Function(takes(INT, type), run)


def _clock(size: int, parts: int) -> Function:
    # Hours, minutes and seconds by division alone, much faster than through a calendar.
    def run(out: pa.DataType, value: Value) -> Value:
        return elementwise(out, lambda micros: np.floor_divide(micros, size) % parts, value)

    return Function(takes(INT, TIMESTAMP), run)


def trunc_rule(args: Sequence[Expr]) -> Signature:
    """A constant unit and a timestamp."""
    counted(args, 2)
    unit, time = args
    if (
        not isinstance(unit, Literal)
        or not isinstance(unit.value, str)
        or not (is_time(time.type) or time.type == STRING)
    ):
        raise refuse(args, "a constant unit and a timestamp")
    if unit.value.lower() not in UNITS:
        raise unknown("unit", unit.value, UNITS)
    return (STRING, pa.timestamp("us") if time.type == pa.timestamp("us") else TIMESTAMP), TIMESTAMP


def date_trunc(out: pa.DataType, unit: Value, value: Value) -> Value:
    """The timestamp cut off to a unit."""
    floor = pc.floor_temporal(_naive(value), unit=UNITS[unit.as_py().lower()], week_starts_monday=True)
    return elementwise(out, lambda micros: micros, floor)


def trunc(out: pa.DataType, value: Value, unit: Value) -> Value:
    """The date cut off to a unit of a week or longer."""
    return pc.cast(pc.floor_temporal(value, unit=UNITS[unit.as_py().lower()]), out)


def date_trunc_rule(args: Sequence[Expr]) -> Signature:
    """A date and a constant unit of a week or longer."""
    counted(args, 2)
    trunc_rule([args[1], args[0]])
    unit = args[1]
    if isinstance(unit, Literal) and UNITS[unit.value.lower()] not in ("year", "quarter", "month", "week"):
        raise QueryError(f"cuts a date to a year, quarter, month or week, not to {unit}")
    return (DATE, STRING), DATE


def add_months(out: pa.DataType, date: Value, months: Value) -> Value:
    """The same day of another month, or that month's last day."""
    return elementwise(out, _add_months, date, months)


def _add_months(days: Any, months: Any) -> Any:
    date = np.asarray(days).astype("M8[D]")
    start = date.astype("M8[M]")
    target = start + np.asarray(months).astype("m8[M]")
    last = (target + 1).astype("M8[D]") - np.timedelta64(1, "D")
    return np.minimum(target.astype("M8[D]") + (date - start.astype("M8[D]")), last).astype(np.int64)


def last_day(out: pa.DataType, date: Value) -> Value:
    """The last day of the month."""

    def last(days: Any) -> Any:
        return ((days.astype("M8[D]").astype("M8[M]") + 1).astype("M8[D]")).astype(np.int64) - 1

    return elementwise(out, last, date)


def _scaled(size: int) -> Function:
    def run(out: pa.DataType, value: Value) -> Value:
        return elementwise(out, lambda number: number.astype(np.int64) * size, value)

    return Function(takes(TIMESTAMP, BIGINT), run)


def _unscaled(size: int) -> Function:
    def run(out: pa.DataType, value: Value) -> Value:
        return elementwise(out, lambda micros: np.floor_divide(micros, size), value)

    return Function(takes(BIGINT, TIMESTAMP), run)


def _cut_seconds(micros: Any) -> Any:
    return (micros - np.fmod(micros, SECOND)) // SECOND


def _to(type: pa.DataType) -> Function:
    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, 1)
        return [args[0].type if args[0].type == STRING else takes(type, type)(args)[0][0]], type

    return Function(rule, cast)


FUNCTIONS: dict[str, Function] = {
    "year": _part(pc.year, DATE),
    "quarter": _part(pc.quarter, DATE),
    "month": _part(pc.month, DATE),
    "weekofyear": _part(pc.iso_week, DATE),
    "day": _part(pc.day, DATE),
    "dayofyear": _part(pc.day_of_year, DATE),
    "dayofweek": _part(pc.day_of_week, DATE, count_from_zero=False, week_start=7),
    "weekday": _part(pc.day_of_week, DATE),
    "hour": _clock(3600 * SECOND, 24),
    "minute": _clock(60 * SECOND, 60),
    "second": _clock(SECOND, 60),
    "date_trunc": Function(trunc_rule, date_trunc),
    "trunc": Function(date_trunc_rule, trunc),
    "to_date": _to(DATE),
    "to_timestamp": _to(TIMESTAMP),
    "datediff": Function(
        takes(INT, DATE, DATE), lambda out, end, start: elementwise(out, np.subtract, end, start)
    ),
    "date_add": Function(
        takes(DATE, DATE, INT), lambda out, date, days: elementwise(out, np.add, date, days)
    ),
    "date_sub": Function(
        takes(DATE, DATE, INT), lambda out, date, days: elementwise(out, np.subtract, date, days)
    ),
    "add_months": Function(takes(DATE, DATE, INT), add_months),
    "last_day": Function(takes(DATE, DATE), last_day),
    "unix_date": Function(takes(INT, DATE), lambda out, date: elementwise(out, np.positive, date)),
    "date_from_unix_date": Function(takes(DATE, INT), lambda out, days: elementwise(out, np.positive, days)),
    # The one way to seconds that cuts off towards 1970 instead of rounding down.
    "unix_timestamp": Function(
        takes(BIGINT, TIMESTAMP), lambda out, value: elementwise(out, _cut_seconds, value)
    ),
    "unix_seconds": _unscaled(SECOND),
    "unix_millis": _unscaled(1000),
    "unix_micros": _unscaled(1),
    "timestamp_seconds": _scaled(SECOND),
    "timestamp_millis": _scaled(1000),
    "timestamp_micros": _scaled(1),
}
ALIASES = {"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add",
           "to_unix_timestamp": "unix_timestamp", "week": "weekofyear"}  # fmt: skip
