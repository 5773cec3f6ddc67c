"""The bytes of each value of a column."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from weir.kernel.keys import Int64s


def count_bytes(values: pa.Array) -> Int64s:
    """Return the bytes of each value, without its validity and offsets; exact for texts, bytes and lists.

    >>> count_bytes(pa.array(["ab", None, "äöü"])).tolist()
    [2, 0, 6]
    >>> count_bytes(pa.array([[1, 2, 3], [], None], pa.list_(pa.int32()))).tolist()
    [12, 0, 0]
    """
    kind = values.type
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind):
        lengths: Int64s = pc.binary_length(values).fill_null(0).cast(pa.int64()).to_numpy()
        return lengths
    if pt.is_struct(kind):
        return reduce(np.add, map(count_bytes, values.flatten()), np.zeros(len(values), np.int64))
    if pt.is_map(kind):
        return _sum_items(values, count_bytes(values.keys) + count_bytes(values.items))
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _sum_items(values, count_bytes(values.values))
    # Of all other types values are equally wide; an average is right for them.
    return np.full(len(values), -(-values.nbytes // max(len(values), 1)), np.int64)


def _sum_items(lists: pa.Array, sizes: Int64s) -> Int64s:
    """Sum the bytes of the items of each list; `sizes` has those of all items that the array refers to."""
    sums = np.concatenate(([0], np.cumsum(sizes)))
    offsets: Int64s = lists.offsets.to_numpy()
    return np.diff(sums[offsets])
