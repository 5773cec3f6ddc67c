"""Convert Arrow columns to another type, also from dictionaries that Arrow itself cannot decode."""

from __future__ import annotations

import pyarrow as pa


def convert_column(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Convert the column; what does not fit is truncated, as Spark drops nanoseconds.

    >>> views = pa.array(["x", "y"], pa.string_view())
    >>> coded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), views)
    >>> convert_column(pa.chunked_array([coded]), pa.string()).to_pylist()
    ['y', None, 'x']
    """
    if _has_dictionary(column.type):
        # Polars keeps categories as dictionaries of string views, which Arrow cannot decode.
        column = pa.chunked_array([_decode(chunk) for chunk in column.chunks] or [pa.nulls(0, type)])
    return column.cast(type, safe=False)


def _has_dictionary(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        return True
    return any(_has_dictionary(type.field(i).type) for i in range(type.num_fields))


def _decode(array: pa.Array) -> pa.Array:
    type = array.type
    if not _has_dictionary(type):
        return array
    if pa.types.is_dictionary(type):
        return _copy_views(_decode(array.dictionary)).take(array.indices)
    if pa.types.is_struct(type):
        parts = [_decode(array.field(i)) for i in range(type.num_fields)]
        names = [field.name for field in type]
        return pa.StructArray.from_arrays(parts, names, mask=array.is_null())
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return _replace_items(array, _decode(array.values))
    return array


def _copy_views(array: pa.Array) -> pa.Array:
    if pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array.cast(pa.binary()) if pa.types.is_binary_view(array.type) else array


def _replace_items(array: pa.Array, items: pa.Array) -> pa.Array:
    """Replace the items of the lists by equally many others."""
    if pa.types.is_fixed_size_list(array.type):
        type, buffers = pa.list_(items.type, array.type.list_size), array.buffers()[:1]
    else:
        list_type = pa.large_list if pa.types.is_large_list(array.type) else pa.list_
        type, buffers = list_type(items.type), array.buffers()[:2]
    return pa.Array.from_buffers(type, len(array), buffers, offset=array.offset, children=[items])
