"""State adaptation: give slices that an earlier query stored the columns that the query of now reads.

A slice file says what it holds: numbers and payload columns by name, keys by their members. Of what a leaf's
schema asks for,

    a number          has to be stored under its name
    a payload column  is taken as it is, cast to a wider type, restored from the time or decoded from a key;
                      a column that its source did not have then is NULL
    a key             is taken if a stored one has the same members and domain, else encoded again

Rows whose new key is NULL, or whose members of one class differ, can join nothing any more and are dropped,
as `weir.kernel.ingest` drops them from new rows. Filters that the query adds do not concern stored rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import QueryError
from weir.expr.evaluate import evaluate
from weir.expr.nodes import Column, Expr, columns_of, is_flag, streams_of
from weir.expr.to_sql import to_sql
from weir.expr.types import DOUBLE, common_type, is_float, is_integer, is_number, parse_type, spark_name
from weir.kernel.keys import Bools, Int64s, decode, encode, is_always_exact, is_decodable
from weir.kernel.state_schema import StateSchema, payload_name, time_name
from weir.query.predicate import AttributeClass


@dataclass(frozen=True, slots=True)
class KeyForm:
    """What a stored key encodes: any of its members, which are equal in the domain."""

    members: tuple[str, ...]
    domain: str
    null_safe: bool


@dataclass(frozen=True, slots=True)
class StoredForm:
    """What the slices of a state hold, by the names of the stored columns."""

    numbers: tuple[str, ...]
    columns: Mapping[str, str]
    keys: Mapping[str, KeyForm]


@dataclass(frozen=True, slots=True)
class Missing:
    """What the state lacks: a stored number or column, or one of a type that does not become the `wanted`."""

    name: str
    wanted: str = ""
    stored: str = ""


def describe_form(schema: StateSchema) -> StoredForm:
    """Return what slices of a schema hold."""
    return StoredForm(
        numbers=tuple(sorted(set(schema.numbers) - schema.keys.keys())),
        columns={payload_name(column): spark_name(column.type) for column in schema.payload},
        keys={name: _describe_key(c, schema.streams) for name, c in schema.keys.items()},
    )


def columns_needed(schema: StateSchema) -> set[Column]:
    """Return the columns of the streams from which slices of a schema are made."""
    members = (member for c in schema.keys.values() for member in _own_members(c, schema.streams))
    return {*schema.sources, *(column for member in members for column in columns_of(member))}


def widens(stored: str, wanted: pa.DataType) -> bool:
    """True if every value of a stored type, given by its name, is one of the wanted type.

    >>> widens("int", pa.int64()), widens("bigint", pa.int32()), widens("bigint", pa.float64())
    (True, False, False)
    >>> widens("decimal(10,2)", pa.decimal128(12, 4)), widens("decimal(10,2)", pa.decimal128(10, 4))
    (True, False)
    """
    if stored == spark_name(wanted):
        return True
    if not is_number(wanted):
        return False
    try:
        narrow = parse_type(stored)
    except QueryError:  # a nested type has no name that can be parsed
        return False
    if is_float(wanted) and not is_float(narrow):
        return bool(wanted == DOUBLE) and is_integer(narrow) and narrow.bit_width <= 32
    return is_number(narrow) and common_type(narrow, wanted) == wanted


@dataclass(frozen=True)
class StateAdapter:
    """Turns slices of a stored form into slices of a schema; `times` are the streams' time columns.

    `filled` names columns that sources did not have when some slices were stored.
    """

    form: StoredForm
    schema: StateSchema
    times: Mapping[str, str]
    filled: Collection[str] = ()

    def find_missing(self) -> Missing | None:
        """Return the first thing that the schema asks for and the form does not give."""
        numbers = set(self.schema.numbers) - self.schema.keys.keys()
        for number in sorted(numbers - set(self.form.numbers)):
            return Missing(number)
        lacking = next(self.find_lacking(), None)
        return None if lacking is None else self._missing(lacking)

    def find_lacking(self) -> Iterator[Column]:
        """Yield the columns that the schema reads and the form does not give."""
        yield from (column for column in self.schema.sources if not self._has(column))
        for name, c in self.schema.keys.items():
            for member in () if self._find_same_key(name) else _own_members(c, self.schema.streams):
                if self._find_key_of(member, c) is None:
                    yield from (column for column in columns_of(member) if not self._has(column))

    def adapt(self, data: pa.RecordBatch) -> tuple[pa.RecordBatch, Bools | None]:
        """Return the rows in the schema's columns, and which of the rows these are (None: all)."""
        columns = {name: data.column(name) for name in self.form.numbers}
        columns |= {payload_name(column): self._fetch(data, column) for column in self.schema.payload}
        keep = np.ones(data.num_rows, np.bool_)
        for name, c in self.schema.keys.items():
            same = self._find_same_key(name)
            columns[name] = data.column(same) if same else pa.array(self._encode(data, c, keep))
        rows = self.schema.record_batch(columns)
        return (rows, None) if keep.all() else (rows.filter(pa.array(keep)), keep)

    def _missing(self, column: Column) -> Missing:
        return Missing(column.text, spark_name(column.type), self.form.columns.get(payload_name(column), ""))

    def _has(self, column: Column) -> bool:
        if payload_name(column) in self.form.columns:
            return widens(self.form.columns[payload_name(column)], column.type)
        is_known = self._is_time(column) or self._is_filled(column) or is_flag(column.name)
        return is_known or self._find_decodable(column) is not None

    def _is_time(self, column: Column) -> bool:
        is_time = self.times.get(column.stream) == column.name
        return is_time and time_name(column.stream) in self.form.numbers

    def _is_filled(self, column: Column) -> bool:
        return str(column) in self.filled

    def _find_decodable(self, column: Column) -> str | None:
        """Find a stored key from whose codes the values of a column can be told."""
        for name, key in self.form.keys.items():
            if column.text not in key.members or key.null_safe:
                continue
            domain = parse_type(key.domain)
            is_whole = is_integer(column.type) and is_integer(domain)
            if is_decodable(domain) and (is_whole or widens(key.domain, column.type)):
                return name
        return None

    def _fetch(self, data: pa.RecordBatch, column: Column) -> pa.Array:
        """Return the values of a column that the form has."""
        if payload_name(column) in self.form.columns:
            values = data.column(payload_name(column))
        elif self._is_time(column):
            return data.column(time_name(column.stream)).cast(column.type, safe=False)
        elif (name := self._find_decodable(column)) is not None:
            values = decode(data.column(name).to_numpy(), parse_type(self.form.keys[name].domain))
        elif is_flag(column.name):  # where it was not kept, nothing had failed
            nothing = False if pa.types.is_boolean(column.type) else None
            return pa.repeat(pa.scalar(nothing, column.type), data.num_rows)
        else:
            return pa.nulls(data.num_rows, column.type)
        return values if values.type == column.type else values.cast(column.type)

    def _find_same_key(self, name: str) -> str | None:
        """Find the stored key with the codes of a key of the schema, whatever it is called."""
        wanted = _describe_key(self.schema.keys[name], self.schema.streams)
        return next((stored for stored, key in self.form.keys.items() if key == wanted), None)

    def _find_key_of(self, member: Expr, c: AttributeClass) -> str | None:
        """Find a stored key with the codes that one member has in a class."""
        text, domain = to_sql(member), spark_name(c.domain)
        for name, key in self.form.keys.items():
            if text in key.members and (key.domain, key.null_safe) == (domain, c.null_safe):
                return name
        return None

    def _encode(self, data: pa.RecordBatch, c: AttributeClass, keep: Bools) -> Int64s:
        """Return the codes of a class; clear in `keep` the rows that cannot match in it."""
        first, *others = _own_members(c, self.schema.streams)
        codes, values = self._encode_member(data, c, first, keep)
        for other in others:
            other_codes, other_values = self._encode_member(data, c, other, keep)
            if values is None or other_values is None or is_always_exact(c.domain, c.null_safe):
                keep &= codes == other_codes
            else:  # codes of different values may be equal
                keep &= _are_equal(values, other_values, c.null_safe)
        return codes

    def _encode_member(
        self, data: pa.RecordBatch, c: AttributeClass, member: Expr, keep: Bools
    ) -> tuple[Int64s, pa.Array | None]:
        if not all(map(self._has, columns_of(member))):
            name = self._find_key_of(member, c)
            assert name is not None, "find_missing names a member that cannot be had"
            return data.column(name).to_numpy(), None
        values = evaluate(member, lambda column: self._fetch(data, column), data.num_rows)
        codes, valid = encode(values, c.domain, c.null_safe)
        if valid is not None:
            keep &= valid
        return codes, values if values.type == c.domain else values.cast(c.domain, safe=False)


def _own_members(c: AttributeClass, streams: frozenset[str]) -> list[Expr]:
    return [member for member in c.members if streams_of(member) <= streams]


def _describe_key(c: AttributeClass, streams: frozenset[str]) -> KeyForm:
    members = sorted(to_sql(member) for member in _own_members(c, streams))
    return KeyForm(tuple(members), spark_name(c.domain), c.null_safe)


def _are_equal(left: pa.Array, right: pa.Array, null_safe: bool) -> Bools:
    equal: Bools = pc.fill_null(pc.equal(left, right), False).to_numpy(zero_copy_only=False)
    if not null_safe:
        return equal
    both_null = pc.and_(pc.is_null(left), pc.is_null(right)).to_numpy(zero_copy_only=False)
    result: Bools = equal | both_null
    return result
