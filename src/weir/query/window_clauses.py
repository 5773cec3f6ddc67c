"""Split the WINDOW and FRESHNESS clauses, which no SQL dialect knows, from the end of a statement.

WINDOW 10 MINUTES    WINDOW 1000 ROWS    WINDOW a 10 MINUTES, b 1000 ROWS
FRESHNESS a 12 MINUTES    FRESHNESS 1 HOUR CLOCK WALL
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from weir.errors import QueryError
from weir.expr.dialect import UntranslatedSpark, syntax_error
from weir.query.model import Clock
from weir.query.unsupported_sql import refuse_after_window

Lengths = str | Mapping[str, str]

_CLAUSES = ("WINDOW", "FRESHNESS")
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_OPERAND_ENDS = (*_QUOTED, *_CLOSE, TokenType.NUMBER, TokenType.STAR)
_AMOUNT = (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.PLUS, TokenType.INTERVAL)
_BEFORE_A_NAME = (
    "SELECT", "DISTINCT", "FROM", "JOIN", "ON", "WHERE", "AND", "OR", "NOT", "AS", "BETWEEN", "LIKE", "IN",
    "CASE", "WHEN", "THEN", "ELSE", "IS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowClauses:
    """The lengths of WINDOW and FRESHNESS, for all streams or for each, and the clock of freshness."""

    window: Lengths | None = None
    freshness: Lengths | None = None
    clock: Clock | None = None


def split_window_clauses(text: str) -> tuple[str, WindowClauses]:
    """Split a statement into its SELECT and the clauses after it.

    >>> split_window_clauses("SELECT 'x' FROM a, b WINDOW a 10 mins, b 5 ROWS FRESHNESS 1 hour;")[0]
    "SELECT 'x' FROM a, b"
    >>> split_window_clauses("SELECT a.x FROM a, b WINDOW a 10 mins FRESHNESS 1 hour CLOCK WALL")[1]
    WindowClauses(window={'a': '10 mins'}, freshness='1 hour', clock='wall')
    """
    try:
        tokens = tokenize(text, dialect=UntranslatedSpark)
    except SqlglotError as error:
        raise syntax_error(error, text, "a SELECT statement") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    starts = [i for i, _ in outer_tokens(tokens) if _is_clause(tokens, i)]
    lengths: dict[str, Lengths] = {}
    clock: Clock | None = None
    for start, end in pairwise([*starts, len(tokens)]):
        word = tokens[start].text.upper()
        if word in lengths:
            raise QueryError(
                f"{word} is given twice; list the streams after one, like '{word} a 10 MINUTES, b 5 MINUTES'"
            )
        own = tokens[start + 1 : end]
        if word == "FRESHNESS":
            own, clock = _split_clock(own)
        lengths[word] = _parse_lengths(word, own, text)
    head = tokens[: starts[0] if starts else len(tokens)]
    clauses = WindowClauses(lengths.get("WINDOW"), lengths.get("FRESHNESS"), clock)
    return text[: head[-1].end + 1] if head else "", clauses


def outer_tokens(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield the tokens outside of parentheses and brackets, with their positions."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0:
            yield i, token


def _is_clause(tokens: Sequence[Token], i: int) -> bool:
    """True for the keyword, false for a column or a table called window."""
    if i == 0 or not _is_word(tokens[i]) or tokens[i].text.upper() not in _CLAUSES:
        return False
    before, after = tokens[i - 1], tokens[i + 1] if i + 1 < len(tokens) else None
    ends_operand = _is_word(before) or before.token_type in _OPERAND_ENDS
    begins_length = after is None or _is_word(after) or after.token_type in (*_AMOUNT, *_QUOTED)
    is_name = before.text.upper() in _BEFORE_A_NAME or (after is not None and after.text.upper() == "FROM")
    return ends_operand and begins_length and not is_name


def _is_word(token: Token) -> bool:
    is_plain = token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
    return is_plain and token.token_type not in _QUOTED


def _split_clock(tokens: list[Token]) -> tuple[list[Token], Clock | None]:
    """Split the clock, CLOCK WALL or CLOCK EVENT, from the end of a FRESHNESS clause."""
    if len(tokens) < 2 or tokens[-2].text.upper() != "CLOCK" or not all(map(_is_word, tokens[-2:])):
        return tokens, None
    for clock in get_args(Clock):
        if tokens[-1].text.lower() == clock:
            return tokens[:-2], clock
    raise QueryError(f"CLOCK after FRESHNESS is EVENT or WALL; got {tokens[-1].text}")


def _parse_lengths(clause: str, tokens: Sequence[Token], text: str) -> Lengths:
    items = split_tokens(tokens, TokenType.COMMA)
    if not all(items):
        raise QueryError(
            f"{clause} needs a length, like '{clause} 10 MINUTES' or '{clause} a 10 MINUTES, b 1000 ROWS'"
        )
    for token in (token for item in items for token in item[1:] if token.token_type not in _QUOTED):
        refuse_after_window(token.text.upper().partition(" ")[0], clause)
    if len(items) == 1 and items[0][0].token_type in _AMOUNT:
        return _source_text(items[0], text)
    lengths: dict[str, str] = {}
    for name, *amount in items:
        if name.token_type in _AMOUNT or not amount:
            source = _source_text([name, *amount], text)
            raise QueryError(
                f"'{source}' after {clause} should name a stream and its length, like 'a 10 MINUTES'"
            )
        if name.text.lower() in map(str.lower, lengths):
            raise QueryError(f"{clause} names stream '{name.text}' twice")
        lengths[name.text] = _source_text(amount, text)
    return lengths


def split_tokens(tokens: Sequence[Token], separator: TokenType) -> list[list[Token]]:
    """Split tokens at a separator."""
    ends = [i for i, token in enumerate(tokens) if token.token_type == separator]
    return [list(tokens[a + 1 : b]) for a, b in pairwise([-1, *ends, len(tokens)])]


def _source_text(tokens: Sequence[Token], text: str) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]
