"""From text and schemas to a checked query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError
from weir.expr.nodes import Call, Expr
from weir.expr.scope import Scope, UserFunction
from weir.expr.to_sql import to_sql
from weir.expr.types import normalise, spark_name
from weir.query.classify import classify
from weir.query.components import find_components
from weir.query.difference_bounds import close_bounds
from weir.query.model import Budget, Query, Stream, check_names, not_a_budget
from weir.query.parse import bind_expression, parse_condition
from weir.query.predicate import Predicate
from weir.query.select_list import bind_outputs, parse_select_list
from weir.query.settings import Length, PerStream, freshness_from, streams_from, windows_from
from weir.units import interval


def query(
    schemas: Mapping[str, pa.Schema],
    on: str | None = None,
    *,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta | int] | None = None,
    within: PerStream[Length] | None = None,
    fresh: PerStream[Length] | None = None,
    budget: Budget | None = None,
    select: str | None = None,
    cross: bool = False,
    functions: Mapping[str, UserFunction] | None = None,
    basic: str | timedelta | None = None,
) -> Query:
    """The query that joins the streams of these schemas, or the error that says what is wrong with it.

    >>> row = pa.schema({"ts": pa.timestamp("us"), "k": pa.string()})
    >>> asked = query({"a": row, "b": row}, "a.k = b.k", within="10 minutes", select="a.k")
    >>> asked.names, asked.bounds.retention(0), [output.name for output in asked.select]
    (('a', 'b'), 600000000, ['k'])
    """
    streams, scope = prepare(schemas, time, late, functions)
    conditions = [] if on is None else [bind_expression(parse_condition(on), scope)]
    items = None if select is None else parse_select_list(select)
    return assemble(streams, scope, conditions, items, within, fresh, budget, cross, basic)


def prepare(
    schemas: Mapping[str, pa.Schema],
    time: PerStream[str],
    late: PerStream[str | timedelta | int] | None,
    functions: Mapping[str, UserFunction] | None,
) -> tuple[tuple[Stream, ...], Scope]:
    """The checked streams, and the scope in which names of columns are looked up."""
    check_names(schemas)
    known = {name: normalise(schema) for name, schema in schemas.items()}
    return streams_from(known, time, late), Scope(known, functions or {})


def assemble(
    streams: tuple[Stream, ...],
    scope: Scope,
    conditions: Sequence[Expr],
    items: Sequence[exp.Expression] | None,
    within: PerStream[Length] | None,
    fresh: PerStream[Length] | None,
    budget: Budget | None,
    cross: bool,
    basic: str | timedelta | None,
) -> Query:
    """The query of parts that are bound already; every condition must hold."""
    names = tuple(stream.name for stream in streams)
    windows = windows_from(within, names)
    predicate = classify(_all(conditions), streams)
    bounds = close_bounds(names, windows, predicate.bounds)
    if not cross:
        _check_connected(names, predicate)
    if budget is not None and not isinstance(budget, Budget):
        raise not_a_budget(budget)
    freshness = freshness_from(fresh, names, windows)
    return Query(
        streams=streams,
        windows=windows,
        predicate=predicate,
        select=bind_outputs(items, streams, scope),
        fresh=freshness,
        budget=budget,
        bounds=bounds,
        basic=None if basic is None else interval(basic),
    )


def _all(conditions: Sequence[Expr]) -> Expr | None:
    for condition in conditions:
        if not pa.types.is_boolean(condition.type) and not pa.types.is_null(condition.type):
            raise QueryError(
                f"a condition must be true or false; '{to_sql(condition)}' is {spark_name(condition.type)}"
            )
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Call("and", tuple(conditions), pa.bool_())


def _check_connected(names: Sequence[str], predicate: Predicate) -> None:
    links = [*(kind.streams for kind in predicate.conjuncts), *(bound.streams for bound in predicate.bounds)]
    groups = find_components([*((name,) for name in names), *links])
    if len(groups) > 1:
        lonely = min(reversed(groups), key=len)
        others = [name for name in names if name not in lonely]
        raise QueryError(
            f"no condition connects {_listed(lonely)} to {_listed(others)}, so all their rows in a window "
            "would be paired; add a condition between them, or pass cross=True if that is what you want"
        )


def _listed(names: Sequence[str]) -> str:
    return f"stream{'s' * (len(names) > 1)} " + ", ".join(f"'{name}'" for name in names)
