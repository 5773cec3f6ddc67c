"""The WINDOW and FRESHNESS clauses at the end of a statement, which no SQL dialect knows.

WINDOW 10 MINUTES    WINDOW 1000 ROWS    WINDOW a 10 MINUTES, b 1000 ROWS    FRESHNESS a 12 MINUTES
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from weir.errors import QueryError
from weir.expr.dialect import SparkText
from weir.query.reading import unreadable

Lengths = str | Mapping[str, str] | None

_CLAUSES = ("WINDOW", "FRESHNESS")
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_AMOUNT = (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.PLUS, TokenType.INTERVAL)
_BEFORE_A_NAME = (
    "SELECT", "DISTINCT", "FROM", "JOIN", "ON", "WHERE", "AND", "OR", "NOT", "AS", "BETWEEN", "LIKE", "IN",
    "CASE", "WHEN", "THEN", "ELSE", "IS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tail:
    """The statement before its tail, and what the tail says: a length for all streams, or one for each."""

    head: str
    window: Lengths
    freshness: Lengths


def cut_tail(text: str) -> Tail:
    """The statement and its WINDOW and FRESHNESS clauses, apart.

    >>> cut_tail("SELECT 'WINDOW 1 DAY' FROM a, b WINDOW a 10 mins, b 5 ROWS FRESHNESS 1 hour;")
    Tail(head="SELECT 'WINDOW 1 DAY' FROM a, b", window={'a': '10 mins', 'b': '5 ROWS'}, freshness='1 hour')
    """
    try:
        tokens = tokenize(text, dialect=SparkText)
    except SqlglotError as error:
        raise unreadable(error, text, "a SELECT statement") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    starts = _clause_starts(tokens)
    clauses: dict[str, Lengths] = {}
    for start, end in pairwise([*starts, len(tokens)]):
        word = tokens[start].text.upper()
        if word in clauses:
            raise QueryError(
                f"{word} stands twice; list the streams after one, like '{word} a 10 MINUTES, b 5 MINUTES'"
            )
        clauses[word] = _lengths(word, tokens[start + 1 : end], text)
    last = tokens[: starts[0] if starts else len(tokens)]
    head = text[: last[-1].end + 1] if last else ""
    return Tail(head, clauses.get("WINDOW"), clauses.get("FRESHNESS"))


def _clause_starts(tokens: Sequence[Token]) -> list[int]:
    found, depth = [], 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and _is_clause(tokens, i):
            found.append(i)
    return found


def _is_clause(tokens: Sequence[Token], i: int) -> bool:
    """Whether this is the keyword and not a column or a table that is called window."""
    if i == 0 or not _word(tokens[i]) or tokens[i].text.upper() not in _CLAUSES:
        return False
    before = tokens[i - 1]
    ends_an_operand = before.token_type in (*_QUOTED, *_CLOSE, TokenType.NUMBER, TokenType.STAR) or _word(
        before
    )
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    begins_a_length = after is None or after.token_type in (*_AMOUNT, *_QUOTED) or _word(after)
    is_name = before.text.upper() in _BEFORE_A_NAME or (after is not None and after.text.upper() == "FROM")
    return ends_an_operand and begins_a_length and not is_name


def _word(token: Token) -> bool:
    return (
        token.token_type not in _QUOTED
        and token.text.replace("_", "a").isalnum()
        and not token.text[0].isdigit()
    )


def _lengths(clause: str, tokens: Sequence[Token], text: str) -> Lengths:
    items = _split(tokens)
    if not all(items):
        raise QueryError(
            f"{clause} needs a length, like '{clause} 10 MINUTES' or '{clause} a 10 MINUTES, b 1000 ROWS'"
        )
    if len(items) == 1 and items[0][0].token_type in _AMOUNT:
        return _source(items[0], text)
    lengths: dict[str, str] = {}
    for name, *amount in items:
        if name.token_type in _AMOUNT or not amount:
            shown = _source([name, *amount], text)
            raise QueryError(
                f"'{shown}' after {clause} should name a stream and its length, like 'a 10 MINUTES'"
            )
        if name.text.lower() in map(str.lower, lengths):
            raise QueryError(f"{clause} names stream '{name.text}' twice")
        lengths[name.text] = _source(amount, text)
    return lengths


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    items: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _source(tokens: Sequence[Token], text: str) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]
