"""Calls of the user's own functions, and what is said when one does not keep its promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types as is_a

from weir.errors import QueryError
from weir.expr.scope import UserFunction
from weir.expr.types import normalise, spark_name


def run_user(user: UserFunction, args: Sequence[pa.Array], rows: int) -> pa.Array:
    """What the function returns for these arrays, in the type it promised."""
    try:
        made = user.fn(*args)
    except Exception as error:
        raise QueryError(
            f"function '{user}' raised {type(error).__name__}: {error}; {_duty(user)}"
        ) from error
    answer = _one_array(user, made)
    if len(answer) != rows:
        raise QueryError(f"function '{user}' returned {len(answer)} values for {rows} rows; {_duty(user)}")
    return answer if answer.type == user.returns else _promised(user, answer)


def _one_array(user: UserFunction, made: Any) -> pa.Array:
    if isinstance(made, pa.Array):
        return made
    if isinstance(made, pa.ChunkedArray):
        return made.combine_chunks()
    # Arrow would take text for a sequence of letters and a mapping for one of keys.
    if isinstance(made, str | bytes | Mapping | pa.Scalar):
        raise _no_array(user, made)
    try:
        array = pa.array(made)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_array(user, made) from error
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _no_array(user: UserFunction, made: Any) -> QueryError:
    return QueryError(f"function '{user}' returned {type(made).__name__}, not an array; {_duty(user)}")


def _promised(user: UserFunction, answer: pa.Array) -> pa.Array:
    wrong = QueryError(f"function '{user}' returned {_name(answer.type)}; {_duty(user)}")
    # Arrow would read numbers and booleans from text, which hides a forgotten returns=.
    if _is_text(answer.type) and not _is_text(user.returns):
        raise wrong
    try:
        return answer.cast(user.returns)
    except pa.ArrowException as error:
        raise wrong from error


def _is_text(type: pa.DataType) -> bool:
    return bool(is_a.is_string(type) or is_a.is_large_string(type) or is_a.is_string_view(type))


def _name(type: pa.DataType) -> str:
    try:
        return spark_name(normalise(type))
    except QueryError:
        return str(type)


def _duty(user: UserFunction) -> str:
    return (
        "it gets one Arrow array per argument and must return an Arrow or NumPy array "
        f"of as many values, of type {spark_name(user.returns)} (see returns= of weir.udf)"
    )
