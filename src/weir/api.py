"""The two ways to ask for a join: by arguments, and by SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from weir.errors import QueryError
from weir.expr import UserFunction
from weir.local import LocalJoin, read_schema
from weir.plan import Join, JTree, check, linear, mjoin
from weir.query import Budget, Length, PerStream, Query, query, sql_query


def join(
    *,
    on: str | None = None,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta | int] | None = None,
    within: PerStream[Length] | None = None,
    fresh: PerStream[Length] | None = None,
    budget: Budget | None = None,
    select: str | None = None,
    cross: bool = False,
    functions: Mapping[str, UserFunction] | None = None,
    plan: JTree | str = "mjoin",
    driver_order: Sequence[str] | None = None,
    streams: Mapping[str, Any] | None = None,
    **tables: Any,
) -> LocalJoin:
    """Join named streams inside windows, with any predicate.

    Each table is an Arrow, Polars or pandas table, or an Arrow schema for rows that will come in batches;
    names that clash with an argument go into `streams`. Without `select`, the columns are
    `<stream>_<column>`.

    >>> import pyarrow as pa
    >>> orders = pa.table({"ts": pa.array([1, 9], pa.timestamp("s")), "id": [7, 8]})
    >>> payments = pa.table({"ts": pa.array([3, 99], pa.timestamp("s")), "id": [7, 8]})
    >>> paid = join(orders=orders, payments=payments, on="orders.id = payments.id", within="10 seconds",
    ...             select="orders.id, payments.ts - orders.ts AS took")
    >>> paid.to_arrow().to_pylist()
    [{'id': 7, 'took': datetime.timedelta(seconds=2)}]
    """
    named = _named(streams, tables)
    asked = query(
        {name: read_schema(name, table) for name, table in named.items()},
        on,
        time=time,
        late=late,
        within=within,
        fresh=fresh,
        budget=budget,
        select=select,
        cross=cross,
        functions=functions,
    )
    return LocalJoin(asked, _plan(plan, asked), named, _order(driver_order, asked))


def sql(
    text: str,
    *,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta | int] | None = None,
    budget: Budget | None = None,
    cross: bool = False,
    functions: Mapping[str, UserFunction] | None = None,
    plan: JTree | str = "mjoin",
    driver_order: Sequence[str] | None = None,
    streams: Mapping[str, Any] | None = None,
    **tables: Any,
) -> LocalJoin:
    """Join by a SELECT with WINDOW and FRESHNESS clauses; the streams are called as its FROM list calls them.

    >>> import pyarrow as pa
    >>> times = pa.array([1, 2], pa.timestamp("s"))
    >>> trades = pa.table({"ts": times, "symbol": ["GOOG", "SUSE"], "volume": [5, 9]})
    >>> q1 = sql('''SELECT B.symbol FROM nyc A, tokyo B
    ...             WHERE A.symbol = "GOOG" and B.volume > A.volume WINDOW 10 mins''',
    ...          nyc=trades, tokyo=trades)
    >>> q1.to_arrow().to_pylist()
    [{'symbol': 'SUSE'}]
    """
    named = _named(streams, tables)
    schemas = {name: read_schema(name, table) for name, table in named.items()}
    asked = sql_query(text, schemas, time=time, late=late, budget=budget, cross=cross, functions=functions)
    read = {alias: named[table] for alias, table in asked.tables.items()}
    return LocalJoin(asked.query, _plan(plan, asked.query), read, _order(driver_order, asked.query))


def _named(streams: Mapping[str, Any] | None, tables: Mapping[str, Any]) -> dict[str, Any]:
    both = sorted(set(streams or ()) & set(tables))
    if both:
        raise QueryError(f"stream '{both[0]}' is given twice, once in streams= and once by name")
    return {**(streams or {}), **tables}


def _plan(plan: JTree | str, asked: Query) -> Join:
    if not isinstance(plan, str):
        return check(plan, asked)
    if plan not in ("mjoin", "linear"):
        raise QueryError(f"plan is 'mjoin', 'linear' or a join tree made with weir.plan.join; got '{plan}'")
    return mjoin(asked) if plan == "mjoin" else linear(asked)


def _order(order: Sequence[str] | None, asked: Query) -> tuple[str, ...] | None:
    if order is None:
        return None
    if sorted(order) != sorted(asked.names):
        listed = ", ".join(f"'{name}'" for name in asked.names)
        raise QueryError(f"driver_order must name each stream once: {listed}; got {list(order)}")
    return tuple(order)
