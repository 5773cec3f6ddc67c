"""Arrow types as Spark SQL knows them: their names, what two of them share, how they are normalised."""

from __future__ import annotations

import re
from functools import reduce
from typing import TypeVar

import pyarrow as pa
from pyarrow import types as is_a

from weir.errors import QueryError, unknown
from weir.expr.columns import convert

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
INTERVAL = pa.duration("us")

SPARK_NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "interval day to second": INTERVAL,
    "void": pa.null(),
}
ALIASES = {"bool": "boolean", "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint",
           "real": "float", "timestamp_ltz": "timestamp"}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_NAME_OF = {type: name for name, type in SPARK_NAMES.items()}
# The digits each integer type needs as a decimal.
INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_WIDTHS = (*INTEGER_DIGITS, pa.float32(), pa.float64())
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def spark_name(type: pa.DataType) -> str:
    """How Spark SQL writes a type.

    >>> spark_name(pa.int64()), spark_name(pa.list_(pa.float32())), spark_name(pa.decimal128(10, 2))
    ('bigint', 'array<float>', 'decimal(10,2)')
    """
    if is_a.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if is_array(type):
        return f"array<{spark_name(type.value_type)}>"
    if is_a.is_struct(type):
        return f"struct<{', '.join(f'{field.name}: {spark_name(field.type)}' for field in type)}>"
    return _NAME_OF.get(type, str(type))


def parse_type(name: str) -> pa.DataType:
    """The Arrow type of a Spark type name.

    >>> parse_type("decimal(10, 2)"), parse_type("array<float>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<item: float>))
    """
    text = name.strip().lower()
    if text.startswith("array<") and text.endswith(">"):
        return pa.list_(parse_type(text[6:-1]))
    digits = _DECIMAL.fullmatch(text)
    if digits is not None:
        return decimal(int(digits[1] or 10), int(digits[2] or 0))
    text = ALIASES.get(text, text)
    if text not in SPARK_NAMES:
        raise unknown("type", name, [*SPARK_NAMES, "decimal(p,s)", "array<...>"])
    return SPARK_NAMES[text]


def decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal type, checked against what Spark holds."""
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise QueryError(
            f"decimal({precision},{scale}) is not a type: 38 digits at most, the scale among them"
        )
    return pa.decimal128(precision, scale)


def is_array(type: pa.DataType) -> bool:
    """Whether values are arrays, of any or of one fixed length."""
    return bool(is_a.is_list(type) or is_a.is_fixed_size_list(type))


def is_integer(type: pa.DataType) -> bool:
    """Whether values are whole numbers of a fixed width."""
    return type in INTEGER_DIGITS


def is_float(type: pa.DataType) -> bool:
    """Whether values can be NaN."""
    return type in (pa.float32(), pa.float64())


def is_number(type: pa.DataType) -> bool:
    """Whether arithmetic takes the values."""
    return type in _WIDTHS or bool(is_a.is_decimal(type))


def is_time(type: pa.DataType) -> bool:
    """Whether values are points in time: dates or timestamps."""
    return bool(is_a.is_date(type) or is_a.is_timestamp(type))


def as_decimal(type: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer or decimal type."""
    return pa.decimal128(INTEGER_DIGITS[type], 0) if type in INTEGER_DIGITS else type


def bounded(precision: int, scale: int) -> pa.DataType:
    """Spark's decimal of a result: past 38 digits the scale gives way, but keeps six."""
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
    return pa.decimal128(min(precision, 38), scale)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type both sides are cast to before they meet, or None if they never should.

    >>> common_type(pa.int32(), pa.float64())
    DataType(double)
    >>> common_type(pa.int32(), pa.string()) is None
    True
    """
    if left == right or is_a.is_null(right):
        return left
    if is_a.is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_time(left) and is_time(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    return None


def common_of(types: list[pa.DataType]) -> pa.DataType | None:
    """The common type of several."""
    return reduce(lambda one, other: one and common_type(one, other), types)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left in _WIDTHS and right in _WIDTHS:
        return max(left, right, key=_WIDTHS.index)
    if is_float(left) or is_float(right):
        return pa.float64()
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return pa.decimal128(min(38, whole + scale), min(38, scale))


T = TypeVar("T", pa.DataType, pa.Schema, pa.Table)


def normalise(thing: T) -> T:
    """A type, schema or table in the Arrow types that Spark would use for it.

    >>> normalise(pa.large_string()), normalise(pa.uint32()), normalise(pa.timestamp("ns", "Asia/Tokyo"))
    (DataType(string), DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    if isinstance(thing, pa.Schema):
        return pa.schema([_field(field) for field in thing])
    if isinstance(thing, pa.Table):
        schema = normalise(thing.schema)
        return thing if schema == thing.schema else _cast_table(thing, schema)
    return _type(thing)


def _cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [_converted(column, field) for column, field in zip(table.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def _converted(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return convert(column, field.type)
    except pa.ArrowException as error:
        raise QueryError(
            f"column '{field.name}': {column.type} cannot become {field.type}: {error}"
        ) from error


def _field(field: pa.Field) -> pa.Field:
    try:
        return pa.field(field.name, _type(field.type), field.nullable)
    except QueryError as error:
        raise QueryError(f"column '{field.name}': {error}") from None


def _type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType):
        raise QueryError(f"{type} is no type of Spark's; cast it to {type.storage_type} or leave it out")
    if is_a.is_dictionary(type):
        return _type(type.value_type)
    if is_a.is_large_string(type) or is_a.is_string_view(type):
        return pa.string()
    if is_a.is_large_binary(type) or is_a.is_binary_view(type) or is_a.is_fixed_size_binary(type):
        return pa.binary()
    if is_a.is_timestamp(type):
        return TIMESTAMP if type.tz else TIMESTAMP_NTZ
    if is_a.is_decimal(type):
        return decimal(type.precision, type.scale)
    return _UNSIGNED.get(type) or _rest(type)


def _rest(type: pa.DataType) -> pa.DataType:
    if is_a.is_date64(type):
        return pa.date32()
    if is_a.is_float16(type):
        return pa.float32()
    if is_a.is_duration(type):
        return INTERVAL
    if is_a.is_fixed_size_list(type):
        return pa.list_(_type(type.value_type), type.list_size)
    if (
        is_a.is_list(type)
        or is_a.is_large_list(type)
        or is_a.is_list_view(type)
        or is_a.is_large_list_view(type)
    ):
        return pa.list_(_type(type.value_type))
    return pa.struct([_field(field) for field in type]) if is_a.is_struct(type) else type
