"""What an expression may mention: the streams with their columns, and the user's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pyarrow as pa

from weir.errors import QueryError, unknown
from weir.expr.nodes import Column
from weir.expr.types import normalise, parse_type


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A vectorised function: one Arrow array per argument in, an array of the same length out."""

    fn: Callable[..., Any]
    returns: pa.DataType = field(default_factory=pa.bool_)
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise QueryError(f"a function over Arrow arrays is needed, not {self.fn!r}")

    def takes(self, arguments: int) -> bool:
        """Whether the function can be called with that many; yes if it does not say."""
        try:
            signature(self.fn).bind(*[None] * arguments)
        except TypeError:
            return False
        except ValueError:  # some functions of C have no signature
            return True
        return True

    def __str__(self) -> str:
        return self.name or getattr(self.fn, "__name__", "udf")


def udf(fn: Callable[..., Any], returns: str | pa.DataType = "boolean") -> UserFunction:
    """A function of the user for use in predicates; it gets Arrow arrays and returns one, or a NumPy array.

    Its answer for a row may depend on that row's arguments only: equal questions are asked once.

    >>> udf(lambda x, y: x, returns="double").returns
    DataType(double)
    """
    if not isinstance(returns, str | pa.DataType):
        raise QueryError(f"returns= is a type like 'double' or pyarrow.float64(); got {returns!r}")
    return UserFunction(fn, parse_type(returns) if isinstance(returns, str) else normalise(returns))


@dataclass(frozen=True, slots=True)
class Scope:
    """The names an expression may use; case does not matter, the schema's spelling is kept.

    >>> scope = Scope({"a": pa.schema({"Id": pa.int32()})})
    >>> str(scope.resolve("A", "ID"))
    'a.Id'
    """

    schemas: Mapping[str, pa.Schema]
    functions: Mapping[str, UserFunction] = field(default_factory=dict)

    def resolve(self, stream: str | None, column: str) -> Column:
        """The column meant by `stream.column`, or by `column` alone if only one stream has it."""
        names = self.schemas if stream is None else [self.stream(stream)]
        found = [match for name in names for match in self._columns(name, column)]
        if len(found) == 1:
            return found[0]
        if found:
            options = " or ".join(f"'{match}'" for match in found)
            raise QueryError(f"column '{column}' is ambiguous: write {options}")
        known = [
            field.name if stream else f"{name}.{field.name}" for name in names for field in self.schemas[name]
        ]
        raise unknown("column", column, known, f" in stream '{stream}'" if stream else "")

    def stream(self, name: str) -> str:
        """The stream of that name, as it is spelled in this query."""
        known = self.find_stream(name)
        if known is None:
            raise unknown("stream", name, self.schemas)
        return known

    def find_stream(self, name: str) -> str | None:
        """The stream of that name, or None."""
        return next((known for known in self.schemas if known.lower() == name.lower()), None)

    def function(self, name: str) -> UserFunction | None:
        """The user's function of that name, or None."""
        return next((fn for known, fn in self.functions.items() if known.lower() == name.lower()), None)

    def _columns(self, stream: str, column: str) -> list[Column]:
        fields = [field for field in self.schemas[stream] if field.name.lower() == column.lower()]
        return [Column(stream, field.name, normalise(field.type)) for field in fields]
