"""Functions over arrays and structs, and the similarity of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.errors import QueryError
from weir.expr.comparison import equal
from weir.expr.nodes import Expr, Literal
from weir.expr.rules import (
    BOOLEAN,
    DOUBLE,
    INT,
    Function,
    Signature,
    counted,
    plain,
    refuse,
    types_of,
    wrong_comparison,
)
from weir.expr.types import common_type, is_array, is_float, is_integer
from weir.expr.values import Value, array, as_array, keep_nulls, raw


def _starts(lists: pa.Array) -> tuple[Any, Any, pa.Array]:
    """Where each row's items begin, how many there are, and all items."""
    if is_a.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        starts = (np.arange(len(lists)) + lists.offset) * size
        return starts, np.full(len(lists), size), lists.values
    offsets = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, 4 * lists.offset)
    return offsets[:-1].astype(np.int64), np.diff(offsets), lists.values


def array_rule(out: pa.DataType) -> Any:
    """One array."""

    def rule(args: Sequence[Expr]) -> Signature:
        counted(args, 1)
        if not is_array(args[0].type):
            raise refuse(args, "an array")
        return types_of(args), out

    return rule


def item_rule(args: Sequence[Expr]) -> Signature:
    """An array and a whole number."""
    counted(args, 2)
    if not is_array(args[0].type) or not is_integer(args[1].type):
        raise refuse(args, "an array and a whole number")
    return (args[0].type, pa.int64()), args[0].type.value_type


def item(lists: Value, index: Value) -> Value:
    """`lists[index]` counted from 0; NULL outside of the array."""
    return _item(lists, index, lambda position, lengths: position)


def element_at(lists: Value, index: Value) -> Value:
    """The item counted from 1, or from the end if negative; NULL outside of the array."""
    return _item(
        lists,
        index,
        lambda position, lengths: np.where(position > 0, position - 1, _from_end(position, lengths)),
    )


def _from_end(position: Any, lengths: Any) -> Any:
    return np.where(position == 0, -1, lengths + position)


def _item(lists: Value, index: Value, place: Any) -> Value:
    if isinstance(lists, pa.Scalar) and isinstance(index, pa.Scalar):
        return _item(as_array(lists, 1), index, place)[0]
    rows = len(lists) if isinstance(lists, pa.Array) else len(index)
    lists, index = as_array(lists, rows), as_array(index, rows)
    starts, lengths, items = _starts(lists)
    position = place(raw(index), lengths)
    inside = (position >= 0) & (position < lengths)
    places = keep_nulls(array(starts + np.where(inside, position, 0), pa.int64(), inside), lists, index)
    return items.take(places)


def contains_rule(args: Sequence[Expr]) -> Signature:
    """An array and a value its items can be compared with."""
    counted(args, 2)
    if not is_array(args[0].type):
        raise refuse(args, "an array first")
    items = args[0].type.value_type
    if common_type(items, args[1].type) != items:
        raise wrong_comparison([Literal(None, items), args[1]])
    return (args[0].type, items), BOOLEAN


def array_contains(lists: Value, wanted: Value) -> Value:
    """Whether an item equals the value; NULL if none does but an item is NULL."""
    if isinstance(lists, pa.Scalar) and isinstance(wanted, pa.Scalar):
        return array_contains(as_array(lists, 1), wanted)[0]
    rows = len(lists) if isinstance(lists, pa.Array) else len(wanted)
    lists, wanted = as_array(lists, rows), as_array(wanted, rows)
    parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
    same = equal(items, wanted.take(parents))
    found = _any_per_row(pc.fill_null(same, False), parents, rows)
    unknown = _any_per_row(pc.is_null(items), parents, rows)
    return keep_nulls(pa.array(found, mask=unknown & ~found), lists, wanted)


def _any_per_row(mask: pa.Array, parents: pa.Array, rows: int) -> Any:
    hits = np.zeros(rows, np.bool_)
    hits[parents.to_numpy()[mask.to_numpy(zero_copy_only=False)]] = True
    return hits


def field_rule(args: Sequence[Expr]) -> Signature:
    """A struct and the name of a field."""
    struct, name = args
    assert isinstance(name, Literal)
    if not is_a.is_struct(struct.type):
        raise refuse(args[:1], f"a struct to take field '{name.value}' of")
    found = [field for field in struct.type if field.name.lower() == name.value.lower()]
    if len(found) != 1:
        raise QueryError(f"finds no one field '{name.value}' in {[field.name for field in struct.type]}")
    return types_of(args), found[0].type


def field(struct: Value, name: Value) -> Value:
    """A field of a struct; NULL where the struct is."""
    wanted = name.as_py().lower()
    return pc.struct_field(
        struct, next(i for i, field in enumerate(struct.type) if field.name.lower() == wanted)
    )


def cosine_rule(args: Sequence[Expr]) -> Signature:
    """Two vectors of floats; if both have a fixed length, the same."""
    counted(args, 2)
    if not all(is_array(arg.type) and is_float(arg.type.value_type) for arg in args):
        raise refuse(args, "two arrays of float or double")
    sizes = {arg.type.list_size for arg in args if is_a.is_fixed_size_list(arg.type)}
    if len(sizes) > 1:
        raise QueryError(f"compares vectors of one length, not of {' and '.join(map(str, sorted(sizes)))}")
    return types_of(args), DOUBLE


def cosine(left: Value, right: Value) -> Value:
    """The cosine of two vectors; NULL if lengths differ, an item is NULL or no number, or one is zero."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return cosine(as_array(left, 1), as_array(right, 1))[0]
    rows = len(left) if isinstance(left, pa.Array) else len(right)
    left, right = as_array(left, rows), as_array(right, rows)
    (one, one_size), (other, other_size) = _vectors(left), _vectors(right)
    width = min(one.shape[1], other.shape[1])
    one, other = one[:, :width], other[:, :width]
    with np.errstate(all="ignore"):  # infinite vectors have no direction, which is no news
        dot, squares = (
            np.einsum("ij,ij->i", one, other),
            [np.einsum("ij,ij->i", side, side) for side in (one, other)],
        )
        norm = np.sqrt(squares[0]) * np.sqrt(squares[1])
    valid = (one_size == other_size) & (one_size >= 0) & (norm > 0) & np.isfinite(norm)
    return array(np.divide(dot, norm, where=valid, out=np.zeros(rows)), DOUBLE, valid)


def _vectors(lists: pa.Array) -> tuple[Any, Any]:
    """The vectors as rows of one matrix, padded with zeros, and their lengths (-1 for one with a NULL)."""
    starts, lengths, items = _starts(lists)
    numbers, sizes = raw(items).astype(np.float64, copy=False), _whole_sizes(lists, lengths, items)
    width = int(lengths.max(initial=0))
    if (lengths == width).all() and (np.diff(starts) == width).all() and len(starts):
        return numbers[starts[0] : starts[0] + width * len(starts)].reshape(len(starts), width), sizes
    places = np.arange(width)
    inside = places < np.where(sizes < 0, 0, lengths)[:, None]
    matrix = np.zeros(inside.shape)
    matrix[inside] = numbers[(starts[:, None] + places)[inside]]
    return matrix, sizes


def _whole_sizes(lists: pa.Array, lengths: Any, items: pa.Array) -> Any:
    sizes = (
        np.where(pc.is_valid(lists).to_numpy(zero_copy_only=False), lengths, -1)
        if lists.null_count
        else lengths
    )
    if not items.null_count:
        return sizes
    broken = _any_per_row(pc.is_null(pc.list_flatten(lists)), pc.list_parent_indices(lists), len(lists))
    return np.where(broken, -1, sizes)


def size(lists: Value) -> Value:
    """The number of items, -1 for NULL as in Spark."""
    return pc.fill_null(pc.list_value_length(lists), pa.scalar(-1, INT))


FUNCTIONS: dict[str, Function] = {
    "size": plain(array_rule(INT), size),
    "array_size": plain(array_rule(INT), pc.list_value_length),
    "array_contains": plain(contains_rule, array_contains),
    "get": plain(item_rule, item),
    "element_at": plain(item_rule, element_at),
    ".": plain(field_rule, field),
    "cosine": plain(cosine_rule, cosine),
}
ALIASES = {"cardinality": "size"}
