"""Build a checked query from options, or from the statement among them, and the schemas of its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Call, Expr
from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.expr.types import normalise, spark_name
from weir.query.classify import classify
from weir.query.components import find_components
from weir.query.difference_bounds import close_bounds
from weir.query.model import Query, check_names
from weir.query.options import QueryOptions
from weir.query.parse import bind_expression, bind_outputs, parse_condition, parse_select_list
from weir.query.per_stream import read_freshness, read_streams, read_windows
from weir.query.predicate import Predicate
from weir.query.sql import SelectStatement, parse_sql
from weir.units import parse_interval


def build_query(schemas: Mapping[str, pa.Schema], options: QueryOptions) -> Query:
    """The query that joins the streams of these schemas, or the error that says what is wrong with it.

    >>> row = pa.schema({"ts": pa.timestamp("us"), "k": pa.string()})
    >>> options = QueryOptions(on="a.k = b.k", within="10 minutes", select="a.k")
    >>> asked = build_query({"a": row, "b": row}, options)
    >>> asked.names, asked.bounds.retention(0), [output.name for output in asked.select]
    (('a', 'b'), 600000000, ['k'])
    """
    check_names(schemas)
    clauses = _read_clauses(options)
    normal = {name: normalise(schema) for name, schema in schemas.items()}
    streams, scope = read_streams(normal, options.time, options.late), Scope(normal, options.user_functions)
    names = tuple(normal)
    windows = read_windows(clauses.window, names)
    predicate = classify(_all([bind_expression(node, scope) for node in clauses.conditions]), streams)
    bounds = close_bounds(names, windows, predicate.bounds)
    if not options.cross:
        _check_connected(names, predicate)
    return Query(
        streams=streams,
        windows=windows,
        predicate=predicate,
        select=bind_outputs(clauses.select, streams, scope),
        fresh=read_freshness(clauses.freshness, names, windows),
        budget=options.budget,
        bounds=bounds,
        basic=None if options.basic is None else parse_interval(options.basic),
    )


def _read_clauses(options: QueryOptions) -> SelectStatement:
    if options.statement is not None:
        return parse_sql(options.statement)
    conditions = () if options.on is None else (parse_condition(options.on),)
    select = None if options.select is None else parse_select_list(options.select)
    return SelectStatement((), conditions, select, options.within, options.fresh)


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
