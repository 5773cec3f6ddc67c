"""Build a checked query from options, or from the statement among them, and the schemas of its streams."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from weir.errors import QueryError, locate_errors, match_name
from weir.expr.bind import check_column
from weir.expr.check import check_expression
from weir.expr.nodes import Call, Column, Expr, is_internal, is_quarantined
from weir.expr.scope import Scope
from weir.expr.session import read_session
from weir.expr.to_sql import to_sql
from weir.expr.trial import try_functions
from weir.expr.types import normalise, spark_name
from weir.expr.zones import is_utc
from weir.query.attribute_classes import find_components
from weir.query.classify import classify
from weir.query.model import Query, Stream, check_names
from weir.query.options import DEFAULT_TIME, PerStream, QueryOptions, Span
from weir.query.predicate import Filter, Predicate, require_success
from weir.query.pushdown import Pushdown, PushedFilter, push_down
from weir.query.sql import (
    SelectStatement,
    bind_expression,
    bind_outputs,
    read_clauses,
    refuse_failing_constants,
)
from weir.query.windows import RowWindow, TimeWindow, Window, close_bounds
from weir.units import parse_interval

_ROWS = re.compile(r"\s*([+-]?\s*\d+)\s*rows?\s*", re.IGNORECASE)


def build_query(
    schemas: Mapping[str, pa.Schema],
    options: QueryOptions,
    clauses: SelectStatement | None = None,
    pushed: Sequence[PushedFilter] = (),
) -> Query:
    """The query that joins the streams of these schemas, or the error that says what is wrong with it.

    `clauses` stand in place of those of the options, if the engine computes parts of these by itself; of the
    filters `pushed` to it, those with a flag are checked for rows for which they failed.

    >>> row = pa.schema({"ts": pa.timestamp("us"), "k": pa.string()})
    >>> options = QueryOptions(on="a.k = b.k", within="10 minutes", select="a.k")
    >>> asked = build_query({"a": row, "b": row}, options)
    >>> asked.names, asked.bounds.retention(0), [output.name for output in asked.select]
    (('a', 'b'), 600000000, ['k'])
    """
    check_names(schemas)
    normal = {name: normalise(schema) for name, schema in schemas.items()}
    clauses = clauses or read_clauses(options).resolve_using(normal)
    streams, scope = _read_streams(normal, options), make_scope(normal, options)
    _refuse_mixed_times(streams, scope.session.time_zone)
    names = tuple(normal)
    windows = _read_windows(clauses, names)
    predicate = classify(_conjoin([bind_expression(node, scope) for node in clauses.conditions]), streams)
    predicate = replace(predicate, filters=(*_check_filters(pushed, scope), *predicate.filters))
    bounds = close_bounds(names, windows, predicate.bounds)
    if not options.cross:
        _check_connected(names, predicate)
    refuse_failing_constants(clauses.select, scope)
    select = bind_outputs(clauses.select, streams, scope)
    exprs = [part.expr for part in (*predicate.conjuncts, *predicate.filters, *select)]
    try_functions(exprs, options.plain_functions)
    for expr in exprs:
        check_expression(expr)
    fresh = by_stream(clauses.freshness, names, "fresh")
    freshness = tuple(_read_freshness(fresh.get(name), name, windows[i]) for i, name in enumerate(names))
    basic = None if options.basic is None else parse_interval(options.basic)
    budget, clock = options.budget, clauses.clock or options.clock
    return Query(streams, windows, predicate, select, freshness, budget, bounds, basic, scope.session, clock)


def push_down_clauses(
    schemas: Mapping[str, pa.Schema],
    options: QueryOptions,
    clauses: SelectStatement,
    in_kernel: Collection[tuple[str, str]] = (),
) -> Pushdown:
    """Split what concerns one stream alone from the clauses of the options; see `push_down`."""
    check_names(schemas)
    streams = _read_streams(schemas, options)
    windows = zip(schemas, _read_windows(clauses, tuple(schemas)), strict=True)
    counted = [name for name, window in windows if isinstance(window, RowWindow)]
    times = {stream.name: stream.time for stream in streams}
    return push_down(clauses, make_scope(schemas, options), times, counted, in_kernel)


def make_scope(schemas: Mapping[str, pa.Schema], options: QueryOptions) -> Scope:
    """Return what the expressions of a query may name."""
    return Scope(schemas, options.user_functions, read_session(options.session), options.on_error)


def _check_filters(pushed: Sequence[PushedFilter], scope: Scope) -> Iterator[Filter]:
    for part in pushed:
        expr = check_column(Column(part.stream, part.name, pa.bool_()), scope)
        if is_quarantined(expr):
            yield Filter(part.stream, require_success(expr).expr)


def _read_windows(clauses: SelectStatement, names: Sequence[str]) -> tuple[Window | None, ...]:
    spans = by_stream(clauses.window, names, "within")
    return tuple(_read_window(spans[name], name, "window") if name in spans else None for name in names)


def _read_streams(schemas: Mapping[str, pa.Schema], options: QueryOptions) -> tuple[Stream, ...]:
    columns = by_stream(DEFAULT_TIME if options.time is None else options.time, schemas, "time")
    lateness = by_stream(options.late, schemas, "late")
    streams = []
    for name, schema in schemas.items():
        if name not in columns:
            raise QueryError(f"no time column is given for stream '{name}'; add it to time=")
        column = match_column(columns[name], schema.names)
        with locate_errors(f"the lateness of stream '{name}': "):
            late = parse_interval(lateness.get(name, timedelta()))
        streams.append(Stream(name, schema, column, late))
    return tuple(streams)


def _refuse_mixed_times(streams: Sequence[Stream], time_zone: str) -> None:
    """Refuse event times with and without a zone side by side, unless local time is UTC anyway."""
    zoned = [stream.name for stream in streams if stream.has_zone]
    local = [stream.name for stream in streams if not stream.has_zone]
    if zoned and local and not is_utc(time_zone):
        raise QueryError(
            f"the event times of stream '{zoned[0]}' are TIMESTAMP and those of '{local[0]}' TIMESTAMP_NTZ, "
            f"local times of {time_zone} or of anywhere else; cast one of them to the other's type first"
        )


def match_column(given: str, names: Iterable[str]) -> str:
    """Return the column of that name, ignoring case and backticks around it; else the name as it is given.

    >>> match_column("`Made.At`", ["id", "made.at"]), match_column("at", ["id"])
    ('made.at', 'at')
    """
    known = {name.lower(): name for name in names}
    text = given.strip()
    quoted = re.fullmatch(r"`((?:[^`]|``)*)`", text)
    plain = text if quoted is None else quoted[1].replace("``", "`")
    return next((known[name.lower()] for name in (given, plain) if name.lower() in known), plain)


def refuse_internal_names(schemas: Mapping[str, pa.Schema]) -> None:
    """Refuse columns that are named like those which the engine computes."""
    for stream, schema in schemas.items():
        for name in filter(is_internal, schema.names):
            raise QueryError(
                f"column '{name}' of stream '{stream}' has a name of columns that weir computes; rename it"
            )


def by_stream(given: PerStream[Any] | None, streams: Iterable[str], argument: str) -> dict[str, Any]:
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


def _read_freshness(span: Span | None, name: str, window: Window | None) -> int | None:
    """The freshness of a stream, in the unit of its window."""
    if span is None:
        return None
    fresh = _read_window(span, name, "freshness")
    if isinstance(fresh, RowWindow) != isinstance(window, RowWindow):
        unit = "rows" if isinstance(window, RowWindow) else "time"
        raise QueryError(f"the freshness of stream '{name}' must be in {unit}, like its window; got {fresh}")
    return fresh.rows if isinstance(fresh, RowWindow) else fresh.microseconds


def _conjoin(conditions: Sequence[Expr]) -> Expr | None:
    for condition in conditions:
        if not pa.types.is_boolean(condition.type) and not pa.types.is_null(condition.type):
            raise QueryError(
                f"a condition must be true or false; '{to_sql(condition)}' is {spark_name(condition.type)}"
            )
    return Call("and", tuple(conditions), pa.bool_()) if conditions else None


def _check_connected(names: Sequence[str], predicate: Predicate) -> None:
    links = [*(kind.streams for kind in predicate.conjuncts), *(bound.streams for bound in predicate.bounds)]
    groups = find_components([*((name,) for name in names), *links])
    if len(groups) > 1:
        lonely = min(reversed(groups), key=len)
        others = [name for name in names if name not in lonely]
        raise QueryError(
            f"no condition connects {_quote(lonely)} to {_quote(others)}, so all their rows in a window "
            "would be paired; add a condition between them, or pass cross=True if that is what you want"
        )


def _quote(names: Sequence[str]) -> str:
    return f"stream{'s' * (len(names) > 1)} " + ", ".join(f"'{name}'" for name in names)
