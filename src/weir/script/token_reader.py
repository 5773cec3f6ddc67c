"""Read the tokens of a script from left to right, with errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from weir.errors import QueryError
from weir.expr.dialect import UntranslatedSpark
from weir.query.window_clauses import split_tokens

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.LT)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.GT)
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


def split_statements(text: str) -> list[TokenReader]:
    """Split a script into statements at semicolons, without comments.

    >>> [reader.source(0, 1) for reader in split_statements("a 'x;y'; -- c" + chr(10) + "b d;")]
    ["a 'x;y'", 'b d']
    """
    try:
        tokens = tokenize(text, dialect=UntranslatedSpark)
    except SqlglotError as error:
        raise _left_open(text, error) from None
    return [TokenReader(text, part) for part in split_tokens(tokens, TokenType.SEMICOLON) if part]


def _left_open(text: str, error: SqlglotError) -> QueryError:
    """The error for a quote or a comment without an end; it shows nothing of what may be a secret."""
    quote = re.match(r"Missing (.+) from (\d+):", str(error.__cause__))
    if quote is not None:
        return QueryError(f"line {quote[2]}: a quote {quote[1]} is left open")
    line = 1 + text.count("\n", 0, max(text.rfind("/*"), 0))
    return QueryError(f"line {line}: the script cannot be read from here on; is a comment /* left open?")


def is_word(token: Token, *words: str) -> bool:
    """True for one of these keywords, unquoted, ignoring case."""
    return token.token_type not in _QUOTED and token.text.upper() in words


class TokenReader:
    """The tokens of a statement, and the position of the next one to read."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._text = text
        self.position = 0

    @property
    def line(self) -> int:
        """The line of the next token, or of the last one."""
        return self.tokens[min(self.position, len(self.tokens) - 1)].line

    @property
    def is_done(self) -> bool:
        """True if nothing is left."""
        return self.position >= len(self.tokens)

    def source(self, first: int, last: int) -> str:
        """Return the script's text from one token to another."""
        return self._text[self.tokens[first].start : self.tokens[last].end + 1]

    def next_is(self, *words: str) -> bool:
        """True if the next token is one of these keywords."""
        return not self.is_done and is_word(self.tokens[self.position], *words)

    def next_are(self, *words: str) -> bool:
        """True if these keywords come next."""
        ahead = self.tokens[self.position : self.position + len(words)]
        return len(ahead) == len(words) and all(map(is_word, ahead, words))

    def accept(self, *words: str) -> bool:
        """Read these keywords if all of them come next; return whether they did."""
        if not self.next_are(*words):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these keywords, or raise."""
        for word in words:
            if not self.accept(word):
                raise self.error(f"expected {' '.join(words)}")

    def read_name(self, what: str) -> str:
        """Read a name, a word or quoted with backticks."""
        token = self._peek(f"expected {what}")
        plain = token.text.replace("_", "a").isalnum() and token.token_type != TokenType.STRING
        return self.read_type(token.token_type if plain else TokenType.IDENTIFIER, f"expected {what}")

    def read_dotted_name(self, what: str) -> str:
        """Read names with dots between them."""
        parts = [self.read_name(what)]
        while self.next_is_type(TokenType.DOT):
            self.position += 1
            parts.append(self.read_name(what))
        return ".".join(parts)

    def read_choice(self, what: str) -> str:
        """Read one of several names, quoted or not; it may have hyphens, like round-robin."""
        if self.next_is_type(TokenType.STRING):
            return self.read_type(TokenType.STRING, "")
        parts = [self.read_name(what)]
        while self.next_is_type(TokenType.DASH):
            self.position += 1
            parts.append(self.read_name(what))
        return "-".join(parts)

    def next_is_type(self, kind: TokenType) -> bool:
        """True if the next token is of that type."""
        return not self.is_done and self.tokens[self.position].token_type == kind

    def read_value(self) -> str:
        """Read the value of an option: a string in quotes, a number, true or false."""
        expected = "expected a value in quotes, a number, true or false"
        token = self._peek(expected)
        if token.token_type == TokenType.STRING or is_word(token, "TRUE", "FALSE"):
            return self.read_type(token.token_type, expected)
        sign = str(token.text) if token.text in ("+", "-") else ""
        self.position += len(sign)
        return sign + self.read_type(TokenType.NUMBER, expected)

    def read_list(self, opening: str, item: str) -> list[tuple[int, int]]:
        """Read a list in parentheses; return the first and last position of each item.

        Raises `opening` if there is no parenthesis, and `item` for an empty item.
        """
        opened = self.position
        self.read_type(TokenType.L_PAREN, opening)
        depth, items, start = 0, [], self.position
        for position in range(opened, len(self.tokens)):
            kind = self.tokens[position].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
                if start == position:
                    self.position = position
                    raise self.error(item)
                items.append((start, position - 1))
                start = position + 1
            if depth == 0:
                self.position = position + 1
                return items
        self.position = opened
        raise self.error("this ( is never closed")

    def read_until(self, *words: str) -> str:
        """Read the text up to one of these keywords or the end of the statement, at least one token."""
        first = self.position
        while not self.is_done and not self.next_is(*words):
            self.position += 1
        if self.position == first:
            raise self.error("expected a length like 5 SECONDS")
        return self.source(first, self.position - 1)

    def error(self, expected: str) -> QueryError:
        """Return the error for the next token, with its line and text."""
        i = self.position
        actual = "the statement ends" if self.is_done else f"found '{self.source(i, i)}'"
        return QueryError(f"line {self.line}: {expected}, but {actual}")

    def read_type(self, kind: TokenType, expected: str) -> str:
        """Read a token of that type and return its text, or raise."""
        if self._peek(expected).token_type != kind:
            raise self.error(expected)
        self.position += 1
        return str(self.tokens[self.position - 1].text)

    def _peek(self, expected: str) -> Token:
        if self.is_done:
            raise self.error(expected)
        return self.tokens[self.position]
