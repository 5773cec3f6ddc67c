"""Parse SQL text in the dialect of expressions: Spark's, but functions keep the names as written."""

from __future__ import annotations

from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from weir.errors import QueryError


class UntranslatedSpark(Spark):
    """Spark's dialect that does not translate functions: `year(d)` stays a call of `year`."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; a doubled quote is an escaped quote, as since Spark 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Spark's grammar with an empty table of translated functions."""

        FUNCTIONS: ClassVar[dict[str, object]] = {}


def parse_statements(text: str, expected: str) -> list[exp.Expression]:
    """Parse the statements or expressions of a text, separated by semicolons."""
    try:
        nodes = sqlglot.parse(text, dialect=UntranslatedSpark)
    except SqlglotError as error:
        raise syntax_error(error, text, expected) from None
    except RecursionError:
        raise nesting_error() from None
    return [node for node in nodes if isinstance(node, exp.Expression)]


def syntax_error(error: SqlglotError, text: str, expected: str) -> QueryError:
    """Return the error for text that is not SQL, with the position at which the parser failed."""
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    near, line, column = details.get("highlight"), details.get("line"), details.get("col")
    position = f" near '{near}' (line {line}, column {column})" if near else ""
    return QueryError(f"cannot read '{text.strip()}'{position}; expected {expected}")


def nesting_error() -> QueryError:
    """Return the error for an expression that Python's stack does not hold."""
    return QueryError("an expression is nested too deeply; compute parts of it before the join")
