"""Functions over text; positions count characters from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.errors import QueryError
from weir.expr.levenshtein import levenshtein
from weir.expr.nodes import Expr, Literal
from weir.expr.rules import BOOLEAN, INT, STRING, Function, Signature, counted, plain, refuse, takes, types_of
from weir.expr.types import is_float
from weir.expr.values import Value, as_array, is_null_constant, null, per_constant

MAX = 2**31 - 1
# Letters whose upper case is more than one letter, which Arrow maps one to one.
_LONG_UPPER = {chr(i): chr(i).upper() for i in range(0x80, 0x10000) if len(chr(i).upper()) > 1}


def _settled(fn: Callable[..., Value], out: pa.DataType) -> Callable[..., Value]:
    """A kernel over text and settings, run once per distinct setting; a NULL setting gives NULL."""

    def one(text: Value, *settings: Any) -> Value:
        if any(setting is None for setting in settings) or is_null_constant(text):
            return null(out) if isinstance(text, pa.Scalar) else pa.nulls(len(text), out)
        return fn(text, *settings)

    return lambda text, *settings: per_constant(one, text, *settings)


def _is_ascii(text: Value) -> bool:
    plain = pc.string_is_ascii(text)
    return bool((pc.all(plain) if isinstance(plain, pa.Array) else plain).as_py())


def upper(text: Value) -> Value:
    """Upper case."""
    if _is_ascii(text):
        return pc.ascii_upper(text)
    letters = "[" + "".join(_LONG_UPPER) + "]"
    odd = pc.match_substring_regex(text, letters)
    if (pc.any(odd) if isinstance(odd, pa.Array) else odd).as_py():
        for letter, long in _LONG_UPPER.items():
            text = pc.replace_substring(text, letter, long)
    return pc.utf8_upper(text)


def lower(text: Value) -> Value:
    """Lower case; a sigma that ends a word has a form of its own."""
    if _is_ascii(text):
        return pc.ascii_lower(text)
    final = pc.replace_substring_regex(text, r"(\p{L})Σ(\P{L}|$)", r"\1ς\2")
    return pc.utf8_lower(pc.replace_substring(final, "İ", "i̇"))


def _substring(text: Value, start: int, length: int = MAX) -> Value:
    if length <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    if start < 0:
        stop = start + length
        return pc.utf8_slice_codeunits(text, start, stop if stop < 0 else None)
    begin = max(start - 1, 0)
    return pc.utf8_slice_codeunits(text, begin, min(begin + length, MAX))


def _right(text: Value, length: int) -> Value:
    return _substring(text, 1, 0) if length <= 0 else _substring(text, -length)


def _replace(text: Value, search: str, by: str = "") -> Value:
    return pc.replace_substring(text, search, by) if search else text


def _position(text: Value, search: str) -> Value:
    # Arrow finds bytes; the characters in front of the match are what counts.
    if isinstance(text, pa.Scalar):
        return _position(as_array(text, 1), search)[0]
    if not search:
        return pc.cast(pc.if_else(pc.is_valid(text), 1, null(INT)), INT)
    front = pc.list_element(pc.split_pattern(text, search, max_splits=1), 0)
    return pc.cast(pc.if_else(pc.match_substring(text, search), pc.add(pc.utf8_length(front), 1), 0), INT)


def _trim(kernel: Any) -> Callable[..., Value]:
    return _settled(
        lambda text, characters=" ": kernel(text, characters=characters) if characters else text, STRING
    )


def _pad(text: Value, length: int, pad: str, left: bool) -> Value:
    length = max(length, 0)
    cut = pc.utf8_slice_codeunits(text, 0, length)
    if not pad:
        return cut
    missing = pc.subtract(length, pc.utf8_length(cut))
    fillers = pa.array([(pad * (n // len(pad) + 1))[:n] for n in range(length + 1)])
    filler = fillers.take(missing) if isinstance(missing, pa.Array) else fillers[missing.as_py()]
    parts = (filler, cut) if left else (cut, filler)
    return pc.binary_join_element_wise(*parts, "")


def like_pattern(pattern: str, escape: str = "\\") -> str:
    """The regular expression of a LIKE pattern.

    >>> like_pattern("a%_")
    '(?s)^a.*.$'
    """
    out, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            out.append(re.escape(next(characters, escape)))
        else:
            out.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return f"(?s)^{''.join(out)}$"


def _like(text: Value, pattern: str, escape: str = "\\") -> Value:
    body = pattern.strip("%")
    if body and not set(body) & {"%", "_", escape} and escape != "%":
        if pattern == f"%{body}%":
            return pc.match_substring(text, body)
        if pattern in (f"{body}%", f"%{body}"):
            return (pc.starts_with if pattern[-1] == "%" else pc.ends_with)(text, body)
    # RE2's $ without (?m) is the end of the text, never before a last newline.
    return pc.match_substring_regex(text, like_pattern(pattern, escape))


def like_rule(args: Sequence[Expr]) -> Signature:
    """A text, a pattern and, if wanted, the escape character."""
    return takes(BOOLEAN, STRING, STRING, STRING, optional=1)(args)


def regex_rule(out: pa.DataType, *more: pa.DataType) -> Callable[[Sequence[Expr]], Signature]:
    """A text and a constant regular expression that RE2 knows."""

    def rule(args: Sequence[Expr]) -> Signature:
        signature = takes(out, STRING, STRING, *more)(args)
        if not all(isinstance(arg, Literal) for arg in args[1:]):
            raise QueryError("takes a constant regular expression")
        _check_regex(args[1])
        return signature

    return rule


def _check_regex(pattern: Expr) -> None:
    if isinstance(pattern, Literal) and pattern.value is not None:
        try:
            pc.match_substring_regex(pa.scalar(""), pattern.value)
        except pa.ArrowInvalid as error:
            raise QueryError(f"cannot use the regular expression {pattern}: {error}") from error


def concat_rule(args: Sequence[Expr]) -> Signature:
    """Any number of texts, or of binaries; other values but floats are written out."""
    counted(args, 1, 99)
    if all(is_a.is_binary(type) for type in types_of(args)):
        return types_of(args), pa.binary()
    if any(is_float(type) or is_a.is_nested(type) for type in types_of(args)):
        raise refuse(args, "texts")
    return [STRING] * len(args), STRING


def concat(out: pa.DataType, *parts: Value) -> Value:
    """The parts one after the other, NULL if one is."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"" if is_a.is_binary(out) else "", out))


def concat_ws(out: pa.DataType, separator: Value, *parts: Value) -> Value:
    """The parts that are not NULL, separated."""
    if not parts:
        return pc.if_else(pc.is_valid(separator), "", null(out))
    return pc.binary_join_element_wise(*parts, separator, null_handling="skip")


def length_rule(args: Sequence[Expr]) -> Signature:
    """A text or a binary."""
    counted(args, 1)
    type = args[0].type
    return ([type] if is_a.is_binary(type) else takes(INT, STRING)(args)[0]), INT


def length(value: Value) -> Value:
    """Characters of a text, bytes of a binary."""
    return pc.binary_length(value) if is_a.is_binary(value.type) else pc.utf8_length(value)


def _repeat(text: Value, times: int) -> Value:
    return pc.binary_repeat(text, max(times, 0))


_TWO, _THREE = (STRING, STRING), (STRING, STRING, STRING)

FUNCTIONS: dict[str, Function] = {
    "upper": plain(takes(STRING, STRING), upper),
    "lower": plain(takes(STRING, STRING), lower),
    "length": plain(length_rule, length),
    "reverse": plain(takes(STRING, STRING), pc.utf8_reverse),
    "substring": plain(takes(STRING, STRING, INT, INT, optional=1), _settled(_substring, STRING)),
    "left": plain(takes(STRING, STRING, INT), _settled(lambda text, n: _substring(text, 1, n), STRING)),
    "right": plain(takes(STRING, STRING, INT), _settled(_right, STRING)),
    "concat": Function(concat_rule, concat),
    "concat_ws": Function(concat_rule, concat_ws),
    "trim": plain(takes(STRING, *_TWO, optional=1), _trim(pc.utf8_trim)),
    "ltrim": plain(takes(STRING, *_TWO, optional=1), _trim(pc.utf8_ltrim)),
    "rtrim": plain(takes(STRING, *_TWO, optional=1), _trim(pc.utf8_rtrim)),
    "replace": plain(takes(STRING, *_THREE, optional=1), _settled(_replace, STRING)),
    "repeat": plain(takes(STRING, STRING, INT), _settled(_repeat, STRING)),
    "startswith": plain(takes(BOOLEAN, *_TWO), _settled(pc.starts_with, BOOLEAN)),
    "endswith": plain(takes(BOOLEAN, *_TWO), _settled(pc.ends_with, BOOLEAN)),
    "contains": plain(takes(BOOLEAN, *_TWO), _settled(pc.match_substring, BOOLEAN)),
    "instr": plain(takes(INT, *_TWO), _settled(_position, INT)),
    "lpad": plain(takes(STRING, STRING, INT, STRING), _settled(lambda t, n, p: _pad(t, n, p, True), STRING)),
    "rpad": plain(takes(STRING, STRING, INT, STRING), _settled(lambda t, n, p: _pad(t, n, p, False), STRING)),
    "like": plain(like_rule, _settled(_like, BOOLEAN)),
    "rlike": plain(regex_rule(BOOLEAN), _settled(pc.match_substring_regex, BOOLEAN)),
    "levenshtein": plain(takes(INT, *_TWO), levenshtein),
}
ALIASES = {"ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length",
           "len": "length", "substr": "substring", "regexp_like": "rlike", "regexp": "rlike"}  # fmt: skip
