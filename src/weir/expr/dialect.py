"""Parse SQL text in the dialect of expressions: Spark's, but functions keep the names as written."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, TypeAlias

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from weir.errors import QueryError

# A node of sqlglot's trees, whose base class has another name from version to version.
Node: TypeAlias = Any
# In a node's meta: the whole text, and the positions of the node's first and last character in it.
_SPAN = "span"
_Parse = Callable[..., Any]


def _record_span(parse: _Parse) -> _Parse:
    """Make a method of the parser note where the text of the node that it returns stands."""

    @wraps(parse)
    def parse_and_note(self: Any, *args: Any, **kwargs: Any) -> Any:
        first, operand = self._curr, args[0] if args else kwargs.get("this")
        node = parse(self, *args, **kwargs)
        # A method that is given its left operand starts in the middle of the node.
        is_new = isinstance(node, exp.Expression) and _SPAN not in node.meta
        if is_new and first and self._prev and not isinstance(operand, exp.Expression):
            node.meta[_SPAN] = (self.sql, first.start, self._prev.end)
        return node

    return parse_and_note


class UntranslatedSpark(Spark):
    """Spark's dialect that does not translate functions: `year(d)` stays a call of `year`."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; a doubled quote is an escaped quote, as since Spark 4."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Spark's grammar with an empty table of translated functions."""

        FUNCTIONS: ClassVar[dict[str, object]] = {}
        # `array(x, y)[0]` would be read as the array of 0.
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, object]] = {}
        # `+x` would be read as x, of any type.
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: lambda self: exp.Anonymous(
                this="positive", expressions=[self._parse_unary() or self.raise_error("+ needs a value")]
            ),
        }

        for _level in (
            "disjunction", "conjunction", "equality", "comparison", "range", "bitwise", "term", "factor",
            "exponent", "unary", "column", "primary", "paren", "function", "lambda", "interval",
        ):  # fmt: skip
            locals()[f"_parse_{_level}"] = _record_span(getattr(Spark.Parser, f"_parse_{_level}"))
        del _level


def source_text(node: Node, verified: bool = True) -> str:
    """Return the text of a parsed node as it was written, or an equivalent text if that is not known.

    The parser does not keep all that it reads (the escapes in a string, the units of a mixed interval).
    Unless `verified`, the text may be that of a node before parts of it were replaced.

    >>> (node,) = parse_statements("a.x   + 1 > b.y", "")
    >>> source_text(node.this)
    'a.x   + 1'
    """
    span = _span(node)
    if span is not None:
        source, first, last = span
        text = source[first : last + 1]
        if not verified or _parses_to(text, node):
            return text
    return str(node.sql(dialect=UntranslatedSpark))


def _span(node: Node) -> tuple[str, int, int] | None:
    """The whole text, and where in it a node stands; a binary operator stands from side to side."""
    if _SPAN in node.meta:
        source, first, last = node.meta[_SPAN]
        return source, first, last
    if not isinstance(node, exp.Binary):
        return None
    left, right = _span(node.left), _span(node.right)
    return None if left is None or right is None else (left[0], left[1], right[2])


def _parses_to(text: str, node: Node) -> bool:
    try:
        (parsed,) = sqlglot.parse(text, dialect=UntranslatedSpark)
    except (SqlglotError, RecursionError, ValueError):
        return False
    return bool(parsed == node)


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
    return QueryError(f"cannot read '{' '.join(text.split())}'{position}; expected {expected}")


def nesting_error() -> QueryError:
    """Return the error for an expression that Python's stack does not hold."""
    return QueryError("an expression is nested too deeply; compute parts of it before the join")
