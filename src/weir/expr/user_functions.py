"""Call user-defined functions, and raise a helpful error if one returns something else than declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from weir.errors import QueryError
from weir.expr.scope import UserFunction
from weir.expr.types import normalise, spark_name


def call_user_function(user: UserFunction, args: Sequence[pa.Array], rows: int) -> pa.Array:
    """Call the function with these arrays, and return an array of `rows` values of the declared type."""
    try:
        result = user.fn(*args)
    except Exception as error:
        raise _contract_error(user, f"raised {type(error).__name__}: {error}") from error
    array = _to_array(user, result)
    if len(array) != rows:
        raise _contract_error(user, f"returned {len(array)} values for {rows} rows")
    return array if array.type == user.returns else _cast_result(user, array)


def _to_array(user: UserFunction, result: Any) -> pa.Array:
    wrong = _contract_error(user, f"returned {type(result).__name__}, not an array")
    # Arrow would take a string as a sequence of letters and a mapping as a sequence of keys.
    if isinstance(result, str | bytes | Mapping | pa.Scalar):
        raise wrong
    try:
        array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise wrong from error
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _cast_result(user: UserFunction, array: pa.Array) -> pa.Array:
    wrong = _contract_error(user, f"returned {_type_name(array.type)}")
    # Arrow would parse numbers and booleans from strings, which would hide a forgotten returns=.
    if _is_string(array.type) and not _is_string(user.returns):
        raise wrong
    try:
        return array.cast(user.returns)
    except pa.ArrowException as error:
        raise wrong from error


def _is_string(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _type_name(type: pa.DataType) -> str:
    try:
        return spark_name(normalise(type))
    except QueryError:
        return str(type)


def _contract_error(user: UserFunction, what: str) -> QueryError:
    return QueryError(
        f"function '{user}' {what}; it gets one Arrow array per argument and must return an Arrow or NumPy "
        f"array of as many values, of type {spark_name(user.returns)} (see returns= of weir.udf)"
    )
