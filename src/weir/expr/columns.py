"""Arrow columns in another type, also where Arrow has no cast of its own."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as is_a


def convert(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """The column in another type; what does not fit is cut off, as Spark drops nanoseconds.

    >>> views = pa.array(["x", "y"], pa.string_view())
    >>> coded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), views)
    >>> convert(pa.chunked_array([coded]), pa.string()).to_pylist()
    ['y', None, 'x']
    """
    if _has_codes(column.type):
        # Arrow cannot decode a dictionary of string views, which is what Polars keeps categories in.
        column = pa.chunked_array([_decoded(chunk) for chunk in column.chunks] or [pa.nulls(0, type)])
    return column.cast(type, safe=False)


def _has_codes(type: pa.DataType) -> bool:
    if is_a.is_dictionary(type):
        return True
    return any(_has_codes(type.field(i).type) for i in range(type.num_fields))


def _decoded(array: pa.Array) -> pa.Array:
    type = array.type
    if not _has_codes(type):
        return array
    if is_a.is_dictionary(type):
        return _without_views(_decoded(array.dictionary)).take(array.indices)
    if is_a.is_struct(type):
        parts = [_decoded(array.field(i)) for i in range(type.num_fields)]
        names = [field.name for field in type]
        return pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    if is_a.is_list(type) or is_a.is_large_list(type) or is_a.is_fixed_size_list(type):
        return _list_over(array, _decoded(array.values))
    return array


def _without_views(array: pa.Array) -> pa.Array:
    if is_a.is_string_view(array.type):
        return array.cast(pa.string())
    return array.cast(pa.binary()) if is_a.is_binary_view(array.type) else array


def _list_over(array: pa.Array, items: pa.Array) -> pa.Array:
    """The same lists with other items of the same number."""
    if is_a.is_fixed_size_list(array.type):
        type, own = pa.list_(items.type, array.type.list_size), 1
    else:
        type, own = (pa.large_list if is_a.is_large_list(array.type) else pa.list_)(items.type), 2
    return pa.Array.from_buffers(
        type, len(array), array.buffers()[:own], offset=array.offset, children=[items]
    )
