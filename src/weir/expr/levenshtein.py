"""The edit distance of two texts, for all rows at once (Wagner and Fischer, 1974)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.expr.values import Value, array, as_array, is_null_constant, keep_nulls, null

# Cells of one table row times the rows worked on together; keeps the tables inside the cache.
_CELLS = 1 << 20


def levenshtein(left: Value, right: Value) -> Value:
    """How many single-character edits turn one text into the other."""
    if is_null_constant(left) or is_null_constant(right):
        return null(pa.int32())
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return levenshtein(as_array(left, 1), as_array(right, 1))[0]
    rows = len(left) if isinstance(left, pa.Array) else len(right)
    left, right = as_array(left, rows), as_array(right, rows)
    longest = max(pc.max(pc.utf8_length(side)).as_py() or 0 for side in (left, right))
    step = max(1, _CELLS // (longest + 1))
    parts = [_distances(left[i : i + step], right[i : i + step]) for i in range(0, rows, step)]
    return keep_nulls(array(np.concatenate(parts or [np.empty(0)]), pa.int32()), left, right)


def _distances(left: pa.Array, right: pa.Array) -> Any:
    one, one_length = _characters(left)
    other, other_length = _characters(right)
    rows = np.arange(len(left))
    above = np.repeat(np.arange(other.shape[1] + 1, dtype=np.int32)[:, None], len(left), axis=1)
    answer = above[other_length, rows]
    for i in range(one.shape[1]):
        above = _next_row(above, one[:, i], other)
        ends = one_length == i + 1
        answer[ends] = above[other_length[ends], rows[ends]]
    return answer


def _next_row(above: Any, character: Any, other: Any) -> Any:
    row = np.empty_like(above)
    row[0] = above[0] + 1
    for j in range(other.shape[1]):
        change = above[j] + (character != other[:, j])
        row[j + 1] = np.minimum(np.minimum(above[j + 1], row[j]) + 1, change)
    return row


def _characters(text: pa.Array) -> tuple[Any, Any]:
    text = pc.fill_null(text, "")
    lengths = pc.utf8_length(text).to_numpy()
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    joined = data.slice(ends[0], ends[-1] - ends[0]).to_pybytes().decode() if data else ""
    codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    table = np.zeros((len(text), int(lengths.max(initial=0))), np.uint32)
    table[np.arange(table.shape[1]) < lengths[:, None]] = codes
    return table, lengths
