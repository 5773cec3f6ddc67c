"""What a user passes, checked before it is read as a query: the wrong kind of value is named at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from weir.errors import QueryError, nearest
from weir.expr.scope import UserFunction, udf
from weir.plan.explain import show_bytes
from weir.query.model import Budget, not_a_budget
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.units import show_size

Functions: TypeAlias = Mapping[str, UserFunction | Callable[..., Any]]
# "drop" leaves out a row without an event time and counts it; "fail" refuses its batch.
OnNullTime: TypeAlias = Literal["drop", "fail"]

_SETTINGS = (
    str,
    bytes,
    int,
    float,
    timedelta,
    Allowance,
    Budget,
    RowWindow,
    TimeWindow,
    Mapping,
    list,
    tuple,
    type(None),
)


def check_text(given: Any, argument: str, example: str) -> None:
    """Refuse what is not text."""
    if not isinstance(given, str):
        raise QueryError(f"{argument} is text, like {example}; got {_shown(given)}")


def check_time(time: Any) -> None:
    """Refuse a time column that is not a name, for all streams or for each."""
    for name in time.values() if isinstance(time, Mapping) else [time]:
        check_text(name, "time=", "'ts' or {'orders': 'created', 'payments': 'paid'}")


def check_lengths(**arguments: Any) -> None:
    """Refuse a bare number as a length of time, since nothing says what it counts."""
    for argument, given in arguments.items():
        for length in given.values() if isinstance(given, Mapping) else [given]:
            if isinstance(length, bool):
                raise QueryError(f"{argument}= is a length of time, like '10 seconds'; got {length}")
            if isinstance(length, int):
                raise QueryError(
                    f"{argument}={length} has no unit; write '{length} seconds'"
                    + ("" if argument == "late" else f" or '{length} rows'")
                )


def check_basic(given: Any) -> None:
    """Refuse what is not a length of time."""
    if not isinstance(given, str | timedelta | None):
        raise QueryError(f"basic= is a length of time, like '2 seconds'; got {_shown(given)}")


def check_on_null_time(given: Any) -> None:
    """Refuse what is neither of the two ways."""
    if given not in get_args(OnNullTime):
        raise QueryError(f"on_null_time is 'drop' or 'fail'; got {_shown(given)}")


def check_budget(given: Any) -> None:
    """Refuse what is not a budget, and more memory than this machine has."""
    if given is None:
        return
    if not isinstance(given, Budget):
        raise not_a_budget(given)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if given.bytes is not None and given.bytes > there:
        raise QueryError(
            f"a budget's memory of {show_size(given.bytes)} is more than this machine has, "
            f"{show_bytes(there)}; give it less"
        )


def check_allowance(given: Any) -> None:
    """Refuse what is not an allowance."""
    if not isinstance(given, Allowance | None):
        raise QueryError(
            f"an allowance is written weir.Allowance({{weir.plan.hops(plan)[0]: 0.5}}); got {_shown(given)}"
        )


def named_streams(streams: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of both ways to name them."""
    if streams is not None and not isinstance(streams, Mapping):
        raise QueryError(f"streams= maps names to tables, like {{'orders': table}}; got {_shown(streams)}")
    for name in streams or ():
        if not isinstance(name, str):
            raise QueryError(f"streams= maps names to tables; {name!r} is not a name")
        if name in tables:
            raise QueryError(f"stream '{name}' is given twice, once in streams= and once by name")
    return {**(streams or {}), **tables}


def check_misspelt(
    function: str, tables: Mapping[str, Any], arguments: Sequence[str], clauses: Mapping[str, str]
) -> None:
    """Refuse a setting that came in as a stream; `clauses` says what to write in SQL instead of one."""
    for name, given in tables.items():
        near = nearest(name, [*arguments, *clauses]) if isinstance(given, _SETTINGS) else None
        if near is not None:
            hint = f"write {clauses[near]} in the statement" if near in clauses else f"did you mean '{near}'?"
            raise QueryError(f"{function} has no argument '{name}'; {hint}")


def named_functions(functions: Any) -> dict[str, UserFunction]:
    """The user's functions; a plain one is taken for a predicate, as `weir.udf` does."""
    if functions is None:
        return {}
    if not isinstance(functions, Mapping):
        raise QueryError(
            f"functions= maps names to functions, like {{'near': weir.udf(near)}}; got {_shown(functions)}"
        )
    return {name: _function(name, given) for name, given in functions.items()}


def _function(name: Any, given: Any) -> UserFunction:
    if not isinstance(name, str):
        raise QueryError(f"functions= maps names to functions; {name!r} is not a name")
    if not isinstance(given, UserFunction) and not callable(given):
        raise QueryError(f"function '{name}' must be weir.udf(...) or a function; got {_shown(given)}")
    return given if isinstance(given, UserFunction) else udf(given)


def _shown(given: Any) -> str:
    return repr(given) if isinstance(given, str | int | float | type(None)) else type(given).__name__
