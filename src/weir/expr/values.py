"""The values of evaluation, Arrow arrays or scalars for constants, and their conversion to NumPy and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Value: TypeAlias = pa.Array | pa.Scalar
Numbers = npt.NDArray[Any]


class Failing(NamedTuple):
    """The value of a call, and the rows for which it fails, for functions whose value may be NULL."""

    value: Value
    rows: npt.NDArray[np.bool_]


def null(type: pa.DataType) -> pa.Scalar:
    """Return NULL of a type."""
    return pa.scalar(None, type)


def is_null_constant(value: Value) -> bool:
    """True for the constant NULL."""
    return isinstance(value, pa.Scalar) and not value.is_valid


def numpy_type(type: pa.DataType) -> np.dtype[Any]:
    """Return the NumPy type of the buffer behind a fixed-width Arrow type."""
    if pa.types.is_timestamp(type) or pa.types.is_duration(type):
        return np.dtype(np.int64)
    return np.dtype(np.int32 if pa.types.is_date32(type) else type.to_pandas_dtype())


def to_numbers(value: Value) -> Any:
    """View a fixed-width value as NumPy numbers without a copy; the number under a NULL is arbitrary."""
    dtype = numpy_type(value.type)
    if isinstance(value, pa.Scalar):
        return dtype.type(value.value if hasattr(value, "value") else value.as_py())
    if dtype == np.bool_:
        return pc.fill_null(value, False).to_numpy(zero_copy_only=False)
    return np.frombuffer(value.buffers()[1], dtype, len(value), value.offset * dtype.itemsize)


def from_numbers(numbers: Numbers, type: pa.DataType, valid: Numbers | None = None) -> pa.Array:
    """Make an Arrow array of NumPy numbers, NULL where `valid` is false."""
    mask = None if valid is None else np.broadcast_to(~valid, numbers.shape)
    array = pa.array(np.ascontiguousarray(numbers, numpy_type(type)), mask=mask)
    return array if array.type == type else array.view(type)


def keep_nulls(result: pa.Array, *sources: Value) -> pa.Array:
    """Set the result to NULL wherever a source array is NULL."""
    for source in sources:
        if isinstance(source, pa.Array) and source.null_count:
            result = pc.if_else(pc.is_valid(source), result, null(result.type))
    return result


def map_numbers(type: pa.DataType, fn: Callable[..., Any], *values: Value) -> Value:
    """Apply `fn` to the NumPy numbers, NULL where an argument is; `fn` may also return a validity mask."""
    if any(is_null_constant(value) for value in values):
        return null(type)
    arrays = [value for value in values if isinstance(value, pa.Array)]
    if not arrays:
        return map_arrays(lambda *ones: map_numbers(type, fn, *ones), *values)
    with np.errstate(all="ignore"):
        result = fn(*map(to_numbers, values))
    numbers, valid = result if isinstance(result, tuple) else (result, None)
    return keep_nulls(from_numbers(numbers, type, valid), *arrays)


def as_array(value: Value, rows: int) -> pa.Array:
    """Repeat a scalar `rows` times; an array stays as it is."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def map_arrays(fn: Callable[..., pa.Array], *values: Value) -> Value:
    """Apply `fn`, which takes arrays of one length, to arrays and scalars; scalars alone give a scalar."""
    lengths = [len(value) for value in values if isinstance(value, pa.Array)]
    rows = lengths[0] if lengths else 1
    result = fn(*(as_array(value, rows) for value in values))
    return result if lengths else result[0]


def null_where(condition: Value, value: Value) -> Value:
    """Set the value to NULL where the condition is true."""
    if isinstance(condition, pa.Scalar):
        return null(value.type) if condition.as_py() else value
    return pc.if_else(pc.fill_null(condition, False), null(value.type), value)


def per_constant(fn: Callable[..., Value], value: Value, *settings: Value) -> Value:
    """Apply a kernel that takes Python constants as settings, once per distinct combination of settings."""
    if all(isinstance(setting, pa.Scalar) for setting in settings):
        return fn(value, *(setting.as_py() for setting in settings))
    rows = max(len(item) for item in (value, *settings) if isinstance(item, pa.Array))
    return _apply_grouped(fn, *(as_array(item, rows) for item in (value, *settings)))


def _apply_grouped(fn: Callable[..., Value], value: pa.Array, *settings: pa.Array) -> Value:
    if not len(value):
        return fn(value, *(None for _ in settings))
    names = [f"s{i}" for i in range(len(settings))]
    table = pa.table([*settings, pa.array(np.arange(len(value)))], names=[*names, "row"])
    groups = table.group_by(names).aggregate([("row", "list")]).combine_chunks()
    members = groups["row_list"].combine_chunks()
    constants = zip(members, groups.select(names).to_pylist(), strict=True)
    parts = [as_array(fn(value.take(rows.values), *group.values()), len(rows)) for rows, group in constants]
    return pa.concat_arrays(parts).take(pc.array_sort_indices(members.flatten()))
