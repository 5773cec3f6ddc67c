"""SQL functions over dates and timestamps, in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError, unknown_name
from weir.expr.casts import cast, drop_time_zone
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import Function, Signature, check_count, take, wrap_numbers, wrong_types
from weir.expr.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, is_time
from weir.expr.values import Value, map_numbers

SECOND = 1_000_000
UNITS = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month",
         "mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute",
         "second": "second", "millisecond": "millisecond", "microsecond": "microsecond"}  # fmt: skip


def _date_part(kernel: Callable[..., Any], **options: Any) -> Function:
    return Function(take(INT, DATE), lambda out, date: pc.cast(kernel(date, **options), out))


def _date_trunc_rule(args: Sequence[Expr]) -> Signature:
    check_count(args, 2)
    unit, time = args
    may_be_time = is_time(time.type) or time.type == STRING
    if not isinstance(unit, Literal) or not isinstance(unit.value, str) or not may_be_time:
        raise wrong_types(args, "a constant unit and a timestamp")
    if unit.value.lower() not in UNITS:
        raise unknown_name("unit", unit.value, UNITS)
    return (STRING, TIMESTAMP_NTZ if time.type == TIMESTAMP_NTZ else TIMESTAMP), TIMESTAMP


def _date_trunc(out: pa.DataType, unit: Value, value: Value) -> Value:
    floor = pc.floor_temporal(drop_time_zone(value), unit=UNITS[unit.as_py().lower()])
    return map_numbers(out, lambda micros: micros, floor)


def _trunc(out: pa.DataType, value: Value, unit: Value) -> Value:
    return pc.cast(pc.floor_temporal(value, unit=UNITS[unit.as_py().lower()]), out)


def _trunc_rule(args: Sequence[Expr]) -> Signature:
    check_count(args, 2)
    _date_trunc_rule([args[1], args[0]])
    unit = args[1]
    if isinstance(unit, Literal) and UNITS[unit.value.lower()] not in ("year", "quarter", "month", "week"):
        raise QueryError(f"truncates a date to a year, quarter, month or week, not to {unit}")
    return (DATE, STRING), DATE


def _last_days(months: Any) -> Any:
    return (months.astype("M8[M]") + 1).astype("M8[D]") - np.timedelta64(1, "D")


def _add_months(days: Any, months: Any) -> Any:
    # The same day of another month, or that month's last day.
    date = np.asarray(days).astype("M8[D]")
    start = date.astype("M8[M]")
    target = start + np.asarray(months).astype("m8[M]")
    same_day = target.astype("M8[D]") + (date - start.astype("M8[D]"))
    return np.minimum(same_day, _last_days(target)).astype(np.int64)


def _cast_rule(type: pa.DataType, args: Sequence[Expr]) -> Signature:
    check_count(args, 1)
    return [args[0].type if args[0].type == STRING else take(type, type)(args)[0][0]], type


_TO_UNIX, _FROM_UNIX = take(BIGINT, TIMESTAMP), take(TIMESTAMP, BIGINT)
FUNCTIONS: dict[str, Function] = {
    **{kernel.__name__: _date_part(kernel) for kernel in (pc.year, pc.quarter, pc.month, pc.day)},
    "weekofyear": _date_part(pc.iso_week),
    "dayofyear": _date_part(pc.day_of_year),
    "dayofweek": _date_part(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": _date_part(pc.day_of_week),
    # Division is much faster than Arrow's calendar.
    "hour": wrap_numbers(take(INT, TIMESTAMP), lambda micros: micros // (3600 * SECOND) % 24),
    "minute": wrap_numbers(take(INT, TIMESTAMP), lambda micros: micros // (60 * SECOND) % 60),
    "second": wrap_numbers(take(INT, TIMESTAMP), lambda micros: micros // SECOND % 60),
    "date_trunc": Function(_date_trunc_rule, _date_trunc),
    "trunc": Function(_trunc_rule, _trunc),
    "to_date": Function(partial(_cast_rule, DATE), cast),
    "to_timestamp": Function(partial(_cast_rule, TIMESTAMP), cast),
    "datediff": wrap_numbers(take(INT, DATE, DATE), np.subtract),
    "date_add": wrap_numbers(take(DATE, DATE, INT), np.add),
    "date_sub": wrap_numbers(take(DATE, DATE, INT), np.subtract),
    "add_months": wrap_numbers(take(DATE, DATE, INT), _add_months),
    "last_day": wrap_numbers(
        take(DATE, DATE), lambda days: _last_days(days.astype("M8[D]")).astype(np.int64)
    ),
    "unix_date": wrap_numbers(take(INT, DATE), np.positive),
    "date_from_unix_date": wrap_numbers(take(DATE, INT), np.positive),
    # The only conversion to seconds that truncates towards 1970 instead of rounding down.
    "unix_timestamp": wrap_numbers(_TO_UNIX, lambda micros: (micros - np.fmod(micros, SECOND)) // SECOND),
    "unix_seconds": wrap_numbers(_TO_UNIX, lambda micros: micros // SECOND),
    "unix_millis": wrap_numbers(_TO_UNIX, lambda micros: micros // 1000),
    "unix_micros": wrap_numbers(_TO_UNIX, np.positive),
    "timestamp_seconds": wrap_numbers(_FROM_UNIX, lambda seconds: seconds * SECOND),
    "timestamp_millis": wrap_numbers(_FROM_UNIX, lambda millis: millis * 1000),
    "timestamp_micros": wrap_numbers(_FROM_UNIX, np.positive),
}
ALIASES = {"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add",
           "to_unix_timestamp": "unix_timestamp", "week": "weekofyear"}  # fmt: skip
