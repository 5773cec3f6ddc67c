"""SQL functions over arrays and structs, and the cosine similarity of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.comparison import equal
from weir.expr.nodes import Expr, Literal
from weir.expr.type_rules import (
    BOOLEAN,
    DOUBLE,
    INT,
    Function,
    Signature,
    check_count,
    types_of,
    wrap,
    wrong_comparison,
    wrong_types,
)
from weir.expr.types import common_type, is_array, is_float, is_integer
from weir.expr.values import Value, from_numbers, keep_nulls, map_arrays, to_numbers


def _split_items(lists: pa.Array) -> tuple[Any, Any, pa.Array]:
    """Return each row's first position among all items, its number of items, and all items."""
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        starts = (np.arange(len(lists)) + lists.offset) * size
        return starts, np.full(len(lists), size), lists.values
    offsets = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, 4 * lists.offset)
    return offsets[:-1].astype(np.int64), np.diff(offsets), lists.values


def array_rule(out: pa.DataType) -> Any:
    """Make a rule for one array."""

    def rule(args: Sequence[Expr]) -> Signature:
        check_count(args, 1)
        if not is_array(args[0].type):
            raise wrong_types(args, "an array")
        return types_of(args), out

    return rule


def item_rule(args: Sequence[Expr]) -> Signature:
    """Accept an array and an integer."""
    check_count(args, 2)
    if not is_array(args[0].type) or not is_integer(args[1].type):
        raise wrong_types(args, "an array and a whole number")
    return (args[0].type, pa.int64()), args[0].type.value_type


def item(lists: Value, index: Value) -> Value:
    """Return `lists[index]`, counted from 0; NULL outside of the array."""
    return map_arrays(lambda *arrays: _take_items(lambda index, lengths: index, *arrays), lists, index)


def element_at(lists: Value, index: Value) -> Value:
    """Return the item counted from 1, or from the end if negative; NULL outside of the array."""
    return map_arrays(lambda *arrays: _take_items(_count_from_zero, *arrays), lists, index)


def _count_from_zero(index: Any, lengths: Any) -> Any:
    return np.where(index > 0, index - 1, np.where(index == 0, -1, lengths + index))


def _take_items(to_position: Any, lists: pa.Array, index: pa.Array) -> pa.Array:
    starts, lengths, items = _split_items(lists)
    position = to_position(to_numbers(index), lengths)
    inside = (position >= 0) & (position < lengths)
    places = keep_nulls(
        from_numbers(starts + np.where(inside, position, 0), pa.int64(), inside), lists, index
    )
    return items.take(places)


def contains_rule(args: Sequence[Expr]) -> Signature:
    """Accept an array and a value that its items can be compared with."""
    check_count(args, 2)
    if not is_array(args[0].type):
        raise wrong_types(args, "an array first")
    items = args[0].type.value_type
    if common_type(items, args[1].type) != items:
        raise wrong_comparison([Literal(None, items), args[1]])
    return (args[0].type, items), BOOLEAN


def array_contains(lists: Value, wanted: Value) -> Value:
    """True if an item equals the value; NULL if none does but an item is NULL."""
    return map_arrays(_array_contains, lists, wanted)


def _array_contains(lists: pa.Array, wanted: pa.Array) -> pa.Array:
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    same = equal(items, wanted.take(parents))
    contained = _any_per_row(pc.fill_null(same, False), parents, len(lists))
    has_null = _any_per_row(pc.is_null(items), parents, len(lists))
    return keep_nulls(pa.array(contained, mask=has_null & ~contained), lists, wanted)


def _any_per_row(mask: pa.Array, parents: pa.Array, rows: int) -> Any:
    hits = np.zeros(rows, np.bool_)
    hits[parents.to_numpy()[mask.to_numpy(zero_copy_only=False)]] = True
    return hits


def field_rule(args: Sequence[Expr]) -> Signature:
    """Accept a struct and the name of a field."""
    struct, name = args
    assert isinstance(name, Literal)
    if not pa.types.is_struct(struct.type):
        raise wrong_types(args[:1], f"a struct to take field '{name.value}' of")
    matches = [field for field in struct.type if field.name.lower() == name.value.lower()]
    if len(matches) != 1:
        names = [field.name for field in struct.type]
        raise QueryError(f"needs exactly one field '{name.value}'; the struct has {names}")
    return types_of(args), matches[0].type


def field(struct: Value, name: Value) -> Value:
    """Return a field of a struct; NULL where the struct is."""
    wanted = name.as_py().lower()
    return pc.struct_field(
        struct, next(i for i, field in enumerate(struct.type) if field.name.lower() == wanted)
    )


def cosine_rule(args: Sequence[Expr]) -> Signature:
    """Accept two vectors of floats; if both have a fixed length, the same length."""
    check_count(args, 2)
    if not all(is_array(arg.type) and is_float(arg.type.value_type) for arg in args):
        raise wrong_types(args, "two arrays of float or double")
    sizes = {arg.type.list_size for arg in args if pa.types.is_fixed_size_list(arg.type)}
    if len(sizes) > 1:
        raise QueryError(f"compares vectors of one length, not of {' and '.join(map(str, sorted(sizes)))}")
    return types_of(args), DOUBLE


def cosine(left: Value, right: Value) -> Value:
    """Return the cosine of two vectors; NULL if lengths differ, an item is NULL or NaN, or a norm is zero."""
    return map_arrays(_cosine, left, right)


def _cosine(left: pa.Array, right: pa.Array) -> pa.Array:
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


def size(lists: Value) -> Value:
    """Return the number of items, -1 for NULL as in Spark."""
    return pc.fill_null(pc.list_value_length(lists), pa.scalar(-1, INT))


FUNCTIONS: dict[str, Function] = {
    "size": wrap(array_rule(INT), size),
    "array_size": wrap(array_rule(INT), pc.list_value_length),
    "array_contains": wrap(contains_rule, array_contains),
    "get": wrap(item_rule, item),
    "element_at": wrap(item_rule, element_at),
    ".": wrap(field_rule, field),
    "cosine": wrap(cosine_rule, cosine),
}
ALIASES = {"cardinality": "size"}
