"""SQL functions over dates and timestamps, in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError, unknown_name
from weir.expr.casts import CASTS, DAY, cast, start_days, try_cast
from weir.expr.decimals import decimal_from_unscaled
from weir.expr.nodes import Expr, Literal
from weir.expr.parse import days_of_dates
from weir.expr.type_rules import (
    Function,
    Signature,
    always,
    check_count,
    check_types,
    take,
    wrap_numbers,
    wrong_types,
)
from weir.expr.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, is_time
from weir.expr.values import Value, from_numbers, keep_nulls, map_arrays, map_numbers, to_numbers
from weir.expr.zones import SECOND, Zone, find_zone

_MOST_DAYS = 2**31 - 1
# The days after which the calendar repeats, and a day by which to tell years from other parts of a date.
_CYCLE, _NEW_YEAR = 146_097, pa.array([0], DATE)
UNITS = {"year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month",
         "mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute",
         "second": "second", "millisecond": "millisecond", "microsecond": "microsecond"}  # fmt: skip
_CLOCK_UNITS = {"hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND, "millisecond": 1000,
                "microsecond": 1}  # fmt: skip


def _date_part(kernel: Callable[..., Any], **options: Any) -> Function:
    def run(out: pa.DataType, date: Value) -> Value:
        return map_arrays(lambda days: _in_calendar(days, lambda near: kernel(near, **options), out), date)

    return Function(take(INT, DATE), run)


def _days_rule(args: Sequence[Expr]) -> Signature:
    """Accept a date and a number of days, which is no bigint."""
    signature = take(DATE, DATE, INT)(args)
    if args[1].type == BIGINT:
        raise wrong_types(args, "a date and an int")
    return signature


def _in_calendar(dates: pa.Array, kernel: Callable[[pa.Array], pa.Array], out: pa.DataType) -> pa.Array:
    """Apply a kernel of Arrow, whose calendar has 32,767 years, to all dates: the calendar repeats."""
    days = to_numbers(dates).astype(np.int64)
    is_near = np.abs(days) < 60 * _CYCLE
    if is_near.all():
        return pc.cast(kernel(dates), out)
    cycles = np.where(is_near, 0, days // _CYCLE)
    near = keep_nulls(from_numbers(days - cycles * _CYCLE, DATE), dates)
    is_year = out == INT and kernel(_NEW_YEAR)[0].as_py() == 1970
    per_cycle = _CYCLE if out == DATE else 400 if is_year else 0
    return map_numbers(out, lambda part: part + cycles * per_cycle, pc.cast(kernel(near), out))


def _date_trunc_rule(args: Sequence[Expr]) -> Signature:
    check_count(args, 2)
    unit, time = args
    may_be_time = is_time(time.type) or time.type == STRING
    if not isinstance(unit, Literal) or not isinstance(unit.value, str) or not may_be_time:
        raise wrong_types(args, "a constant unit and a timestamp")
    if unit.value.lower() not in UNITS:
        raise unknown_name("unit", unit.value, UNITS)
    return (STRING, TIMESTAMP), TIMESTAMP


def _date_trunc(out: pa.DataType, unit: Value, value: Value, zone: str | None = None) -> Value:
    """Truncate instants in local time; NULL where the result is no timestamp."""
    name, region = UNITS[unit.as_py().lower()], find_zone(zone or "UTC")
    if name in _CLOCK_UNITS:
        return map_numbers(out, lambda micros: _floor_clock(micros, _CLOCK_UNITS[name], region), value)
    days = cast(DATE, value, zone)
    if name == "day":
        return map_numbers(out, lambda days, micros: _start_day(days, micros, region), days, value)
    return map_numbers(out, lambda days: start_days(days, region, out), _floor_dates(days, name))


def _floor_clock(micros: Any, step: int, region: Zone) -> tuple[Any, Any]:
    rest = region.split_local(micros)[1] % step
    return region.keep_offset(micros, region.to_local(micros) - rest), micros - rest <= micros


def _start_day(days: Any, micros: Any, region: Zone) -> tuple[Any, Any]:
    """Return the first instants of days; where clocks change, with the offset of the given instants."""
    starts, valid = start_days(days, region, TIMESTAMP)
    return np.where(valid, region.keep_offset(micros, days.astype(np.int64) * DAY), starts), valid


def _floor_dates(dates: Value, unit: str) -> Value:
    return map_arrays(lambda days: _in_calendar(days, partial(pc.floor_temporal, unit=unit), DATE), dates)


def _trunc(out: pa.DataType, value: Value, unit: Value) -> Value:
    return _floor_dates(value, UNITS[unit.as_py().lower()])


def _trunc_rule(args: Sequence[Expr]) -> Signature:
    check_count(args, 2)
    _date_trunc_rule([args[1], args[0]])
    unit = args[1]
    if isinstance(unit, Literal) and UNITS[unit.value.lower()] not in ("year", "quarter", "month", "week"):
        raise QueryError(f"truncates a date to a year, quarter, month or week, not to {unit}")
    return (DATE, STRING), DATE


def _clock_rule(args: Sequence[Expr]) -> Signature:
    """Accept what can be a timestamp; one without a zone stays as it is."""
    signature = take(INT, TIMESTAMP)(args)
    return ([TIMESTAMP_NTZ], INT) if args[0].type == TIMESTAMP_NTZ else signature


def _is_instant(args: Sequence[Expr], out: pa.DataType) -> bool:
    return bool(args[0].type == TIMESTAMP)


def _clock(unit: int, count: int) -> Function:
    """Make a function of the time of day; division is much faster than Arrow's calendar."""

    def run(out: pa.DataType, value: Value, zone: str | None = None) -> Value:
        if zone is None:
            return map_numbers(out, lambda micros: micros // unit % count, value)
        return map_numbers(out, lambda micros: find_zone(zone).split_local(micros)[1] // unit % count, value)

    return Function(_clock_rule, run, is_zoned=_is_instant)


def _fractional_second_rule(args: Sequence[Expr]) -> Signature:
    types, _ = _clock_rule(args)
    return types, pa.decimal128(8, 6)


def _fractional_second(out: pa.DataType, value: Value, zone: str | None = None) -> Value:
    """Return the second of the minute with its microseconds."""
    region = find_zone(zone or "UTC")
    micros = map_numbers(BIGINT, lambda times: region.split_local(times)[1] % (60 * SECOND), value)
    return map_arrays(lambda numbers: decimal_from_unscaled(numbers, out), micros)


def _unix_rule(args: Sequence[Expr]) -> Signature:
    """Accept timestamps; one without a zone is taken as it is."""
    check_types(args, "timestamp", lambda type: bool(pa.types.is_timestamp(type) or pa.types.is_null(type)))
    return [TIMESTAMP_NTZ if args[0].type == TIMESTAMP_NTZ else TIMESTAMP], BIGINT


def _unix_timestamp_rule(args: Sequence[Expr]) -> Signature:
    """Accept what `_unix_rule` does, and dates; text has a pattern of its own in Spark."""
    return ([TIMESTAMP], BIGINT) if len(args) == 1 and args[0].type == DATE else _unix_rule(args)


def _from_unix(factor: int) -> Function:
    """Make a function that returns the timestamp of a number, NULL if there is none."""

    def convert(numbers: Any) -> tuple[Any, Any]:
        most = np.iinfo(np.int64).max // factor
        valid = (numbers <= most) & (numbers >= -most)
        return np.where(valid, numbers, 0) * factor, valid

    return wrap_numbers(take(TIMESTAMP, BIGINT), convert, always_fails=always)


def _make_date(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    return days_of_dates(*(np.asarray(part).astype(np.int64) for part in (year, month, day)))


def _last_days(months: Any) -> Any:
    return (months.astype("M8[M]") + 1).astype("M8[D]") - np.timedelta64(1, "D")


def _add_months(days: Any, months: Any) -> tuple[Any, Any]:
    # The same day of another month, or that month's last day.
    date = np.asarray(days).astype("M8[D]")
    start = date.astype("M8[M]")
    target = start + np.asarray(months).astype("m8[M]")
    same_day = target.astype("M8[D]") + (date - start.astype("M8[D]"))
    days = np.minimum(same_day, _last_days(target)).astype(np.int64)
    return days, np.abs(days) <= _MOST_DAYS


def _cast_rule(type: pa.DataType, args: Sequence[Expr]) -> Signature:
    check_count(args, 1)
    given = args[0].type
    if given != STRING and not is_time(given) and not pa.types.is_null(given):
        raise wrong_types(args, "text, a date or a timestamp, without a pattern")
    return [given], type


def _to_time(type: pa.DataType) -> Function:
    can_fail = CASTS["cast"].can_fail
    return Function(partial(_cast_rule, type), cast, try_cast, can_fail, is_zoned=CASTS["cast"].is_zoned)


def _try_to_time(type: pa.DataType) -> Function:
    return Function(partial(_cast_rule, type), try_cast, is_zoned=CASTS["cast"].is_zoned)


FUNCTIONS: dict[str, Function] = {
    **{kernel.__name__: _date_part(kernel) for kernel in (pc.year, pc.quarter, pc.month, pc.day)},
    "weekofyear": _date_part(pc.iso_week),
    "dayofyear": _date_part(pc.day_of_year),
    "dayofweek": _date_part(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": _date_part(pc.day_of_week),
    "hour": _clock(3600 * SECOND, 24),
    "minute": _clock(60 * SECOND, 60),
    "second": _clock(SECOND, 60),
    "fractional second": Function(_fractional_second_rule, _fractional_second, is_zoned=_is_instant),
    "date_trunc": Function(_date_trunc_rule, _date_trunc, always_fails=always, is_zoned=always),
    "trunc": Function(_trunc_rule, _trunc),
    "to_date": _to_time(DATE),
    "to_timestamp": _to_time(TIMESTAMP),
    "try_to_date": _try_to_time(DATE),
    "try_to_timestamp": _try_to_time(TIMESTAMP),
    "make_date": wrap_numbers(take(DATE, INT, INT, INT), _make_date, can_fail=always),
    "datediff": wrap_numbers(take(INT, DATE, DATE), np.subtract),
    "date_add": wrap_numbers(_days_rule, np.add),
    "date_sub": wrap_numbers(_days_rule, np.subtract),
    "add_months": wrap_numbers(take(DATE, DATE, INT), _add_months, always_fails=always),
    "last_day": wrap_numbers(
        take(DATE, DATE), lambda days: _last_days(days.astype("M8[D]")).astype(np.int64)
    ),
    "unix_date": wrap_numbers(take(INT, DATE), np.positive),
    "date_from_unix_date": wrap_numbers(take(DATE, INT), np.positive),
    # The only conversion to seconds that truncates towards 1970 instead of rounding down.
    "unix_timestamp": wrap_numbers(
        _unix_timestamp_rule, lambda micros: (micros - np.fmod(micros, SECOND)) // SECOND
    ),
    "unix_seconds": wrap_numbers(_unix_rule, lambda micros: micros // SECOND),
    "unix_millis": wrap_numbers(_unix_rule, lambda micros: micros // 1000),
    "unix_micros": wrap_numbers(_unix_rule, np.positive),
    "timestamp_seconds": _from_unix(SECOND),
    "timestamp_millis": _from_unix(1000),
    "timestamp_micros": wrap_numbers(take(TIMESTAMP, BIGINT), np.positive),
}
ALIASES = {"dayofmonth": "day", "date_diff": "datediff", "dateadd": "date_add",
           "to_unix_timestamp": "unix_timestamp", "week": "weekofyear"}  # fmt: skip
