"""All streams as one: a tagged union in which columns of equal type share slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_type

from weir.expr.nodes import Column, columns_of
from weir.partition.placement import Placement
from weir.query.model import Query
from weir.spark.routing import Routing, Segments
from weir.spark.slots import COPY, PARTITION, STREAM, TIME, Slots


def needed_columns(query: Query) -> dict[str, tuple[str, ...]]:
    """The columns of each stream that the query reads."""
    predicate = query.predicate
    exprs = [
        *(output.expr for output in query.select),
        *(part.expr for part in (*predicate.filters, *predicate.conjuncts)),
        *(member for c in predicate.classes for member in c.members),
    ]
    read = {column for expr in exprs for column in columns_of(expr)}
    return {
        stream.name: tuple(
            name
            for name in stream.schema.names
            if name == stream.time or any(c.stream == stream.name and c.name == name for c in read)
        )
        for stream in query.streams
    }


def tagged_union(query: Query, frames: Mapping[str, DataFrame], routing: Routing) -> tuple[DataFrame, Slots]:
    """One DataFrame of all streams' rows, each with its stream's number and its partition.

    Where rows are copied to several partitions, they come as often, all but one marked as a copy. Where a
    placement says to which partition a row goes, it is yet to be `placed`.
    """
    needed = needed_columns(query)
    types = {name: {c: frames[name].schema[c].dataType for c in columns} for name, columns in needed.items()}
    width: Counter[str] = Counter()
    spark_types = {}
    places: dict[str, dict[str, str]] = {}
    for name, columns in types.items():
        used: Counter[str] = Counter()
        places[name] = {}
        for column, kind in columns.items():
            key = kind.simpleString()
            spark_types[key] = kind
            places[name][column] = f"{key}#{used[key]}"
            used[key] += 1
        width |= used
    slots = [f"{key}#{i}" for key, count in width.items() for i in range(count)]
    names = {slot: f"slot{i}" for i, slot in enumerate(slots)}
    kinds = {slot: spark_types[slot.rsplit("#", 1)[0]] for slot in slots}

    def tagged(number: int, name: str) -> DataFrame:
        at = {slot: column for column, slot in places[name].items()}
        columns = [
            (F.col(f"`{at[slot]}`") if slot in at else F.lit(None).cast(kinds[slot])).alias(
                names[slot], metadata={}
            )
            for slot in slots
        ]
        frame = frames[name]
        micros = _micros(frame, query.stream(name).time)
        if routing.segments is not None:
            homes = _homes(name, micros, routing.segments, routing.partitions)
            found = frame.select(F.posexplode(homes).alias(COPY, PARTITION), *frame.columns)
            return found.select(F.lit(number).alias(STREAM), PARTITION, COPY, *columns)
        tags = [F.lit(number).alias(STREAM), _partition(name, routing).alias(PARTITION), F.lit(0).alias(COPY)]
        times = [micros.alias(TIME)] if routing.needs_time else []
        return frame.select(*tags, *times, *columns)

    union = reduce(DataFrame.unionAll, [tagged(i, name) for i, name in enumerate(query.names)])
    schemas = {
        stream.name: pa.schema([stream.schema.field(c) for c in needed[stream.name]])
        for stream in query.streams
    }
    renamed = {
        name: {column: names[slot] for column, slot in found.items()} for name, found in places.items()
    }
    return union, Slots(query.names, renamed, schemas)


def placed(rows: DataFrame, placement: Placement) -> DataFrame:
    """The union's rows, each in the partition that a batch's placement gives it."""
    if placement.is_shared:
        part = _by_time(placement) if placement.spread == "psp" else _evenly(rows, placement.partitions)
        rows = rows.withColumn(PARTITION, part)
    return rows.drop(TIME)


def routed(rows: DataFrame, partitions: int) -> DataFrame:
    """The union's rows, those of one partition together in one task."""
    if partitions == 1:
        return rows.coalesce(1)
    if hasattr(rows, "repartitionById"):  # since Spark 4.1; a hash may send two partitions to one task
        return rows.repartitionById(partitions, F.col(PARTITION))
    return rows.repartition(partitions, PARTITION)


def _micros(frame: DataFrame, time: str) -> SparkColumn:
    """An event time as the kernel counts it; one without a zone is UTC, whatever the session's zone is."""
    if frame.schema[time].dataType.typeName() == "timestamp_ntz":
        return F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', `{time}`)")
    return F.unix_micros(F.col(f"`{time}`").cast("timestamp"))


def _floored(micros: SparkColumn, length: int) -> SparkColumn:
    """In which piece of that length a time lies; exact, which a division of large numbers is not."""
    return ((micros - F.pmod(micros, F.lit(length))) / F.lit(length)).cast("long")


def _homes(name: str, micros: SparkColumn, segments: Segments, partitions: int) -> SparkColumn:
    """The partitions of a row: one for the master's, for others all whose segments they reach into."""
    back, ahead = next(((b, a) for other, b, a in segments.reach if other == name), (0, 0))
    first, last = (_floored(micros + F.lit(shift), segments.length) for shift in (-back, ahead))
    # A row without a time goes somewhere, to be counted.
    reached = F.sequence(F.coalesce(first, F.lit(0)), F.coalesce(last, F.lit(0)))
    return F.array_distinct(F.transform(reached, lambda one: F.pmod(one, F.lit(partitions)).cast("int")))


def _evenly(rows: DataFrame, partitions: int) -> SparkColumn:
    """By what rows hold: a batch that is repeated is divided in the same way."""
    tags = (PARTITION, COPY, TIME)
    held = [f.name for f in rows.schema if f.name not in tags and "map<" not in f.dataType.simpleString()]
    return F.pmod(F.xxhash64(*held), F.lit(partitions)).cast("int")


def _by_time(placement: Placement) -> SparkColumn:
    """The home of a row's time (`Placement.partition_at`); a row without one goes somewhere, to be counted.

    Only the list changes from batch to batch, which is no part of the code that Spark generates.
    """
    cell = F.pmod(_floored(F.col(TIME), placement.cell), F.lit(len(placement.homes))).cast("int")
    homes = F.expr(f"array({','.join(map(str, placement.homes))})")
    return F.coalesce(F.get(homes, cell), F.lit(0))


def _partition(name: str, routing: Routing) -> SparkColumn:
    """Equal keys go to equal partitions: all members of a class are hashed as the type they compare in."""
    key_class, partitions = routing.key, routing.partitions
    if key_class is None:  # the batch's placement says it
        return F.lit(0)
    column = next(m for m in key_class.members if isinstance(m, Column) and m.stream == name)
    key = F.col(f"`{column.name}`").cast(from_arrow_type(key_class.domain, prefer_timestamp_ntz=True))
    if pa.types.is_floating(key_class.domain):
        key = key + F.lit(0.0)  # the two zeros are equal, so they must meet
    return F.pmod(F.xxhash64(key), F.lit(partitions)).cast("int")
