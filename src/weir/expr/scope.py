"""The names that an expression may use: streams with their columns, and user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, overload

import pyarrow as pa

from weir.errors import QueryError, match_name, unknown_name
from weir.expr.nodes import Column, Mode, OnError, name_flag, name_inputs
from weir.expr.session import Session
from weir.expr.types import STRING, normalise, parse_type, spark_name


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A vectorised function: one Arrow array per argument in, an array of the same length out."""

    fn: Callable[..., Any]
    returns: pa.DataType = field(default_factory=pa.bool_)
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise QueryError(f"weir.udf takes a function over Arrow arrays, not {self.fn!r}")

    def takes(self, arguments: int) -> bool:
        """True if the function can be called with that many arguments, or has no signature to tell."""
        try:
            signature(self.fn).bind(*[None] * arguments)
        except TypeError:
            return False
        except ValueError:  # some functions written in C have no signature
            pass
        return True

    def call(self, args: Sequence[pa.Array], rows: int) -> pa.Array:
        """Call the function with these arrays, and return an array of `rows` values of the declared type."""
        try:
            result = self.fn(*args)
        except Exception as error:
            raise self._contract_error(f"raised {type(error).__name__}: {error}") from error
        array = self._to_array(result)
        if len(array) != rows:
            raise self._contract_error(f"returned {len(array)} values for {rows} rows")
        return array if array.type == self.returns else self._cast_result(array)

    def _to_array(self, result: Any) -> pa.Array:
        wrong = self._contract_error(f"returned {type(result).__name__}, not an array")
        # Arrow would take a string as a sequence of letters and a mapping as a sequence of keys.
        if isinstance(result, str | bytes | Mapping | pa.Scalar):
            raise wrong
        try:
            array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise wrong from error
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def _cast_result(self, array: pa.Array) -> pa.Array:
        try:
            given = spark_name(normalise(array.type))
        except QueryError:
            given = str(array.type)
        wrong = self._contract_error(f"returned {given}")
        # Arrow would parse numbers and booleans from strings, which would hide a forgotten returns=.
        if given == "string" and self.returns != STRING:
            raise wrong
        try:
            return array.cast(self.returns)
        except pa.ArrowException as error:
            raise wrong from error

    def _contract_error(self, what: str) -> QueryError:
        return QueryError(
            f"function '{self}' {what}; it gets one Arrow array per argument and must return an Arrow or "
            f"NumPy array of as many values, of type {spark_name(self.returns)} (see returns= of weir.udf)"
        )

    def __str__(self) -> str:
        return self.name or getattr(self.fn, "__name__", "udf")


@overload
def udf(fn: Callable[..., Any], returns: str | pa.DataType = "boolean") -> UserFunction: ...
@overload
def udf(
    fn: str | pa.DataType | None = None, returns: str | pa.DataType = "boolean"
) -> Callable[[Callable[..., Any]], UserFunction]: ...
def udf(fn: Any = None, returns: str | pa.DataType = "boolean") -> Any:
    """Make a Python function usable in conditions; it takes Arrow arrays and returns an Arrow or NumPy array.

    The value for a row may depend on that row's arguments only: equal arguments are evaluated once. As a
    decorator, it takes the type of the values alone, as Spark's `udf` does.

    >>> udf(lambda x, y: x, returns="double").returns
    DataType(double)
    >>> @udf("double")
    ... def larger(x, y): ...
    >>> larger.returns
    DataType(double)
    """
    is_decorator = fn is None or isinstance(fn, str | pa.DataType)
    given = fn if is_decorator and fn is not None else returns
    if not isinstance(given, str | pa.DataType):
        raise QueryError(f"returns= is a type like 'double' or pyarrow.float64(); got {given!r}")
    kind = parse_type(given) if isinstance(given, str) else normalise(given)
    return partial(UserFunction, returns=kind) if is_decorator else UserFunction(fn, kind)


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams, functions and session of an expression; lookups ignore case, results keep the spelling.

    >>> scope = Scope({"a": pa.schema({"Id": pa.int32()})})
    >>> str(scope.resolve("A", "ID"))
    'a.Id'
    """

    schemas: Mapping[str, pa.Schema]
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    session: Session = field(default_factory=Session)
    on_error: OnError = "fail"

    @property
    def mode(self) -> Mode:
        """How calls are evaluated."""
        return self.session.mode(self.on_error)

    def resolve(self, stream: str | None, column: str) -> Column:
        """Resolve `stream.column`, or `column` alone if only one stream has it."""
        names = self.schemas if stream is None else [match_name("stream", stream, self.schemas)]
        matches = [match for name in names for match in self._columns(name, column)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            options = " or ".join(f"'{match}'" for match in matches)
            raise QueryError(f"column '{column}' is ambiguous: write {options}")
        known = [
            known if stream else f"{name}.{known}" for name in names for known in self.schemas[name].names
        ]
        raise unknown_name("column", column, known, f" in stream '{stream}'" if stream else "")

    def failure_flags(self, column: Column) -> tuple[Column, ...]:
        """Return the columns that say for which rows a computed column failed, and what it read there.

        There are none if it cannot fail; what it read is known only where it is to be reported.
        """
        flags = {name_flag(column.name): pa.bool_(), name_inputs(column.name): pa.string()}
        known = self.schemas[column.stream].names
        return tuple(Column(column.stream, name, kind) for name, kind in flags.items() if name in known)

    def function(self, name: str) -> UserFunction | None:
        """Return the user-defined function of that name, or None."""
        return next((fn for known, fn in self.functions.items() if known.lower() == name.lower()), None)

    def _columns(self, stream: str, column: str) -> list[Column]:
        fields = [field for field in self.schemas[stream] if field.name.lower() == column.lower()]
        return [Column(stream, field.name, normalise(field.type)) for field in fields]
