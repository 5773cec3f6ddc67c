"""SQL functions over strings; positions count characters from 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import Function, Rule, Signature, check_count, take, types_of, wrap, wrong_types
from weir.expr.types import BOOLEAN, INT, STRING, is_float
from weir.expr.values import Value, from_numbers, is_null_constant, keep_nulls, map_arrays, null, per_constant

MAX_LENGTH = 2**31 - 1
# The most bytes of a text that is made longer.
_MOST_BYTES = 1 << 28
# Cells of the table of edit distances that are computed together, so that they stay in the processor's cache.
_CELLS_PER_CHUNK = 1 << 20
_TWO = (STRING, STRING)
# Letters whose upper case has more than one letter; Arrow maps letters one to one.
_LONG_UPPER = {chr(i): chr(i).upper() for i in range(0x80, 0x10000) if len(chr(i).upper()) > 1}


def _with_settings(rule: Rule, fn: Callable[..., Value]) -> Function:
    """Make a function of a kernel that takes the text and Python constants; NULL if a constant is NULL."""

    def run(out: pa.DataType, *values: Value) -> Value:
        def run_kernel(text: Value, *settings: Any) -> Value:
            if any(setting is None for setting in settings) or is_null_constant(text):
                return null(out) if isinstance(text, pa.Scalar) else pa.nulls(len(text), out)
            return fn(text, *settings)

        return per_constant(run_kernel, *values)

    return Function(rule, run)


def _is_ascii(text: Value) -> bool:
    ascii = pc.string_is_ascii(text)
    return bool((pc.all(ascii) if isinstance(ascii, pa.Array) else ascii).as_py())


def _upper(text: Value) -> Value:
    if _is_ascii(text):
        return pc.ascii_upper(text)
    matches = pc.match_substring_regex(text, f"[{''.join(_LONG_UPPER)}]")
    if (pc.any(matches) if isinstance(matches, pa.Array) else matches).as_py():
        for letter, long in _LONG_UPPER.items():
            text = pc.replace_substring(text, letter, long)
    return pc.utf8_upper(text)


def _lower(text: Value) -> Value:
    """Convert to lower case."""
    if _is_ascii(text):
        return pc.ascii_lower(text)
    lowered = pc.utf8_lower(pc.replace_substring(text, "İ", "i̇"))
    return map_arrays(_lower_sigmas, text, lowered)


def _lower_sigmas(text: pa.Array, lowered: pa.Array) -> pa.Array:
    """Replace the texts with a sigma, which has its own form at the end of a word."""
    has_sigma = pc.match_substring(text, "Σ")
    if not pc.any(has_sigma).as_py():
        return lowered
    words = [word.lower() for word in text.filter(has_sigma).to_pylist() if word is not None]
    return pc.replace_with_mask(lowered, pc.fill_null(has_sigma, False), pa.array(words, text.type))


def _substring(text: Value, start: int, length: int = MAX_LENGTH) -> Value:
    if length <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    if start < 0:
        return pc.utf8_slice_codeunits(text, start, min(start + length, 0) or None)
    begin = max(start - 1, 0)
    return pc.utf8_slice_codeunits(text, begin, min(begin + length, MAX_LENGTH))


def _replace(text: Value, search: str, by: str = "") -> Value:
    return pc.replace_substring(text, search, by) if search else text


def _repeat(text: Value, times: int) -> Value:
    longest = pc.max(pc.binary_length(text)) if isinstance(text, pa.Array) else pc.binary_length(text)
    if (longest.as_py() or 0) * times > _MOST_BYTES:
        raise OverflowError(f"{times} times the text is too long")
    return pc.binary_repeat(text, max(times, 0))


def _positions(search: str, text: pa.Array) -> pa.Array:
    if not search:
        return pc.cast(pc.if_else(pc.is_valid(text), 1, null(INT)), INT)
    # Arrow's own search returns positions of bytes; count the characters before the match instead.
    before = pc.list_element(pc.split_pattern(text, search, max_splits=1), 0)
    return pc.cast(pc.if_else(pc.match_substring(text, search), pc.add(pc.utf8_length(before), 1), 0), INT)


def _trim(kernel: Any, text: Value, characters: str = " ") -> Value:
    return kernel(text, characters=characters) if characters else text


def _pad(left: bool, text: Value, length: int, filler: str) -> Value:
    length = max(length, 0)
    start = pc.utf8_slice_codeunits(text, 0, length)
    if not filler:
        return start
    if length * len(filler.encode()) > _MOST_BYTES:
        raise OverflowError(f"text of {length} characters is too long")
    return map_arrays(partial(_join_padding, left, filler), start, pc.subtract(length, pc.utf8_length(start)))


def _join_padding(left: bool, filler: str, text: pa.Array, missing: pa.Array) -> pa.Array:
    counts = pc.unique(missing.drop_null())
    fillers = pa.array([(filler * (n // len(filler) + 1))[:n] for n in counts.to_pylist()], STRING)
    padding = fillers.take(pc.index_in(missing, value_set=counts))
    return pc.binary_join_element_wise(*((padding, text) if left else (text, padding)), "")


def _like_pattern(pattern: str, escape: str = "\\") -> str:
    """Translate a LIKE pattern to a regular expression.

    >>> _like_pattern("a%_")
    '(?s)^a.*.$'
    """
    out, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            out.append(re.escape(_escaped(next(characters, ""), escape)))
        else:
            out.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return f"(?s)^{''.join(out)}$"


def _escaped(character: str, escape: str) -> str:
    if character not in ("%", "_", escape):
        raise pa.ArrowInvalid(f"in a pattern, {escape} stands before %, _ or {escape} only")
    return character


def _like(text: Value, pattern: str, escape: str = "\\") -> Value:
    body = pattern.strip("%")
    if body and not set(body) & {"%", "_", escape} and escape != "%":
        if pattern == f"%{body}%":
            return pc.match_substring(text, body)
        if pattern in (f"{body}%", f"%{body}"):
            return (pc.starts_with if pattern[-1] == "%" else pc.ends_with)(text, body)
    if isinstance(text, pa.Array) and text.null_count == len(text):
        return pa.nulls(len(text), BOOLEAN)  # whatever the pattern
    # RE2's $ without (?m) matches at the end of the text only, not before a last newline.
    return pc.match_substring_regex(text, _like_pattern(pattern, escape))


def _rlike_rule(args: Sequence[Expr]) -> Signature:
    signature = take(BOOLEAN, *_TWO)(args)
    pattern = args[1]
    if not isinstance(pattern, Literal):
        raise QueryError("takes a constant regular expression")
    if pattern.value is not None:
        try:
            pc.match_substring_regex(pa.scalar(""), pattern.value)
        except pa.ArrowInvalid as error:
            raise QueryError(f"cannot use the regular expression {pattern}: {error}") from error
    return signature


def _concat_rule(args: Sequence[Expr]) -> Signature:
    """Accept strings, or binaries; values of other types except floats are cast to strings."""
    check_count(args, 1, 99)
    if all(pa.types.is_binary(type) for type in types_of(args)):
        return types_of(args), pa.binary()
    if any(is_float(type) or pa.types.is_nested(type) for type in types_of(args)):
        raise wrong_types(args, "strings")
    return [STRING] * len(args), STRING


def _concat(out: pa.DataType, *parts: Value) -> Value:
    """Join the parts; NULL if a part is NULL."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"" if pa.types.is_binary(out) else "", out))


def _concat_ws(out: pa.DataType, separator: Value, *parts: Value) -> Value:
    """Join the parts that are not NULL by a separator."""
    if not parts:
        return pc.if_else(pc.is_valid(separator), "", null(out))
    return map_arrays(_join_valid, separator, *parts)


def _join_valid(separator: pa.Array, first: pa.Array, *others: pa.Array) -> pa.Array:
    # Arrow leaves out rows without any valid part, so that what follows would move up.
    if others or first.null_count:
        first = pc.if_else(pc.is_null(pc.coalesce(first, *others)), "", first)
    return pc.binary_join_element_wise(first, *others, separator, null_handling="skip")


def _length_rule(args: Sequence[Expr]) -> Signature:
    check_count(args, 1)
    type = args[0].type
    return ([type] if pa.types.is_binary(type) else take(INT, STRING)(args)[0]), INT


def _length(value: Value) -> Value:
    """Count the characters of a string or the bytes of a binary."""
    return pc.binary_length(value) if pa.types.is_binary(value.type) else pc.utf8_length(value)


def _levenshtein(left: Value, right: Value) -> Value:
    """Count the single-character edits that turn one string into the other (Wagner and Fischer 1974)."""
    if is_null_constant(left) or is_null_constant(right):
        return null(INT)
    return map_arrays(_distances, left, right)


def _distances(left: pa.Array, right: pa.Array) -> pa.Array:
    longest = max(pc.max(pc.utf8_length(side)).as_py() or 0 for side in (left, right))
    step = max(1, _CELLS_PER_CHUNK // (longest + 1))
    parts = [_distances_of_chunk(left[i : i + step], right[i : i + step]) for i in range(0, len(left), step)]
    return keep_nulls(from_numbers(np.concatenate(parts or [np.empty(0)]), INT), left, right)


def _distances_of_chunk(left: pa.Array, right: pa.Array) -> Any:
    left_codes, left_lengths = _code_points(left)
    right_codes, right_lengths = _code_points(right)
    rows = np.arange(len(left))
    above = np.repeat(np.arange(right_codes.shape[1] + 1, dtype=np.int32)[:, None], len(left), axis=1)
    distances = above[right_lengths, rows]
    for i in range(left_codes.shape[1]):
        above = _next_table_row(above, left_codes[:, i], right_codes)
        ends = left_lengths == i + 1
        distances[ends] = above[right_lengths[ends], rows[ends]]
    return distances


def _next_table_row(above: Any, code: Any, right_codes: Any) -> Any:
    row = np.empty_like(above)
    row[0] = above[0] + 1
    for j in range(right_codes.shape[1]):
        substituted = above[j] + (code != right_codes[:, j])
        row[j + 1] = np.minimum(np.minimum(above[j + 1], row[j]) + 1, substituted)
    return row


def _code_points(text: pa.Array) -> tuple[Any, Any]:
    """Return a matrix of code points, a row per string padded with zeros, and the strings' lengths."""
    text = pc.fill_null(text, "")
    lengths = pc.utf8_length(text).to_numpy()
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    joined = data.slice(ends[0], ends[-1] - ends[0]).to_pybytes().decode() if data else ""
    codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    table = np.zeros((len(text), int(lengths.max(initial=0))), np.uint32)
    table[np.arange(table.shape[1]) < lengths[:, None]] = codes
    return table, lengths


FUNCTIONS: dict[str, Function] = {
    "upper": wrap(take(STRING, STRING), _upper),
    "lower": wrap(take(STRING, STRING), _lower),
    "length": wrap(_length_rule, _length),
    "reverse": wrap(take(STRING, STRING), pc.utf8_reverse),
    "substring": _with_settings(take(STRING, STRING, INT, INT, optional=1), _substring),
    "left": _with_settings(take(STRING, STRING, INT), lambda text, length: _substring(text, 1, length)),
    "right": _with_settings(take(STRING, STRING, INT), lambda text, n: _substring(text, -n, n)),
    "concat": Function(_concat_rule, _concat),
    "concat_ws": Function(_concat_rule, _concat_ws),
    "trim": _with_settings(take(STRING, *_TWO, optional=1), partial(_trim, pc.utf8_trim)),
    "ltrim": _with_settings(take(STRING, *_TWO, optional=1), partial(_trim, pc.utf8_ltrim)),
    "rtrim": _with_settings(take(STRING, *_TWO, optional=1), partial(_trim, pc.utf8_rtrim)),
    "replace": _with_settings(take(STRING, *_TWO, STRING, optional=1), _replace),
    "repeat": _with_settings(take(STRING, STRING, INT), _repeat),
    "startswith": _with_settings(take(BOOLEAN, *_TWO), pc.starts_with),
    "endswith": _with_settings(take(BOOLEAN, *_TWO), pc.ends_with),
    "contains": _with_settings(take(BOOLEAN, *_TWO), pc.match_substring),
    "instr": _with_settings(take(INT, *_TWO), lambda text, part: map_arrays(partial(_positions, part), text)),
    "lpad": _with_settings(take(STRING, STRING, INT, STRING), partial(_pad, True)),
    "rpad": _with_settings(take(STRING, STRING, INT, STRING), partial(_pad, False)),
    "like": _with_settings(take(BOOLEAN, *_TWO, STRING, optional=1), _like),
    "rlike": _with_settings(_rlike_rule, pc.match_substring_regex),
    "levenshtein": wrap(take(INT, *_TWO), _levenshtein),
}
ALIASES = {"ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length",
           "len": "length", "substr": "substring", "regexp_like": "rlike", "regexp": "rlike"}  # fmt: skip
