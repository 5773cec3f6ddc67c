"""Read rows that are dicts as an Arrow table: a key is a column, and a missing key or None is NULL.

Arrow infers types from all rows, but mixes some kinds of values in silence: it cuts a datetime after a date
to its date, writes text among bytes as bytes, and reads numbers as times where times are expected. So kinds
are checked before Arrow sees the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from reprlib import repr as show_short
from textwrap import shorten
from typing import Any

import numpy as np
import pyarrow as pa

from weir.errors import QueryError, unknown_name

_NAIVE, _AWARE = "datetime without a time zone", "datetime with a time zone"
_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
# The first entry that a type is a subclass of is its kind: bool is one of int, and datetime of date.
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("bool", (bool, np.bool_)),
    ("int", (int, np.integer)),
    ("float", (float, np.floating)),
    ("Decimal", (Decimal,)),
    ("str", (str,)),
    ("bytes", (bytes, bytearray)),
    (_NAIVE, (datetime, np.datetime64)),
    ("date", (date,)),
    ("timedelta", (timedelta, np.timedelta64)),
    ("dict", (dict,)),
    ("list", (list, tuple, np.ndarray)),
)
_MIXABLE = ({"int", "float"}, {"int", "Decimal"})
_PANDAS_NULLS = ("NaTType", "NAType")


def read_rows(stream: str, rows: Sequence[Any], schema: pa.Schema | None = None) -> pa.Table:
    """The rows as a table; without a schema, the types follow from the values of all rows.

    >>> read_rows("orders", [{"id": None}, {"id": 7, "note": "new"}]).to_pylist()
    [{'id': None, 'note': None}, {'id': 7, 'note': 'new'}]
    """
    _check_rows(stream, rows)
    types = None if schema is None else {field.name: field.type for field in schema}
    names = list(_read_keys(f"stream '{stream}'", rows, types))
    arrays = []
    for name in names:
        values = [row.get(name) for row in rows]
        arrays.append(_read_column(f"stream '{stream}', column '{name}'", values, types and types[name]))
    return pa.table(arrays, names) if schema is None else pa.table(arrays, schema=schema)


def _check_rows(stream: str, rows: Sequence[Any]) -> None:
    if all(issubclass(kind, Mapping) for kind in set(map(type, rows))):
        return
    number, row = next((i, row) for i, row in enumerate(rows) if not isinstance(row, Mapping))
    raise QueryError(
        f"stream '{stream}', row {number}: a row is a dict of its columns, like {{'ts': ..., 'id': 7}}; "
        f"got {type(row).__name__}"
    )


def _read_keys(where: str, rows: Iterable[Any], types: Mapping[str, Any] | None) -> Iterable[str]:
    keys = dict.fromkeys(chain.from_iterable(rows))
    for key in keys:
        if not isinstance(key, str):
            raise QueryError(f"{where}: the keys of a dict are names of columns; got {show_short(key)}")
        # A missing key is NULL, so a misspelt one would lose its values in silence.
        if types is not None and key not in types:
            raise unknown_name("column", key, types, where=f" in a batch of {where}")
    return keys if types is None else types


def _read_column(where: str, values: list[Any], wanted: pa.DataType | None) -> pa.Array:
    values = _without_pandas_nulls(values)
    _check_kinds(where, values, range(len(values)), wanted)
    try:
        return pa.array(values, wanted)
    except _FAILURES as error:
        raise _unreadable(where, values, wanted, error) from error


def _without_pandas_nulls(values: list[Any]) -> list[Any]:
    """NaT and NA, which rows have that were made from pandas, as None."""
    named = {kind for kind in set(map(type, values)) if kind.__name__ in _PANDAS_NULLS}
    nulls = {kind for kind in named if kind.__module__.startswith("pandas.")}
    return [None if type(value) in nulls else value for value in values] if nulls else values


def _check_kinds(where: str, values: Sequence[Any], rows: Sequence[int], wanted: pa.DataType | None) -> None:
    """Refuse kinds that do not mix, or that the wanted type does not take; inside dicts and lists too."""
    kinds = _find_kinds(values)
    if wanted is None:
        _check_mix(where, values, rows, kinds)
    else:
        _check_accepted(where, values, rows, kinds, wanted)
    if kinds == {"dict"}:
        _check_fields(where, values, rows, wanted)
    if kinds == {"list"}:
        lists = [() if value is None else value for value in values]
        rows = [row for row, items in zip(rows, lists, strict=True) for _ in items]
        _check_kinds(f"{where}, items", list(chain.from_iterable(lists)), rows, wanted and wanted.value_type)


def _check_mix(where: str, values: Sequence[Any], rows: Sequence[int], kinds: set[str]) -> None:
    if len(kinds) > 1 and kinds not in _MIXABLE:
        first = sorted((_find_place(values, kind), kind) for kind in kinds)
        found = " and ".join(f"{kind} (row {rows[place]})" for place, kind in first)
        raise QueryError(f"{where} mixes {found}; give it values of one type, and None for NULL")


def _check_accepted(
    where: str, values: Sequence[Any], rows: Sequence[int], kinds: set[str], wanted: pa.DataType
) -> None:
    accepted = _find_accepted(wanted)
    for kind in set() if accepted is None else kinds - accepted:
        row = rows[_find_place(values, kind)]
        raise QueryError(f"{where} is {wanted} in the query; row {row} of this batch has {kind}")


def _check_fields(where: str, values: Sequence[Any], rows: Sequence[int], wanted: pa.DataType | None) -> None:
    types = None if wanted is None else {field.name: field.type for field in wanted}
    dicts = [{} if value is None else value for value in values]
    for name in _read_keys(where, dicts, types):
        inner = [value.get(name) for value in dicts]
        _check_kinds(f"{where}, field '{name}'", inner, rows, types and types[name])


def _find_kinds(values: Sequence[Any]) -> set[str]:
    kinds = {_find_kind(kind) for kind in set(map(type, values)) if kind is not type(None)}
    if _NAIVE not in kinds:
        return kinds
    return {_find_kind_of_value(value) for value in values if value is not None}


def _find_kind(type: type) -> str:
    return next((kind for kind, types in _KINDS if issubclass(type, types)), type.__name__)


def _find_kind_of_value(value: Any) -> str:
    is_aware = isinstance(value, datetime) and value.tzinfo is not None
    return _AWARE if is_aware else _find_kind(type(value))


def _find_place(values: Sequence[Any], kind: str) -> int:
    return next(i for i, each in enumerate(values) if each is not None and _find_kind_of_value(each) == kind)


def _find_accepted(wanted: pa.DataType) -> set[str] | None:
    """The kinds of values that a column of the type takes; None: those that Arrow takes."""
    accepted: tuple[tuple[Any, set[str]], ...] = (
        (pa.types.is_boolean, {"bool"}),
        (pa.types.is_integer, {"int"}),
        (pa.types.is_floating, {"int", "float"}),
        (pa.types.is_decimal, {"int", "Decimal"}),
        (pa.types.is_string, {"str"}),
        (pa.types.is_binary, {"bytes"}),
        (pa.types.is_timestamp, {_AWARE if getattr(wanted, "tz", None) else _NAIVE}),
        (pa.types.is_date, {"date"}),
        (pa.types.is_duration, {"timedelta"}),
        (pa.types.is_struct, {"dict"}),
        (pa.types.is_list, {"list"}),
        (pa.types.is_fixed_size_list, {"list"}),
        (pa.types.is_null, set()),
    )
    return next((kinds for is_type, kinds in accepted if is_type(wanted)), None)


def _unreadable(
    where: str, values: Sequence[Any], wanted: pa.DataType | None, error: Exception
) -> QueryError:
    """The error of the first value that Arrow cannot read alone: its message for all of them names no row."""
    for number, value in enumerate(values):
        try:
            pa.array([value], wanted)
        except _FAILURES as failure:
            what = "hold" if wanted is None else f"hold as {wanted}"
            why = shorten(str(failure), 200, placeholder="...")
            return QueryError(f"{where}, row {number}: Arrow cannot {what} {show_short(value)}: {why}")
    return QueryError(f"{where}: Arrow cannot hold these values as one type: {error}")
