"""Read the arguments that are given once for all streams, or by stream in a mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from weir.errors import QueryError, locate_errors, match_name
from weir.query.model import Stream
from weir.query.options import PerStream, Span
from weir.query.windows import RowWindow, TimeWindow, Window
from weir.units import parse_interval

_ROWS = re.compile(r"\s*([+-]?\s*\d+)\s*rows?\s*", re.IGNORECASE)


def read_streams(
    schemas: Mapping[str, pa.Schema], time: PerStream[str], late: PerStream[str | timedelta] | None
) -> tuple[Stream, ...]:
    """The streams of the schemas, each with its time column and its lateness."""
    columns, lateness = _by_stream(time, schemas, "time"), _by_stream(late, schemas, "late")
    streams = []
    for name, schema in schemas.items():
        if name not in columns:
            raise QueryError(f"no time column is given for stream '{name}'; add it to time=")
        column = _match_column(schema, columns[name])
        with locate_errors(f"the lateness of stream '{name}': "):
            late_by = parse_interval(lateness.get(name, timedelta()))
        streams.append(Stream(name, schema, column, late_by))
    return tuple(streams)


def read_windows(within: PerStream[Span] | None, names: Sequence[str]) -> tuple[Window | None, ...]:
    """The window of each stream, None where none is given."""
    spans = _by_stream(within, names, "within")
    return tuple(_read_window(spans[name], name, "window") if name in spans else None for name in names)


def read_freshness(
    fresh: PerStream[Span] | None, names: Sequence[str], windows: Sequence[Window | None]
) -> tuple[int | None, ...]:
    """The freshness of each stream, in the unit of its window, None where none is given."""
    spans = _by_stream(fresh, names, "fresh")
    return tuple(
        _in_unit_of(window, _read_window(spans[name], name, "freshness"), name) if name in spans else None
        for name, window in zip(names, windows, strict=True)
    )


def _in_unit_of(window: Window | None, fresh: Window, name: str) -> int:
    if isinstance(fresh, RowWindow) != isinstance(window, RowWindow):
        unit = "rows" if isinstance(window, RowWindow) else "time"
        raise QueryError(f"the freshness of stream '{name}' must be in {unit}, like its window; got {fresh}")
    return fresh.rows if isinstance(fresh, RowWindow) else fresh.microseconds


def _by_stream(
    given: PerStream[Any] | None, streams: Mapping[str, Any] | Sequence[str], argument: str
) -> dict[str, Any]:
    """The value of each stream that has one, by the name that the query spells."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(streams, given)
    names = [match_name("stream", str(key), streams, where=f" in {argument}=") for key in given]
    return {name: value for name, value in zip(names, given.values(), strict=True) if value is not None}


def _read_window(span: Span, name: str, what: str) -> Window:
    if isinstance(span, TimeWindow | RowWindow):
        return span
    rows = _ROWS.fullmatch(span) if isinstance(span, str) else None
    with locate_errors(f"the {what} of stream '{name}': "):
        return RowWindow(int(rows[1].replace(" ", ""))) if rows else TimeWindow(parse_interval(span))


def _match_column(schema: pa.Schema, column: str) -> str:
    """The column as the schema spells it; names are the same in any case."""
    return next((name for name in schema.names if name.lower() == column.lower()), column)
