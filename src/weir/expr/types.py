"""Arrow types as Spark SQL types: names, common types, and normalisation to the types that Spark uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError, locate_errors, unknown_name

BOOLEAN, INT, BIGINT, DOUBLE = pa.bool_(), pa.int32(), pa.int64(), pa.float64()
STRING, DATE, INTERVAL = pa.string(), pa.date32(), pa.duration("us")
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")

SPARK_NAMES: dict[str, pa.DataType] = {
    "boolean": BOOLEAN, "tinyint": pa.int8(), "smallint": pa.int16(), "int": INT, "bigint": BIGINT,
    "float": pa.float32(), "double": DOUBLE, "string": STRING, "binary": pa.binary(), "date": DATE,
    "timestamp": TIMESTAMP, "timestamp_ntz": TIMESTAMP_NTZ, "interval day to second": INTERVAL,
    "void": pa.null(),
}  # fmt: skip
ALIASES = {"bool": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
           "real": "float", "timestamp_ltz": "timestamp"}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_NAME_OF = {type: name for name, type in SPARK_NAMES.items()}
# The digits each integer type needs as a decimal.
INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_WIDTHS = (*INTEGER_DIGITS, pa.float32(), pa.float64())
_NORMAL = {
    pa.uint8(): pa.int16(), pa.uint16(): INT, pa.uint32(): BIGINT, pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.date64(): DATE, pa.large_string(): STRING, pa.string_view(): STRING,
    pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(),
}  # fmt: skip
# Arrow counts the bytes of texts, and the items of lists, of an array in 31 bits.
_MANY_BYTES = 1 << 31
_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_large_list_view)


def spark_name(type: pa.DataType) -> str:
    """Return Spark SQL's name of a type.

    >>> spark_name(pa.int64()), spark_name(pa.list_(pa.float32())), spark_name(pa.decimal128(10, 2))
    ('bigint', 'array<float>', 'decimal(10,2)')
    """
    if pa.types.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if is_array(type):
        return f"array<{spark_name(type.value_type)}>"
    if pa.types.is_struct(type):
        return f"struct<{', '.join(f'{field.name}: {spark_name(field.type)}' for field in type)}>"
    return _NAME_OF.get(type, str(type))


def parse_type(name: str) -> pa.DataType:
    """Parse a Spark type name to an Arrow type.

    >>> parse_type("decimal(10, 2)"), parse_type("array<float>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<item: float>))
    """
    text = name.strip().lower()
    if text.startswith("array<") and text.endswith(">"):
        return pa.list_(parse_type(text[6:-1]))
    digits = _DECIMAL.fullmatch(text)
    if digits is not None:
        return decimal_type(int(digits[1] or 10), int(digits[2] or 0))
    text = ALIASES.get(text, text)
    if text not in SPARK_NAMES:
        raise unknown_name("type", name, [*SPARK_NAMES, "decimal(p,s)", "array<...>"])
    return SPARK_NAMES[text]


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type, or raise if Spark has no such type."""
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise QueryError(
            f"decimal({precision},{scale}) is not a type: the precision is 1 to 38, the scale at most that"
        )
    return pa.decimal128(precision, scale)


def is_array(type: pa.DataType) -> bool:
    """True for arrays of variable or of fixed length."""
    return bool(pa.types.is_list(type) or pa.types.is_fixed_size_list(type))


def is_integer(type: pa.DataType) -> bool:
    """True for the signed integer types."""
    return type in INTEGER_DIGITS


def is_float(type: pa.DataType) -> bool:
    """True for float and double."""
    return type in (pa.float32(), pa.float64())


def is_number(type: pa.DataType) -> bool:
    """True for integers, floats and decimals."""
    return type in _WIDTHS or bool(pa.types.is_decimal(type))


def is_time(type: pa.DataType) -> bool:
    """True for dates and timestamps."""
    return bool(pa.types.is_date(type) or pa.types.is_timestamp(type))


def to_decimal_type(type: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    return pa.decimal128(INTEGER_DIGITS[type], 0) if type in INTEGER_DIGITS else type


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type to which both sides are cast implicitly, or None if there is none.

    >>> common_type(pa.int32(), pa.float64())
    DataType(double)
    >>> common_type(pa.int32(), pa.string()) is None
    True
    """
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_time(left) and is_time(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    return None


def parsed_type(number: pa.DataType, ansi: bool) -> pa.DataType:
    """Return the type that Spark casts text to where it is compared with a number of this type.

    >>> parsed_type(pa.int32(), ansi=True), parsed_type(pa.int32(), ansi=False)
    (DataType(int64), DataType(int32))
    """
    if ansi:
        return BIGINT if is_integer(number) else DOUBLE
    return DOUBLE if pa.types.is_decimal(number) and number.scale else number


def common_type_of(types: list[pa.DataType]) -> pa.DataType | None:
    """Return the common type of several types, or None if there is none."""
    return reduce(lambda common, type: common and common_type(common, type), types)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left in _WIDTHS and right in _WIDTHS:
        return max(left, right, key=_WIDTHS.index)
    if is_float(left) or is_float(right):
        return pa.float64()
    left, right = to_decimal_type(left), to_decimal_type(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    # Where 38 digits do not suffice, Spark keeps those before the point.
    return pa.decimal128(min(38, whole + scale), min(scale, 38 - whole))


T = TypeVar("T", pa.DataType, pa.Schema, pa.Table)


def normalise(thing: T) -> T:
    """Convert a type, schema or table to the Arrow types that Spark uses.

    >>> normalise(pa.large_string()), normalise(pa.uint32()), normalise(pa.timestamp("ns", "Asia/Tokyo"))
    (DataType(string), DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    if isinstance(thing, pa.Schema):
        return pa.schema([_normalise_field(field) for field in thing])
    if isinstance(thing, pa.Table):
        schema = normalise(thing.schema)
        return thing if schema == thing.schema else _cast_table(thing, schema)
    return _normalise_type(thing)


def _cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        try:
            columns.append(convert_column(column, field.type))
        except pa.ArrowException as error:
            raise _unconvertible(field, column, error) from error
    try:
        return pa.table(columns, schema=schema)
    except pa.ArrowInvalid as error:
        raise QueryError(f"the table is not valid: {error}") from error


def _unconvertible(field: pa.Field, column: pa.ChunkedArray, error: Exception) -> QueryError:
    row = _find_time_out_of_range(column, field.type)
    if row is None:
        return QueryError(f"column '{field.name}': {column.type} cannot become {field.type}: {error}")
    value = column[row].cast(pa.int64()).as_py()
    return QueryError(
        f"column '{field.name}', row {row}: {value} {column.type.unit} is out of range, since "
        f"{spark_name(field.type)} counts microseconds in 64 bits; make it NULL, or leave the row out"
    )


def _find_time_out_of_range(column: pa.ChunkedArray, type: pa.DataType) -> int | None:
    """Find the first row whose time or duration is too large in microseconds; None if there is none."""
    if column.type.id != type.id or not hasattr(type, "unit"):
        return None
    most = (2**63 - 1) // _MICROS_PER_UNIT[column.type.unit]
    numbers = column.cast(pa.int64())
    beyond = pc.or_(pc.greater(numbers, most), pc.less(numbers, -most))
    row = pc.index(pc.fill_null(beyond, False), True).as_py()
    return None if row < 0 else int(row)


def _normalise_field(field: pa.Field) -> pa.Field:
    with locate_errors(f"column '{field.name}': "):
        return pa.field(field.name, _normalise_type(field.type), field.nullable)


def _normalise_type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType):
        raise QueryError(f"Spark has no type {type}; cast it to {type.storage_type} or leave it out")
    if pa.types.is_dictionary(type):
        return _normalise_type(type.value_type)
    if pa.types.is_fixed_size_binary(type):
        return pa.binary()
    if pa.types.is_timestamp(type):
        return TIMESTAMP if type.tz else TIMESTAMP_NTZ
    if pa.types.is_decimal(type):
        return decimal_type(type.precision, type.scale)
    if pa.types.is_duration(type):
        return INTERVAL
    if pa.types.is_fixed_size_list(type):
        return pa.list_(_normalise_type(type.value_type), type.list_size)
    if any(is_list(type) for is_list in _LISTS):
        return pa.list_(_normalise_type(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([_normalise_field(field) for field in type])
    return _NORMAL.get(type, type)


def convert_column(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Convert the column; what does not fit is truncated, as Spark drops nanoseconds.

    >>> views = pa.array(["x", "y"], pa.string_view())
    >>> coded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), views)
    >>> convert_column(pa.chunked_array([coded]), pa.string()).to_pylist()
    ['y', None, 'x']
    """
    return pa.chunked_array([part for chunk in column.chunks for part in _convert_chunk(chunk, type)], type)


def _convert_chunk(chunk: pa.Array, type: pa.DataType) -> Iterator[pa.Array]:
    """Convert a chunk, in several parts if Arrow could not put 2 GiB of texts into one."""
    try:
        # Polars keeps categories as dictionaries of string views, which Arrow cannot decode.
        yield _decode(chunk).cast(options=_truncate_to(type))
    except pa.ArrowException:
        if chunk.nbytes < _MANY_BYTES or len(chunk) < 2:
            raise
        half = len(chunk) // 2
        for part in (chunk.slice(0, half), chunk.slice(half)):
            # A copy, since Arrow judges a part by the bytes of the whole.
            yield from _convert_chunk(pa.concat_arrays([part]), type)


def _truncate_to(type: pa.DataType) -> pc.CastOptions:
    """Cast as Spark does: digits that do not fit are dropped, but a time out of range is an error."""
    return pc.CastOptions(
        type,
        allow_int_overflow=True,
        allow_time_truncate=True,
        allow_time_overflow=False,
        allow_decimal_truncate=True,
        allow_float_truncate=True,
        allow_invalid_utf8=True,
    )


def _has_dictionary(type: pa.DataType) -> bool:
    inner = (type.field(i).type for i in range(type.num_fields))
    return bool(pa.types.is_dictionary(type)) or any(map(_has_dictionary, inner))


def _decode(array: pa.Array) -> pa.Array:
    type = array.type
    if not _has_dictionary(type):
        return array
    if pa.types.is_dictionary(type):
        values = _decode(array.dictionary)
        is_view = pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type)
        return (values.cast(_NORMAL[values.type]) if is_view else values).take(array.indices)
    if pa.types.is_struct(type):
        parts = [_decode(array.field(i)) for i in range(type.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in type], mask=array.is_null())
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return _replace_items(array, _decode(array.values))
    return array


def _replace_items(array: pa.Array, items: pa.Array) -> pa.Array:
    """Replace the items of the lists by equally many others."""
    if pa.types.is_fixed_size_list(array.type):
        type, buffers = pa.list_(items.type, array.type.list_size), array.buffers()[:1]
    else:
        list_type = pa.large_list if pa.types.is_large_list(array.type) else pa.list_
        type, buffers = list_type(items.type), array.buffers()[:2]
    return pa.Array.from_buffers(type, len(array), buffers, offset=array.offset, children=[items])
