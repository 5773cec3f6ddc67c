"""Try functions of the user on a few rows: one that takes no arrays is refused before the first batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.nodes import Call, Expr, Literal, walk
from weir.expr.scope import UserFunction

_ROWS = 3
# A function that takes no arrays raises one of these; others may come from what the values happen to be.
_WRONG_KINDS = (TypeError, AttributeError)


def try_functions(expressions: Iterable[Expr], names: Collection[str]) -> None:
    """Call the functions of these names as the expressions do; raise for one that does not work on arrays."""
    called = [name.lower() for name in names]
    for node in dict.fromkeys(node for expression in expressions for node in walk(expression)):
        match node:
            case Call("udf", (Literal(UserFunction() as function), *args)) if function.name.lower() in called:
                for rows in (0, _ROWS):
                    _try(function, [_sample(arg.type, rows) for arg in args], rows)


def _try(function: UserFunction, arrays: list[pa.Array], rows: int) -> None:
    try:
        function.call(arrays, rows)
    except QueryError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, (*_WRONG_KINDS, pa.ArrowException)):
            raise


def _sample(type: pa.DataType, rows: int) -> pa.Array:
    return pa.array([_value(type, number) for number in range(rows)], type)


def _value(type: pa.DataType, number: int) -> Any:
    """A plain value of a type; NULL for types that few functions take."""
    kinds = pa.types
    if kinds.is_integer(type) or kinds.is_floating(type):
        return number
    if kinds.is_list(type) or kinds.is_fixed_size_list(type):
        size = type.list_size if kinds.is_fixed_size_list(type) else 2
        return [_value(type.value_type, number)] * size
    if kinds.is_timestamp(type):
        return datetime(2024, 1, 1 + number, tzinfo=UTC if type.tz else None)
    values: dict[Any, Any] = {
        kinds.is_boolean: number > 0,
        kinds.is_string: f"v{number}",
        kinds.is_binary: b"v",
        kinds.is_decimal: Decimal(0),
        kinds.is_date32: datetime(2024, 1, 1 + number).date(),
        kinds.is_duration: timedelta(seconds=number),
    }
    return next((value for is_kind, value in values.items() if is_kind(type)), None)
