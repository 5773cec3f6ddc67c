"""Edit distance of two strings, for all rows at once (Wagner and Fischer 1974)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.values import Value, from_numbers, is_null_constant, keep_nulls, map_arrays, null

# Cells of the distance table that are computed together, so that they stay in the processor's cache.
_CELLS_PER_CHUNK = 1 << 20


def levenshtein(left: Value, right: Value) -> Value:
    """Count the single-character edits that turn one string into the other."""
    if is_null_constant(left) or is_null_constant(right):
        return null(pa.int32())
    return map_arrays(_levenshtein, left, right)


def _levenshtein(left: pa.Array, right: pa.Array) -> pa.Array:
    longest = max(pc.max(pc.utf8_length(side)).as_py() or 0 for side in (left, right))
    step = max(1, _CELLS_PER_CHUNK // (longest + 1))
    parts = [_distances(left[i : i + step], right[i : i + step]) for i in range(0, len(left), step)]
    return keep_nulls(from_numbers(np.concatenate(parts or [np.empty(0)]), pa.int32()), left, right)


def _distances(left: pa.Array, right: pa.Array) -> Any:
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
