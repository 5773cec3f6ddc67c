"""The formats in which tables come in and results go back: Arrow, Polars, pandas, and rows that are dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from weir.errors import QueryError

if TYPE_CHECKING:
    import polars as pl

Format: TypeAlias = Literal["arrow", "polars", "pandas", "rows"]


def find_format(given: Any) -> Format:
    """The format of a table, or the one that all rows or tables of a list have; an empty list has no rows.

    >>> find_format([{"id": 7}]), find_format([]), find_format(pa.table({"id": [7]}))
    ('rows', 'rows', 'arrow')
    """
    kinds = set(map(type, given)) or {dict} if isinstance(given, list) else {type(given)}
    return find_common_format(map(_format_of, kinds))


def _format_of(kind: type) -> Format:
    # Polars and pandas are told by their modules: neither need be installed.
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    if "polars" in modules:
        return "polars"
    if "pandas" in modules:
        return "pandas"
    return "rows" if issubclass(kind, Mapping) else "arrow"


def find_common_format(formats: Iterable[Format]) -> Format:
    """The format that all have, or Arrow.

    >>> find_common_format(["rows", "rows"]), find_common_format(["rows", "pandas"])
    ('rows', 'arrow')
    """
    distinct = set(formats)
    return distinct.pop() if len(distinct) == 1 else "arrow"


def convert(table: pa.Table, format: Format) -> Any:
    """Convert a table to a format."""
    if format == "polars":
        return to_polars(table)
    if format == "pandas":
        return to_pandas(table)
    return table.to_pylist() if format == "rows" else table


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Convert a table to a Polars DataFrame."""
    try:
        import polars
    except ImportError as error:
        raise QueryError("to_polars() needs Polars: pip install polars, or use to_arrow()") from error
    return polars.DataFrame(table)


def to_pandas(table: pa.Table) -> Any:
    """Convert a table to a pandas DataFrame."""
    try:
        return table.to_pandas()
    except ImportError as error:
        raise QueryError("to_pandas() needs pandas: pip install pandas, or use to_arrow()") from error
