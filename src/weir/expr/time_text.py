"""Format dates and timestamps as Spark does: `2024-03-10`, `2024-03-10 02:30:00.5`, `+12345-01-01`.

Arrow knows the years up to 32,767. The calendar repeats every 400 years, so that any other time is formatted
as one of the years 1970 to 2369, whose number is replaced then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from weir.expr.values import from_numbers, keep_nulls, to_numbers
from weir.expr.zones import find_zone

_DAY = 86_400_000_000
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
# The days of 0000-01-01 and 9999-12-31.
_FIRST, _LAST = -719_528, 2_932_896


def format_times(times: pa.Array, zone: str | None) -> pa.Array:
    """Return the text of dates or timestamps; instants have the local time of `zone`, None being UTC."""
    numbers = to_numbers(times)
    if times.type == DATE:
        days, clock = numbers.astype(np.int64), None
    else:
        days, clock = find_zone(zone or "UTC" if times.type == TIMESTAMP else "UTC").split_local(numbers)
    has_four_digits = (days >= _FIRST) & (days <= _LAST)
    cycles = np.where(has_four_digits, 0, days // _CYCLE_DAYS)
    text = _format_near(days - cycles * _CYCLE_DAYS, clock)
    if not has_four_digits.all():
        text = pc.if_else(has_four_digits, text, _replace_years(text, cycles))
    return keep_nulls(text, times)


def _format_near(days: Any, clock: Any) -> pa.Array:
    if clock is None:
        return pc.cast(from_numbers(days, DATE), STRING)
    text = pc.cast(from_numbers(days * _DAY + clock, TIMESTAMP_NTZ), STRING)
    # Spark drops trailing zeros of a second's fraction.
    return pc.replace_substring_regex(text, r"\.?0+$", "") if (clock % 1_000_000).any() else _drop_zeros(text)


def _drop_zeros(text: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(text, 0, len("2000-01-01 00:00:00"))


def _replace_years(text: pa.Array, cycles: Any) -> pa.Array:
    """Add the years of the cycles; Java writes a plus before more than four digits."""
    near = pc.cast(pc.utf8_slice_codeunits(text, 0, 4), pa.int64()).to_numpy(zero_copy_only=False)
    years = near + cycles * _CYCLE_YEARS
    digits = pc.utf8_lpad(pc.cast(pa.array(np.abs(years)), STRING), 4, "0")
    signs = pa.array(np.where(years < 0, "-", np.where(years > 9999, "+", "")), STRING)
    return pc.binary_join_element_wise(signs, digits, pc.utf8_slice_codeunits(text, 4), "")
