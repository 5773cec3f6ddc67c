"""What evaluation passes around, an Arrow array or a scalar for a constant, and the way to NumPy and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

Value: TypeAlias = pa.Array | pa.Scalar
Numbers = npt.NDArray[Any]


def null(type: pa.DataType) -> pa.Scalar:
    """NULL of a type."""
    return pa.scalar(None, type)


def is_null_constant(value: Value) -> bool:
    """Whether a value is the constant NULL."""
    return isinstance(value, pa.Scalar) and not value.is_valid


def constant(value: Value) -> Any:
    """The Python value of a constant, None for NULL or if it is no constant."""
    return value.as_py() if isinstance(value, pa.Scalar) else None


def storage(type: pa.DataType) -> np.dtype[Any]:
    """The NumPy type of the numbers behind a fixed-width type."""
    if is_a.is_timestamp(type) or is_a.is_duration(type):
        return np.dtype(np.int64)
    return np.dtype(np.int32 if is_a.is_date32(type) else type.to_pandas_dtype())


def raw(value: Value) -> Any:
    """The numbers behind a fixed-width value without a copy; what stands under a NULL is arbitrary."""
    dtype = storage(value.type)
    if isinstance(value, pa.Scalar):
        plain = value.value if hasattr(value, "value") else value.as_py()
        return dtype.type(plain)
    if dtype == np.bool_:
        return pc.fill_null(value, False).to_numpy(zero_copy_only=False)
    return np.frombuffer(value.buffers()[1], dtype, len(value), value.offset * dtype.itemsize)


def array(numbers: Numbers, type: pa.DataType, valid: Numbers | None = None) -> pa.Array:
    """An Arrow array over NumPy numbers, NULL where `valid` is false."""
    mask = None if valid is None else np.broadcast_to(~valid, numbers.shape)
    dtype = storage(type)
    made = pa.array(np.ascontiguousarray(numbers, dtype), mask=mask)
    return made if made.type == type else made.view(type)


def keep_nulls(result: pa.Array, *sources: Value) -> pa.Array:
    """The result, with NULL wherever a source array has one."""
    for source in sources:
        if isinstance(source, pa.Array) and source.null_count:
            result = pc.if_else(pc.is_valid(source), result, null(result.type))
    return result


def elementwise(type: pa.DataType, fn: Callable[..., Any], *values: Value) -> Value:
    """`fn` over the raw numbers, NULL where an argument is; it may return a validity mask as well."""
    if any(is_null_constant(value) for value in values):
        return null(type)
    arrays = [value for value in values if isinstance(value, pa.Array)]
    if not arrays:
        return elementwise(type, fn, *(as_array(value, 1) for value in values))[0]
    with np.errstate(all="ignore"):
        made = fn(*map(raw, values))
    numbers, valid = made if isinstance(made, tuple) else (made, None)
    return keep_nulls(array(numbers, type, valid), *arrays)


def as_array(value: Value, rows: int) -> pa.Array:
    """The value as an array of that many rows."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def null_where(condition: Value, value: Value) -> Value:
    """The value, NULL where the condition is true."""
    if isinstance(condition, pa.Scalar):
        return null(value.type) if condition.as_py() else value
    return pc.if_else(pc.fill_null(condition, False), null(value.type), value)


def per_constant(fn: Callable[..., Value], value: Value, *settings: Value) -> Value:
    """`fn(value, *settings)` for kernels that take constant settings: once per distinct combination."""
    if all(isinstance(setting, pa.Scalar) for setting in settings):
        return fn(value, *(setting.as_py() for setting in settings))
    rows = max(len(item) for item in (value, *settings) if isinstance(item, pa.Array))
    return _grouped(fn, as_array(value, rows), [as_array(setting, rows) for setting in settings])


def _grouped(fn: Callable[..., Value], value: pa.Array, settings: list[pa.Array]) -> Value:
    if not len(value):
        return fn(value, *(None for _ in settings))
    names = [f"s{i}" for i in range(len(settings))]
    table = pa.table([*settings, pa.array(np.arange(len(value)))], names=[*names, "row"])
    groups = table.group_by(names).aggregate([("row", "list")]).combine_chunks()
    members = groups["row_list"].combine_chunks()
    parts = []
    for number, group in enumerate(groups.select(names).to_pylist()):
        rows = members[number].values
        parts.append(as_array(fn(value.take(rows), *group.values()), len(rows)))
    return pa.concat_arrays(parts).take(pc.array_sort_indices(members.flatten()))
