"""The arguments that say what a join returns; `weir.options.JoinOptions` adds how it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar, get_args

from weir.errors import QueryError
from weir.expr.nodes import OnError
from weir.expr.scope import UserFunction, udf
from weir.expr.session import Session, read_session
from weir.query.model import Budget, Clock, wrong_budget
from weir.query.windows import RowWindow, TimeWindow

T = TypeVar("T")
DEFAULT_TIME = "ts"
# One value for all streams, or one for each by its name.
PerStream: TypeAlias = T | Mapping[str, T]
Span: TypeAlias = str | timedelta | TimeWindow | RowWindow
Functions: TypeAlias = Mapping[str, UserFunction | Callable[..., Any]]


def argument(meaning: str, default: Any = None, clause: str | None = None) -> Any:
    """A field that users set, with its description, and the clause that takes its place in a statement."""
    return field(default=default, metadata={"meaning": meaning, "clause": clause})


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What a join returns, checked as far as that needs no schemas.

    A `statement`, the text of `weir.sql`, stands in place of `on`, `within`, `fresh` and `select`.

    >>> QueryOptions(on="a.k = b.k", within=10)
    Traceback (most recent call last):
    weir.errors.QueryError: within=10 has no unit; write '10 seconds' or '10 rows'
    """

    statement: str | None = None
    on: str | None = argument(
        "The condition, in Spark SQL, over two or more streams. Without one, pass cross=True.",
        clause="the condition after WHERE",
    )
    within: PerStream[Span] | None = argument(
        "How long a row can be joined after its event time, for all streams or by stream: '10 minutes', a "
        "timedelta or weir.rows(1000); a row exactly that much later joins no more. Not needed where the "
        "condition bounds the times.",
        clause="'WINDOW 10 MINUTES'",
    )
    fresh: PerStream[Span] | None = argument(
        "How long after its arrival a row may still appear in results, like '1 hour'; None: no limit.",
        clause="'FRESHNESS 1 HOUR'",
    )
    clock: Clock = argument(
        "The clock by which freshness in time is judged: 'event', the newest event time before a batch, or "
        "'wall', the time of day when the batch is decided.",
        default="event",
    )
    select: str | None = argument(
        "The columns of the result, like 'a.x, b.y AS z'; None: all, called <stream>_<column>.",
        clause="the columns after SELECT",
    )
    time: PerStream[str] | None = argument(
        "The column that holds the event time, for all streams or by stream; on Spark also an expression. "
        "None: the column of withWatermark on Spark, else 'ts'."
    )
    late: PerStream[str | timedelta] | None = argument(
        "How far behind the newest row of its stream a row may arrive, like '5 seconds'; None: what "
        "withWatermark says on Spark, else not at all.",
    )
    cross: bool = argument("Whether streams that no condition connects may be joined.", default=False)
    session: Session | Mapping[str, Any] | None = argument(
        "The time zone and the mode of expressions over tables of this process, like {'timeZone': "
        "'Europe/Paris', 'ansi': False}; None: UTC and ANSI mode. Spark DataFrames have a session."
    )
    on_error: OnError = argument(
        "What to do where data makes an expression fail, like a division by zero in ANSI mode: 'fail' with "
        "the values of the row, 'null': the value is NULL, and a condition does not hold, or 'quarantine': "
        "leave the rows out of the results and keep them with the error, on Spark as Parquet files in "
        "weir/quarantine of the checkpoint, in one process as quarantined of the join and the running query, "
        "together with rows that are dropped for their event time.",
        default="fail",
    )
    functions: Functions | None = argument(
        "Functions for the condition and the columns by name; a plain one is taken as a predicate."
    )
    budget: Budget | None = argument(
        "The CPU and the memory that the join may use, weir.Budget(cpu=0.8, memory='2g')."
    )
    basic: str | timedelta | None = argument(
        "The length of a basic window, like '2 seconds': ages of rows are skipped in these steps."
    )

    def __post_init__(self) -> None:
        if self.on is not None:
            check_text(self.on, "on=", "'a.k = b.k'")
        if self.select is not None:
            check_text(self.select, "select=", "'a.x, b.y AS z'")
        for column in () if self.time is None else _values(self.time):
            check_text(column, "time=", "'ts' or {'orders': 'created', 'payments': 'paid'}")
        for name in ("late", "within", "fresh"):
            check_lengths(name, getattr(self, name))
        if not isinstance(self.basic, str | timedelta | None):
            raise QueryError(f"basic= is a length of time, like '2 seconds'; got {show_given(self.basic)}")
        if not isinstance(self.budget, Budget | None):
            raise wrong_budget(self.budget)
        _check_functions(self.functions)
        read_session(self.session)
        if self.clock not in get_args(Clock):
            raise QueryError(f"clock is 'event' or 'wall'; got {show_given(self.clock)}")
        if self.on_error not in get_args(OnError):
            raise QueryError(f"on_error is 'fail', 'null' or 'quarantine'; got {show_given(self.on_error)}")

    @property
    def plain_functions(self) -> list[str]:
        """The names of functions that may not take arrays, since `weir.udf` does not say so."""
        given = (self.functions or {}).items()
        return [name for name, function in given if not isinstance(function, UserFunction)]

    @property
    def user_functions(self) -> dict[str, UserFunction]:
        """The functions by name; `weir.udf` makes predicates of plain ones."""
        return {
            name: function if isinstance(function, UserFunction) else udf(function)
            for name, function in (self.functions or {}).items()
        }


def check_text(given: Any, argument: str, example: str) -> None:
    """Refuse what is not text."""
    if not isinstance(given, str):
        raise QueryError(f"{argument} is text, like {example}; got {show_given(given)}")


def show_given(given: Any) -> str:
    """A wrong value as an error names it: itself if it is short, else its type."""
    return repr(given) if isinstance(given, str | int | float | type(None)) else type(given).__name__


def _values(given: Any) -> list[Any]:
    return list(given.values()) if isinstance(given, Mapping) else [given]


def check_lengths(name: str, given: Any) -> None:
    """Refuse a bare number, since nothing says what it counts."""
    for length in _values(given):
        if isinstance(length, bool):
            raise QueryError(f"{name}= is a length of time, like '10 seconds'; got {length}")
        if isinstance(length, int):
            in_rows = "" if name in ("late", "idle", "ahead") else f" or '{length} rows'"
            raise QueryError(f"{name}={length} has no unit; write '{length} seconds'{in_rows}")


def _check_functions(functions: Any) -> None:
    if not isinstance(functions, Mapping | None):
        raise QueryError(
            "functions= maps names to functions, like {'near': weir.udf(near)}; "
            f"got {show_given(functions)}"
        )
    for name, function in (functions or {}).items():
        if not isinstance(name, str):
            raise QueryError(f"functions= maps names to functions; {name!r} is not a name")
        if not isinstance(function, UserFunction) and not callable(function):
            raise QueryError(
                f"function '{name}' must be weir.udf(...) or a function; got {show_given(function)}"
            )
