"""The tokens of a script, read from left to right, with errors that name the line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from weir.errors import QueryError
from weir.expr.dialect import SparkText

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.LT)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.GT)
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_SIGNS = ("+", "-")


def statements(text: str) -> list[Reader]:
    """The statements of a script, apart at semicolons; comments are gone.

    >>> [reader.source(0, 1) for reader in statements("a 'x;y'; -- c" + chr(10) + "b d;")]
    ["a 'x;y'", 'b d']
    """
    try:
        tokens = tokenize(text, dialect=SparkText)
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise QueryError(f"the script cannot be read: {reason}; is a quote or a comment left open?") from None
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [Reader(text, part) for part in found if part]


def is_word(token: Token, *words: str) -> bool:
    """True for one of these keywords, unquoted and in any case."""
    return token.token_type not in _QUOTED and token.text.upper() in words


class Reader:
    """One statement, and how far it has been read."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._text = text
        self._next = 0

    @property
    def line(self) -> int:
        """The line of the next token, or of the last one."""
        return self.tokens[min(self._next, len(self.tokens) - 1)].line

    @property
    def place(self) -> int:
        """The number of the next token."""
        return self._next

    @property
    def is_done(self) -> bool:
        """True if nothing is left."""
        return self._next >= len(self.tokens)

    def source(self, first: int, last: int) -> str:
        """The script's own text from one token to another."""
        return self._text[self.tokens[first].start : self.tokens[last].end + 1]

    def skip_to(self, place: int) -> None:
        """Go on reading at a token."""
        self._next = place

    def at(self, *words: str) -> bool:
        """True if the next token is one of these keywords."""
        return not self.is_done and is_word(self.tokens[self._next], *words)

    def took(self, *words: str) -> bool:
        """Read these keywords if all of them come next."""
        ahead = self.tokens[self._next : self._next + len(words)]
        if len(ahead) < len(words) or not all(map(is_word, ahead, words)):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Read these keywords, or fail."""
        for word in words:
            if not self.took(word):
                self.fail(f"expected {' '.join(words)}")

    def name(self, what: str) -> str:
        """Read a name, in backticks or a plain word."""
        token = self._peek(f"expected {what}")
        plain = token.text.replace("_", "a").isalnum() and token.token_type != TokenType.STRING
        if token.token_type != TokenType.IDENTIFIER and not plain:
            self.fail(f"expected {what}")
        self._next += 1
        return str(token.text)

    def dotted(self, what: str) -> str:
        """Read names with dots between them."""
        parts = [self.name(what)]
        while not self.is_done and self.tokens[self._next].token_type == TokenType.DOT:
            self._next += 1
            parts.append(self.name(what))
        return ".".join(parts)

    def string(self, expected: str) -> str:
        """Read text in quotes."""
        token = self._peek(expected)
        if token.token_type != TokenType.STRING:
            self.fail(expected)
        self._next += 1
        return str(token.text)

    def is_string(self) -> bool:
        """True if text in quotes comes next."""
        return not self.is_done and self.tokens[self._next].token_type == TokenType.STRING

    def value(self) -> str:
        """Read the value of an option: text in quotes, a number, true or false."""
        expected = "expected a value in quotes, a number, true or false"
        token = self._peek(expected)
        if token.token_type == TokenType.STRING or is_word(token, "TRUE", "FALSE"):
            self._next += 1
            return str(token.text)
        sign = str(token.text) if token.text in _SIGNS else ""
        self._next += bool(sign)
        if self._peek(expected).token_type != TokenType.NUMBER:
            self.fail(expected)
        self._next += 1
        return sign + str(self.tokens[self._next - 1].text)

    def group(self, opening: str, part: str) -> list[tuple[int, int]]:
        """Read what stands in parentheses: the first and last token of each part between commas.

        Without a parenthesis it fails with `opening`, and with `part` where there is nothing.
        """
        opened = self._next
        if self._peek(opening).token_type != TokenType.L_PAREN:
            self.fail(opening)
        depth, parts, start = 0, [], opened + 1
        for place in range(opened, len(self.tokens)):
            kind = self.tokens[place].token_type
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0 or (depth == 1 and kind == TokenType.COMMA):
                if start == place:
                    self.skip_to(place)
                    self.fail(part)
                parts.append((start, place - 1))
                start = place + 1
            if depth == 0:
                self._next = place + 1
                return parts
        raise self.failure("this ( is never closed")

    def rest(self) -> str:
        """Read the text up to the end; never nothing."""
        if self.is_done:
            self.fail("expected a length like 5 SECONDS")
        first, self._next = self._next, len(self.tokens)
        return self.source(first, self._next - 1)

    def fail(self, expected: str) -> NoReturn:
        """Refuse the next token, by line and text."""
        raise self.failure(expected)

    def failure(self, expected: str) -> QueryError:
        """The error that refuses the next token."""
        found = "the statement ends" if self.is_done else f"found '{self.source(self._next, self._next)}'"
        return QueryError(f"line {self.line}: {expected}, but {found}")

    def _peek(self, expected: str) -> Token:
        if self.is_done:
            self.fail(expected)
        return self.tokens[self._next]
