"""The two ways to ask for a join: by arguments, and by SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from weir.adapt.planner import PlanRequest
from weir.adapt.settings import Adapt, resolve_adapt
from weir.errors import QueryError
from weir.local.arguments import (
    Functions,
    OnNullTime,
    check_allowance,
    check_basic,
    check_budget,
    check_lengths,
    check_misspelt,
    check_on_null_time,
    check_text,
    check_time,
    named_functions,
    named_streams,
)
from weir.local.join import LocalJoin
from weir.local.tables import read_all, read_schema
from weir.order.policies import DriverOrder, DriverPolicy, check_policy
from weir.plan.tree import JTree
from weir.query.build import query
from weir.query.model import Budget, Query
from weir.query.settings import PerStream
from weir.query.sql import sql_query
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

Span: TypeAlias = str | timedelta | TimeWindow | RowWindow

_SHARED = (
    "time",
    "late",
    "budget",
    "cross",
    "functions",
    "plan",
    "rates",
    "selectivities",
    "driver_order",
    "partitions",
    "spread",
    "idle",
    "on_null_time",
    "allowance",
    "shed",
    "adapt",
    "basic",
    "streams",
)
_CLAUSES = {
    "on": "the condition after WHERE",
    "within": "'WINDOW 10 MINUTES'",
    "fresh": "'FRESHNESS 1 HOUR'",
    "select": "the columns after SELECT",
}


def join(
    *,
    on: str | None = None,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta] | None = None,
    within: PerStream[Span] | None = None,
    fresh: PerStream[Span] | None = None,
    budget: Budget | None = None,
    select: str | None = None,
    cross: bool = False,
    functions: Functions | None = None,
    plan: JTree | str = "auto",
    rates: PerStream[float] | None = None,
    selectivities: Mapping[tuple[str, str], float] | None = None,
    driver_order: Sequence[str] | DriverPolicy = "auto",
    partitions: int | None = None,
    spread: str = "auto",
    idle: str | None = None,
    on_null_time: OnNullTime = "drop",
    allowance: Allowance | None = None,
    shed: ShedName = "auto",
    adapt: Adapt | bool | None = None,
    basic: str | timedelta | None = None,
    streams: Mapping[str, Any] | None = None,
    **tables: Any,
) -> LocalJoin | SparkJoin:
    """Join named streams inside windows, with any predicate.

    Each input is a Spark DataFrame, streaming or static (`weir.spark.SparkJoin` comes back), or an Arrow,
    Polars or pandas table, or an Arrow schema for rows that will come in batches (`weir.local.LocalJoin`);
    names that clash with an argument go into `streams`. Without `select`, the columns are
    `<stream>_<column>`. A row without an event time is left out and counted, unless `on_null_time="fail"`.
    The `plan` is "auto", "mjoin", "bjtree" or a tree of `weir.plan.join`; to weigh plans against a `budget`,
    `rates` says how many rows a second come (tables are measured), and `selectivities` what share of the
    pairs of two streams match. The `driver_order` is a list of the streams, or a policy that orders each
    batch, "auto" for early results. On Spark, `partitions` is how many tasks share the join (the cores,
    unless said), and a stream that is `idle` behind the newest one stops holding the watermark back. An
    `allowance` says what share of the rows that reach a hop of the plan (`weir.plan.hops`) may probe there,
    and which ages of partners they look at; where the budget's CPU is short it is chosen, by the way that
    `shed` names: "auto", "jaqpot", "harvest" or "random-drop". `basic` is the length of a range of ages, like
    "2 seconds". With a `budget` and no allowance by hand, a running query changes its plan and what it skips
    as the streams change; `adapt` turns that off (False), or is a `weir.Adapt` that says how easily.

    >>> import pyarrow as pa
    >>> orders = pa.table({"ts": pa.array([1, 9], pa.timestamp("s")), "id": [7, 8]})
    >>> payments = pa.table({"ts": pa.array([3, 99], pa.timestamp("s")), "id": [7, 8]})
    >>> paid = join(orders=orders, payments=payments, on="orders.id = payments.id", within="10 seconds",
    ...             select="orders.id, payments.ts - orders.ts AS took")
    >>> paid.to_arrow().to_pylist()
    [{'id': 7, 'took': datetime.timedelta(seconds=2)}]
    """
    check_misspelt("weir.join", tables, [*_SHARED, *_CLAUSES], {})
    for argument, text, example in (("on=", on, "'a.k = b.k'"), ("select=", select, "'a.x, b.y AS z'")):
        if text is not None:
            check_text(text, argument, example)
    check_time(time)
    check_lengths(late=late, within=within, fresh=fresh)
    check_basic(basic)
    check_on_null_time(on_null_time)
    check_allowance(allowance)
    settled = resolve_adapt(adapt, budget is not None and allowance is None)
    given = named_streams(streams, tables)
    settings: dict[str, Any] = {
        "on": on,
        "time": time,
        "late": late,
        "within": within,
        "fresh": fresh,
        "budget": budget,
        "select": select,
        "cross": cross,
        "functions": named_functions(functions),
        "basic": basic,
    }
    wish, orderer = PlanRequest(plan, rates, selectivities, shed), partial(_order, driver_order)
    if any(map(_is_spark, given.values())):
        from weir.spark.build_join import RunOptions, build_join  # only who has Spark needs it

        way = RunOptions(wish, orderer, partitions, idle, on_null_time, allowance, spread, settled)
        return build_join(given, way, **settings)
    _check_local(partitions, idle, spread)
    check_budget(budget)
    inputs = read_all(given)
    asked = query({name: read_schema(name, table) for name, table in inputs.items()}, **settings)
    asked = wish.divided(asked)
    planned = wish.planned(asked, inputs)
    return LocalJoin(asked, planned, inputs, orderer(asked), on_null_time, allowance, settled)


def sql(
    text: str,
    *,
    time: PerStream[str] = "ts",
    late: PerStream[str | timedelta] | None = None,
    budget: Budget | None = None,
    cross: bool = False,
    functions: Functions | None = None,
    plan: JTree | str = "auto",
    rates: PerStream[float] | None = None,
    selectivities: Mapping[tuple[str, str], float] | None = None,
    driver_order: Sequence[str] | DriverPolicy = "auto",
    partitions: int | None = None,
    spread: str = "auto",
    idle: str | None = None,
    on_null_time: OnNullTime = "drop",
    allowance: Allowance | None = None,
    shed: ShedName = "auto",
    adapt: Adapt | bool | None = None,
    basic: str | timedelta | None = None,
    streams: Mapping[str, Any] | None = None,
    **tables: Any,
) -> LocalJoin | SparkJoin:
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
    check_misspelt("weir.sql", tables, _SHARED, _CLAUSES)
    check_text(text, "a statement", "'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'")
    check_time(time)
    check_lengths(late=late)
    check_basic(basic)
    check_on_null_time(on_null_time)
    check_allowance(allowance)
    settled = resolve_adapt(adapt, budget is not None and allowance is None)
    given = named_streams(streams, tables)
    settings: dict[str, Any] = {
        "time": time,
        "late": late,
        "budget": budget,
        "cross": cross,
        "functions": named_functions(functions),
        "basic": basic,
    }
    wish, orderer = PlanRequest(plan, rates, selectivities, shed), partial(_order, driver_order)
    if any(map(_is_spark, given.values())):
        from weir.spark.build_join import RunOptions, build_sql_join  # only who has Spark needs it

        way = RunOptions(wish, orderer, partitions, idle, on_null_time, allowance, spread, settled)
        return build_sql_join(text, given, way, **settings)
    _check_local(partitions, idle, spread)
    check_budget(budget)
    inputs = read_all(given)
    found = sql_query(text, {name: read_schema(name, table) for name, table in inputs.items()}, **settings)
    asked, read = wish.divided(found.query), {alias: inputs[table] for alias, table in found.tables.items()}
    planned = wish.planned(asked, read)
    return LocalJoin(asked, planned, read, orderer(asked), on_null_time, allowance, settled)


def _is_spark(given: Any) -> bool:
    """True for a DataFrame of Spark's; told by its class's home, as Spark need not be installed."""
    return any(kind.__module__.startswith("pyspark.") for kind in type(given).__mro__)


def _check_local(partitions: int | None, idle: str | None, spread: str) -> None:
    given = None if spread == "auto" else spread
    for argument, value in (("partitions", partitions), ("idle", idle), ("spread", given)):
        if value is not None:
            raise QueryError(f"{argument}= is for Spark DataFrames; tables in this process need none")


def _order(order: Sequence[str] | DriverPolicy, asked: Query) -> DriverOrder:
    if isinstance(order, str):
        check_policy(order)
        return order  # type: ignore[return-value] # just checked
    named = tuple(order) if isinstance(order, Sequence) else ()
    if Counter(named) != Counter(asked.names):
        listed = ", ".join(f"'{name}'" for name in asked.names)
        raise QueryError(
            f"driver_order is a list that names each stream once: {listed}, or a policy like 'auto'; "
            f"got {order!r}"
        )
    return named
