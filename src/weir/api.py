"""The two ways to define a join: by arguments, and by SQL.

`weir.options.JoinOptions` holds the default, the description and the check of every argument. The overloads
repeat names and types only, so that editors complete arguments and type checkers know which engine answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from weir.adapt.settings import Adapt
from weir.expr.nodes import OnError
from weir.expr.session import Session
from weir.local.join import LocalJoin, build_join
from weir.options import (
    Durability,
    OnNullTime,
    Order,
    PlanName,
    Selectivities,
    Spread,
    arguments_of,
    read_arguments,
    refuse_unnamed,
)
from weir.plan.tree import JTree
from weir.query.model import Budget, Clock
from weir.query.options import Functions, PerStream, Span, check_text
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName

if TYPE_CHECKING:
    from weir.spark.join import SparkJoin

F = TypeVar("F", bound=Callable[..., Any])
Spans: TypeAlias = PerStream[Span] | None
Lateness: TypeAlias = PerStream[str | timedelta] | None
Times: TypeAlias = PerStream[str] | None
Rates: TypeAlias = PerStream[float] | None
SessionSettings: TypeAlias = Session | Mapping[str, Any] | None


class SparkFrame(Protocol):
    """A DataFrame of Spark, told by what no other table has."""

    @property
    def sparkSession(self) -> Any:  # noqa: D102, N802 - Spark's name
        ...

    @property
    def writeStream(self) -> Any:  # noqa: D102, N802 - Spark's name
        ...


class ArrowStream(Protocol):
    """An Arrow, Polars or pandas table: whatever hands out an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowSchema(Protocol):
    """A schema of Arrow or Polars, for rows that come in batches."""

    def __arrow_c_schema__(self) -> object: ...


class ArrowBatch(Protocol):
    """An Arrow record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


class LazyFrame(Protocol):
    """A LazyFrame of Polars."""

    def collect_schema(self) -> Any: ...  # noqa: D102 - Polars' name

    def collect(self) -> Any: ...  # noqa: D102 - Polars' name


Table: TypeAlias = ArrowStream | ArrowBatch | LazyFrame
Rows: TypeAlias = Iterable[Mapping[str, Any]] | Iterable[Table]
LocalTable: TypeAlias = Table | ArrowSchema | Rows


def _document(function: F) -> F:
    """Show in `help` and to `inspect` the arguments that the options describe."""
    options, keyword = arguments_of(function.__name__), Parameter.KEYWORD_ONLY
    parameters = [
        *(Parameter(each.name, keyword, default=each.default, annotation=each.type) for each in options),
        Parameter("streams", keyword, default=None, annotation="Mapping[str, Any] | None"),
        Parameter("tables", Parameter.VAR_KEYWORD, annotation="Any"),
    ]
    if function.__name__ == "sql":
        parameters.insert(0, Parameter("text", Parameter.POSITIONAL_OR_KEYWORD, annotation="str"))
    signature = Signature(parameters, return_annotation="LocalJoin | SparkJoin")
    function.__signature__ = signature  # type: ignore[attr-defined] # as `inspect` reads it
    meanings = "\n".join(f"{option.name}: {option.metadata['meaning']}" for option in options)
    function.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n{meanings}\n"
    return function


# fmt: off
@overload
def join(
    *, on: str | None = ..., within: Spans = ..., fresh: Spans = ..., clock: Clock = ...,
    select: str | None = ..., time: Times = ..., late: Lateness = ..., cross: bool = ...,
    session: SessionSettings = ..., on_error: OnError = ..., functions: Functions | None = ...,
    budget: Budget | None = ..., basic: str | timedelta | None = ..., plan: JTree | PlanName | str = ...,
    rates: Rates = ..., selectivities: Selectivities | None = ..., driver_order: Order = ...,
    adapt: Adapt | bool | None = ..., allowance: Allowance | None = ..., shed: ShedName = ...,
    on_null_time: OnNullTime = ..., partitions: int | None = ..., spread: Spread = ...,
    idle: str | timedelta | None = ..., ahead: str | timedelta | None = ..., durability: Durability = ...,
    streams: Mapping[str, SparkFrame] | None = ..., **tables: SparkFrame,
) -> SparkJoin: ...
@overload
def join(
    *, on: str | None = ..., within: Spans = ..., fresh: Spans = ..., clock: Clock = ...,
    select: str | None = ..., time: Times = ..., late: Lateness = ..., cross: bool = ...,
    session: SessionSettings = ..., on_error: OnError = ..., functions: Functions | None = ...,
    budget: Budget | None = ..., basic: str | timedelta | None = ..., plan: JTree | PlanName | str = ...,
    rates: Rates = ..., selectivities: Selectivities | None = ..., driver_order: Order = ...,
    adapt: Adapt | bool | None = ..., allowance: Allowance | None = ..., shed: ShedName = ...,
    on_null_time: OnNullTime = ...,
    streams: Mapping[str, LocalTable] | None = ..., **tables: LocalTable,
) -> LocalJoin: ...
# fmt: on
@_document
def join(*unnamed: Any, **arguments: Any) -> LocalJoin | SparkJoin:
    """Join named streams inside windows, with any predicate.

    Each keyword that is not an argument names a table: Spark DataFrames, streaming or static, give a
    `weir.spark.SparkJoin`; tables of this process, and schemas of rows that come in batches, a
    `weir.local.LocalJoin`. Names that clash with an argument go into the mapping `streams`.

    A table of this process is an Arrow, Polars or pandas table, a Polars LazyFrame (collected when the join
    is evaluated), a list of dicts, one for each row, or an iterator of rows or tables (read to its end,
    once). In a row, None and a missing key are NULL.

    >>> from datetime import datetime
    >>> orders = [{"ts": datetime(2024, 1, 2, 12, 0, s), "id": s} for s in (1, 7)]
    >>> payments = [{"ts": datetime(2024, 1, 2, 12, 0, 9), "id": 7}]
    >>> paid = join(orders=orders, payments=payments, on="orders.id = payments.id", within="10 seconds",
    ...             select="orders.id, payments.ts - orders.ts AS took")
    >>> paid.collect()
    [{'id': 7, 'took': datetime.timedelta(seconds=2)}]
    """
    refuse_unnamed("join", unnamed)
    return _build("join", arguments)


# fmt: off
@overload
def sql(
    text: str,
    *, clock: Clock = ..., time: Times = ..., late: Lateness = ..., cross: bool = ...,
    session: SessionSettings = ..., on_error: OnError = ..., functions: Functions | None = ...,
    budget: Budget | None = ..., basic: str | timedelta | None = ..., plan: JTree | PlanName | str = ...,
    rates: Rates = ..., selectivities: Selectivities | None = ..., driver_order: Order = ...,
    adapt: Adapt | bool | None = ..., allowance: Allowance | None = ..., shed: ShedName = ...,
    on_null_time: OnNullTime = ..., partitions: int | None = ..., spread: Spread = ...,
    idle: str | timedelta | None = ..., ahead: str | timedelta | None = ..., durability: Durability = ...,
    streams: Mapping[str, SparkFrame] | None = ..., **tables: SparkFrame,
) -> SparkJoin: ...
@overload
def sql(
    text: str,
    *, clock: Clock = ..., time: Times = ..., late: Lateness = ..., cross: bool = ...,
    session: SessionSettings = ..., on_error: OnError = ..., functions: Functions | None = ...,
    budget: Budget | None = ..., basic: str | timedelta | None = ..., plan: JTree | PlanName | str = ...,
    rates: Rates = ..., selectivities: Selectivities | None = ..., driver_order: Order = ...,
    adapt: Adapt | bool | None = ..., allowance: Allowance | None = ..., shed: ShedName = ...,
    on_null_time: OnNullTime = ...,
    streams: Mapping[str, LocalTable] | None = ..., **tables: LocalTable,
) -> LocalJoin: ...
# fmt: on
@_document
def sql(text: Any = None, *unnamed: Any, **arguments: Any) -> LocalJoin | SparkJoin:
    """Join by a SELECT with WINDOW and FRESHNESS clauses; the streams are called as its FROM list calls them.

    Tables are passed as to `weir.join`, and so are all arguments for which there is no clause.

    >>> import pyarrow as pa
    >>> times = pa.array([1, 2], pa.timestamp("s"))
    >>> trades = pa.table({"ts": times, "symbol": ["GOOG", "SUSE"], "volume": [5, 9]})
    >>> q1 = sql('''SELECT B.symbol FROM nyc A, tokyo B
    ...             WHERE A.symbol = "GOOG" and B.volume > A.volume WINDOW 10 mins''',
    ...          nyc=trades, tokyo=trades)
    >>> q1.to_arrow().to_pylist()
    [{'symbol': 'SUSE'}]
    """
    check_text(text, "a statement", "'SELECT a.x FROM t a, u b WHERE a.k = b.k WINDOW 10 MINUTES'")
    refuse_unnamed("sql", unnamed)
    return _build("sql", arguments, text)


def _build(function: str, arguments: Mapping[str, Any], text: str | None = None) -> LocalJoin | SparkJoin:
    options, tables = read_arguments(function, arguments, text)
    reads_session = text is not None and not tables and _has_session()
    if not reads_session and not any(map(_is_spark, tables.values())):
        return build_join(tables, options)
    from weir.spark.join import build_join as build_spark_join  # Spark need not be installed

    return build_spark_join(tables, options)


def _is_spark(table: Any) -> bool:
    """True for a DataFrame of Spark, told by the modules of its classes: Spark need not be installed."""
    return any(kind.__module__.startswith("pyspark.") for kind in type(table).__mro__)


def _has_session() -> bool:
    """True if there is a Spark session whose views a statement can read."""
    spark = sys.modules.get("pyspark.sql")
    return spark is not None and spark.SparkSession.getActiveSession() is not None
