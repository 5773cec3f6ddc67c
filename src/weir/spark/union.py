"""Union all streams into one DataFrame, so that one shuffle brings the rows that join together.

    weir_stream  weir_key_hash  slot0: bigint  slot1: string     streams a(k, v), b(k, name)
    0 (a)        -3750763034    k              NULL              slot2: bigint
    1 (b)        -3750763034    k              name              ...

Columns of equal type share slots. The placement of each batch assigns partitions to its rows, since their
number may differ from batch to batch. Tasks split the union into streams again
(`weir.spark.task.UnionSlots`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType

from weir.expr.nodes import Column, columns_of
from weir.kernel.time_shift import MAX_TIME, MIN_TIME
from weir.partition.placement import Placement
from weir.query.model import Query
from weir.spark.frames import quote
from weir.spark.routing import Routing, Segments
from weir.spark.task import (
    COPY,
    FIRST_SEGMENT,
    KEY_HASH,
    LAST_SEGMENT,
    PARTITION,
    STREAM,
    TIME,
    UnionSlots,
)

# The columns of the union that say where a row may go.
_ROUTES = (KEY_HASH, TIME, FIRST_SEGMENT, LAST_SEGMENT)

Frames: TypeAlias = Mapping[str, DataFrame]
Types: TypeAlias = Mapping[str, DataType]


def tagged_union(query: Query, frames: Frames, routing: Routing) -> tuple[DataFrame, UnionSlots]:
    """Return the rows of all streams, each with its stream's number and what its partition depends on."""
    needed = _needed_columns(query)
    slots, types = _assign_slots(
        {name: {c: frames[name].schema[c].dataType for c in columns} for name, columns in needed.items()}
    )
    tagged = [_tag(query, frames[n], n, routing, _fill_slots(slots[n], types)) for n in query.names]
    schemas = {s.name: pa.schema([s.schema.field(c) for c in needed[s.name]]) for s in query.streams}
    return reduce(DataFrame.unionAll, tagged), UnionSlots(query.names, slots, schemas)


def assign_partitions(rows: DataFrame, placement: Placement) -> DataFrame:
    """Give the union's rows, or stored ones, the partitions of a batch's placement.

    With spread `atr` a row comes once for each partition that needs it, all but one marked as a copy. This is
    SQL text, since every batch pays for it, and each column built in Python takes several calls of Java.
    """
    routes = [name for name in rows.columns if name in _ROUTES]
    others = f"* EXCEPT ({', '.join(routes)})" if routes else "*"
    if placement.spread == "atr" and placement.partitions > 1:
        reached = f"posexplode({_segment_partitions(placement.partitions)}) AS ({COPY}, {PARTITION})"
        return rows.selectExpr(reached, others)
    return rows.selectExpr(f"{_partition(rows, placement)} AS {PARTITION}", f"0 AS {COPY}", others)


def shuffle_by_partition(rows: DataFrame, partitions: int) -> DataFrame:
    """Bring the rows of each partition together in one task; one task for all needs no shuffle."""
    if partitions == 1:
        return rows.coalesce(1)
    if hasattr(rows, "repartitionById"):  # since Spark 4.1; a hash may send two partitions to one task
        return rows.repartitionById(partitions, F.col(PARTITION))
    return rows.repartition(partitions, PARTITION)


def _needed_columns(query: Query) -> dict[str, tuple[str, ...]]:
    predicate = query.predicate
    exprs = [
        *(output.expr for output in query.select),
        *(part.expr for part in (*predicate.filters, *predicate.conjuncts)),
        *(member for key in predicate.classes for member in key.members),
    ]
    read = {(column.stream, column.name) for expr in exprs for column in columns_of(expr)}
    return {
        stream.name: tuple(c for c in stream.schema.names if c == stream.time or (stream.name, c) in read)
        for stream in query.streams
    }


def _assign_slots(types: Mapping[str, Types]) -> tuple[dict[str, dict[str, str]], Types]:
    """Assign a slot of its type to each column of each stream; return the types of the slots too."""
    slots: dict[str, dict[str, str]] = {}
    slot_types: dict[str, DataType] = {}
    by_type: dict[str, list[str]] = {}
    for stream, columns in types.items():
        slots[stream], used = {}, Counter[str]()
        for column, kind in columns.items():
            key = kind.simpleString()
            slots_of_type = by_type.setdefault(key, [])
            if used[key] == len(slots_of_type):
                slots_of_type.append(f"slot{len(slot_types)}")
                slot_types[slots_of_type[-1]] = kind
            slots[stream][column] = slots_of_type[used[key]]
            used[key] += 1
    return slots, slot_types


def _fill_slots(slots: Mapping[str, str], types: Types) -> list[SparkColumn]:
    """Put a stream's columns into their slots, and NULL into the others."""
    columns = {slot: column for column, slot in slots.items()}
    filled = {
        slot: F.col(quote(columns[slot])) if slot in columns else F.lit(None).cast(kind)
        for slot, kind in types.items()
    }
    return [column.alias(slot, metadata={}) for slot, column in filled.items()]


def _tag(query: Query, frame: DataFrame, name: str, routing: Routing, slots: list[SparkColumn]) -> DataFrame:
    stream = F.lit(query.names.index(name)).alias(STREAM)
    micros = _to_micros(frame, query.stream(name).time)
    return frame.select(stream, *_routes(name, micros, routing), *slots)


def _routes(name: str, micros: str, routing: Routing) -> list[SparkColumn]:
    """Return what the partition of a stream's row depends on, for each spread that a batch may have."""
    if routing.segments is not None:
        return _reached_segments(name, micros, routing.segments)
    # The time of a row may decide its partition, now or after a change of spread.
    times = [F.expr(micros).alias(TIME)] if routing.shared or routing.fallback else []
    if routing.key is None:
        return times
    column = next(m for m in routing.key.members if isinstance(m, Column) and m.stream == name)
    return [hash_key(F.col(quote(column.name)), routing.key.domain), *times]


def _to_micros(frame: DataFrame, time: str) -> str:
    """An event time in µs; one without a zone is UTC, whatever the session's zone is."""
    if frame.schema[time].dataType.typeName() == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {quote(time)})"
    return f"unix_micros(CAST({quote(time)} AS TIMESTAMP))"


def _floor_divide(number: str, length: int) -> str:
    """Divide and round down, exactly: `/` divides integers as floats, and `div` rounds towards zero."""
    return f"(({number}) div {length}L - IF(({number}) < 0 AND ({number}) % {length}L <> 0, 1, 0))"


def _reached_segments(name: str, micros: str, segments: Segments) -> list[SparkColumn]:
    """The first and the last master segment that a row reaches; of a master row, its own."""
    back, ahead = next(((b, a) for other, b, a in segments.reach if other == name), (0, 0))
    shifts = {FIRST_SEGMENT: -back, LAST_SEGMENT: ahead}
    reached = {end: _floor_divide(_shift_times(micros, by), segments.length) for end, by in shifts.items()}
    # A row without a time goes to some partition, to be counted.
    return [F.expr(f"coalesce({segment}, 0L)").alias(end) for end, segment in reached.items()]


def _shift_times(micros: str, by: int) -> str:
    """`weir.kernel.time_shift` in Spark: a sum beyond the range of times becomes the end of that range."""
    if by < 0:
        return f"IF({micros} < {MIN_TIME - by}L, {MIN_TIME}L, {micros} - {-by}L)"
    return f"IF({micros} > {MAX_TIME - by}L, {MAX_TIME}L, {micros} + {by}L)"


def _segment_partitions(partitions: int) -> str:
    """The partitions of all segments that a row reaches."""
    reached = f"sequence({FIRST_SEGMENT}, {LAST_SEGMENT})"
    return f"array_distinct(transform({reached}, segment -> {_modulo('segment', partitions)}))"


def _partition(rows: DataFrame, placement: Placement) -> str:
    if placement.partitions == 1:
        return "0"
    if placement.spread == "psp":
        return _partition_of_time(placement)
    if placement.spread == "share":
        return _hash_row(rows, placement.partitions)
    return _modulo(KEY_HASH, placement.partitions)


def _modulo(number: str, divisor: int) -> str:
    return f"CAST(pmod({number}, {divisor}L) AS INT)"


def _hash_row(rows: DataFrame, partitions: int) -> str:
    """Partition by the content of rows, so that a repeated batch is divided in the same way."""
    hashed = [
        f.name for f in rows.schema if f.name not in _ROUTES and "map<" not in f.dataType.simpleString()
    ]
    return _modulo(f"xxhash64({', '.join(hashed)})", partitions)


def _partition_of_time(placement: Placement) -> str:
    """`Placement.partition_at` in Spark; a row without a time goes to partition 0, to be counted.

    Only the array changes from batch to batch, so that Spark does not generate new code for each.
    """
    cell = _floor_divide(TIME, placement.cell)
    homes = f"array({', '.join(map(str, placement.homes))})"
    return f"coalesce(get({homes}, {_modulo(cell, len(placement.homes))}), 0)"


def hash_key(key: SparkColumn, domain: pa.DataType) -> SparkColumn:
    """Hash a key; all members of a class are hashed as the type in which they are compared."""
    key = key.cast(from_arrow_type(domain, prefer_timestamp_ntz=True))
    if pa.types.is_floating(domain):
        key = key + F.lit(0.0)  # -0.0 equals 0.0, so both must have one hash
    return F.xxhash64(key).alias(KEY_HASH)
