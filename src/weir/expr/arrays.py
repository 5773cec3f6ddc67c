"""SQL functions over arrays and structs, and the cosine similarity of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.conditional import equal
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import (
    Function,
    Rule,
    Signature,
    always,
    check_types,
    types_of,
    wrap,
    wrong_comparison,
    wrong_types,
)
from weir.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, common_type, is_array, is_float, is_integer
from weir.expr.values import Failing, Value, as_array, from_numbers, keep_nulls, map_arrays, to_numbers


def _split_items(lists: pa.Array) -> tuple[Any, Any, pa.Array]:
    """Return each row's first position among all items, its number of items, and all items."""
    if pa.types.is_fixed_size_list(lists.type):
        size, rows = lists.type.list_size, np.arange(len(lists))
        return (rows + lists.offset) * size, np.full(len(lists), size), lists.values
    offsets = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, 4 * lists.offset)
    return offsets[:-1].astype(np.int64), np.diff(offsets), lists.values


def _size_rule(args: Sequence[Expr]) -> Signature:
    check_types(args, "an array", is_array)
    return types_of(args), INT


def _item_rule(args: Sequence[Expr]) -> Signature:
    if args and pa.types.is_map(args[0].type):
        raise QueryError("takes an array, not a map; read the map's key into a column before the join")
    check_types(args, "an array and a whole number", is_array, is_integer)
    return (args[0].type, BIGINT), args[0].type.value_type


def _count_rule(args: Sequence[Expr]) -> Signature:
    """Accept an array and a position that is no bigint."""
    signature = _item_rule(args)
    if args[1].type == BIGINT:
        raise wrong_types(args, "an array and an int")
    return signature


def _get_rule(args: Sequence[Expr]) -> Signature:
    (array, _), out = _item_rule(args)
    return (array, INT), out


def _wrap_index(index: Any, lengths: Any) -> Any:
    # Spark takes the lower half of a bigint.
    return index.astype(np.int32).astype(np.int64)


def _item(rule: Rule, to_position: Callable[[Any, Any], Any], **properties: Any) -> Function:
    """Make a function that returns the item at a position; NULL outside of the array."""
    run = partial(map_arrays, partial(_take_items, to_position))
    strict = partial(_item_strictly, to_position)
    return Function(rule, lambda _, *values: run(*values), strict, **properties)


def _item_strictly(to_position: Any, out: pa.DataType, lists: Value, index: Value) -> Failing:
    """Return items and the rows whose position lies outside of the array; an item itself may be NULL."""
    lists, index = _as_arrays(lists, index)
    _, lengths, _ = _split_items(lists)
    position = to_position(to_numbers(index), lengths)
    valid = pc.and_(pc.is_valid(lists), pc.is_valid(index)).to_numpy(zero_copy_only=False)
    failed = valid & ((position < 0) | (position >= lengths))
    return Failing(_take_items(to_position, lists, index), failed)


def _item_unless_zero(out: pa.DataType, lists: Value, index: Value) -> Failing:
    """Return items, NULL outside of the array; there is no position zero."""
    lists, index = _as_arrays(lists, index)
    failed = pc.and_(pc.is_valid(lists), pc.fill_null(pc.equal(index, 0), False))
    return Failing(_take_items(_count_from_zero, lists, index), failed.to_numpy(zero_copy_only=False))


def _as_arrays(*values: Value) -> list[pa.Array]:
    rows = max((len(value) for value in values if isinstance(value, pa.Array)), default=1)
    return [as_array(value, rows) for value in values]


def _count_from_zero(index: Any, lengths: Any) -> Any:
    # SQL counts from 1, or from the end if negative.
    return np.where(index > 0, index - 1, np.where(index == 0, -1, lengths + index))


def _take_items(to_position: Any, lists: pa.Array, index: pa.Array) -> pa.Array:
    starts, lengths, items = _split_items(lists)
    position = to_position(to_numbers(index), lengths)
    inside = (position >= 0) & (position < lengths)
    places = from_numbers(starts + np.where(inside, position, 0), BIGINT, inside)
    return items.take(keep_nulls(places, lists, index))


def _contains_rule(args: Sequence[Expr]) -> Signature:
    check_types(args, "an array first", is_array, lambda _: True)
    items = args[0].type.value_type
    if pa.types.is_null(args[1].type) or common_type(items, args[1].type) != items:
        raise wrong_comparison(items, args[1].type)
    return (args[0].type, items), BOOLEAN


def _array_contains(lists: pa.Array, wanted: pa.Array) -> pa.Array:
    """True if an item equals the value; NULL if none does but an item is NULL."""
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    same = equal(items, wanted.take(parents))
    contained = _any_per_row(pc.fill_null(same, False), parents, len(lists))
    has_null = _any_per_row(pc.is_null(items), parents, len(lists))
    return keep_nulls(pa.array(contained, mask=has_null & ~contained), lists, wanted)


def _any_per_row(mask: pa.Array, parents: pa.Array, rows: int) -> Any:
    hits = np.zeros(rows, np.bool_)
    hits[parents.to_numpy()[mask.to_numpy(zero_copy_only=False)]] = True
    return hits


def _field_rule(args: Sequence[Expr]) -> Signature:
    """Accept a struct and the name of a field."""
    struct, name = args
    assert isinstance(name, Literal)
    check_types(args[:1], f"a struct to take field '{name.value}' of", pa.types.is_struct)
    matches = _find_fields(struct.type, name.value)
    if len(matches) != 1:
        names = [field.name for field in struct.type]
        raise QueryError(f"needs exactly one field '{name.value}'; the struct has {names}")
    return types_of(args), struct.type.field(matches[0]).type


def _find_fields(struct: pa.StructType, name: str) -> list[int]:
    return [i for i, field in enumerate(struct) if field.name.lower() == name.lower()]


def _cosine_rule(args: Sequence[Expr]) -> Signature:
    """Accept two vectors of floats; if both have a fixed length, the same length."""
    check_types(args, "two arrays of float or double", _is_vector, _is_vector)
    sizes = {arg.type.list_size for arg in args if pa.types.is_fixed_size_list(arg.type)}
    if len(sizes) > 1:
        raise QueryError(f"compares vectors of one length, not of {' and '.join(map(str, sorted(sizes)))}")
    return types_of(args), DOUBLE


def _is_vector(type: pa.DataType) -> bool:
    return is_array(type) and is_float(type.value_type)


def _cosine(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the cosine of two vectors; NULL if lengths differ, an item is NULL or NaN, or a norm is zero."""
    (u, u_sizes), (v, v_sizes) = _to_matrix(left), _to_matrix(right)
    width = min(u.shape[1], v.shape[1])
    u, v = u[:, :width], v[:, :width]
    with np.errstate(all="ignore"):  # vectors with an infinite item have no direction and give NULL
        dot = np.einsum("ij,ij->i", u, v)
        norm = np.sqrt(np.einsum("ij,ij->i", u, u)) * np.sqrt(np.einsum("ij,ij->i", v, v))
    valid = (u_sizes == v_sizes) & (u_sizes >= 0) & (norm > 0) & np.isfinite(norm)
    return from_numbers(np.divide(dot, norm, where=valid, out=np.zeros(len(left))), DOUBLE, valid)


def _to_matrix(lists: pa.Array) -> tuple[Any, Any]:
    """Return the vectors as rows of a matrix, padded with zeros, and their lengths, -1 if an item is NULL."""
    starts, lengths, items = _split_items(lists)
    numbers, sizes = to_numbers(items).astype(np.float64, copy=False), _sizes(lists, lengths, items)
    width = int(lengths.max(initial=0))
    if (lengths == width).all() and (np.diff(starts) == width).all() and len(starts):
        return numbers[starts[0] : starts[0] + width * len(starts)].reshape(len(starts), width), sizes
    places = np.arange(width)
    inside = places < np.where(sizes < 0, 0, lengths)[:, None]
    matrix = np.zeros(inside.shape)
    matrix[inside] = numbers[(starts[:, None] + places)[inside]]
    return matrix, sizes


def _sizes(lists: pa.Array, lengths: Any, items: pa.Array) -> Any:
    if lists.null_count:
        lengths = np.where(pc.is_valid(lists).to_numpy(zero_copy_only=False), lengths, -1)
    if not items.null_count:
        return lengths
    has_null = _any_per_row(pc.is_null(pc.list_flatten(lists)), pc.list_parent_indices(lists), len(lists))
    return np.where(has_null, -1, lengths)


def _size_of_null(out: pa.DataType, lists: Value) -> Value:
    return pc.fill_null(pc.list_value_length(lists), -1)


FUNCTIONS: dict[str, Function] = {
    # The size of NULL is NULL in ANSI mode, else -1, as in Spark.
    "size": Function(_size_rule, _size_of_null, lambda _, lists: pc.list_value_length(lists), always),
    "array_size": wrap(_size_rule, pc.list_value_length),
    "array_contains": wrap(_contains_rule, partial(map_arrays, _array_contains)),
    "get": wrap(_get_rule, partial(map_arrays, partial(_take_items, _wrap_index))),
    "[]": _item(_item_rule, _wrap_index, can_fail=always),
    "element_at": _item(_count_rule, _count_from_zero, can_fail=always),
    "try_element_at": Function(_count_rule, _item_unless_zero, _item_unless_zero, always_fails=always),
    ".": wrap(_field_rule, lambda row, name: pc.struct_field(row, _find_fields(row.type, name.as_py()))),
    "cosine": wrap(_cosine_rule, partial(map_arrays, _cosine)),
}
ALIASES = {"cardinality": "size"}
