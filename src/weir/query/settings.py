"""The arguments a user gives once for all streams, or stream by stream in a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from weir.errors import QueryError, unknown
from weir.query.model import Stream
from weir.query.windows import RowWindow, TimeWindow, Window
from weir.units import interval

T = TypeVar("T")
Length: TypeAlias = str | timedelta | int | TimeWindow | RowWindow
PerStream: TypeAlias = T | Mapping[str, T]

_ROWS = re.compile(r"\s*([+-]?\s*\d+)\s*rows?\s*", re.IGNORECASE)


def streams_from(
    schemas: Mapping[str, pa.Schema], time: PerStream[str], late: PerStream[str | timedelta | int] | None
) -> tuple[Stream, ...]:
    """The streams of the schemas, with the time column and the lateness given for each."""
    names = tuple(schemas)
    times, lateness = _each(time, names, "time"), _each(late, names, "late")
    found = []
    for name, schema in schemas.items():
        if name not in times:
            raise QueryError(f"no time column is given for stream '{name}'; add it to time=")
        spelled = _spelled_as_in(schema, times[name])
        found.append(Stream(name, schema, spelled, _length(lateness.get(name, 0), name, "lateness")))
    return tuple(found)


def windows_from(within: PerStream[Length] | None, names: Sequence[str]) -> tuple[Window | None, ...]:
    """The window of each stream, None where none is given."""
    given = _each(within, names, "within")
    return tuple(_window(given[name], name, "window") if name in given else None for name in names)


def freshness_from(
    fresh: PerStream[Length] | None, names: Sequence[str], windows: Sequence[Window | None]
) -> tuple[int | None, ...]:
    """The freshness of each stream, in the unit of its window, None where none is given."""
    given = _each(fresh, names, "fresh")
    return tuple(
        _freshness(given[name], name, window) if name in given else None
        for name, window in zip(names, windows, strict=True)
    )


def _freshness(given: Length, name: str, window: Window | None) -> int:
    found = _window(given, name, "freshness")
    if isinstance(found, RowWindow) != isinstance(window, RowWindow):
        unit = "rows" if isinstance(window, RowWindow) else "time"
        raise QueryError(f"the freshness of stream '{name}' must be in {unit}, like its window; got {found}")
    return found.rows if isinstance(found, RowWindow) else found.microseconds


def _each(given: PerStream[Any] | None, names: Sequence[str], argument: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    spelled = {name.lower(): name for name in names}
    for key in given:
        if str(key).lower() not in spelled:
            raise unknown("stream", str(key), names, where=f" in {argument}=")
    return {spelled[key.lower()]: value for key, value in given.items() if value is not None}


def _window(given: Length, name: str, what: str) -> Window:
    if isinstance(given, TimeWindow | RowWindow):
        return given
    counted = _ROWS.fullmatch(given) if isinstance(given, str) else None
    try:
        return RowWindow(int(counted[1].replace(" ", ""))) if counted else TimeWindow(interval(given))
    except QueryError as error:
        raise QueryError(f"the {what} of stream '{name}': {error}") from None


def _length(given: str | timedelta | int, name: str, what: str) -> int:
    try:
        return interval(given)
    except QueryError as error:
        raise QueryError(f"the {what} of stream '{name}': {error}") from None


def _spelled_as_in(schema: pa.Schema, column: str) -> str:
    return next((name for name in schema.names if name.lower() == str(column).lower()), column)
