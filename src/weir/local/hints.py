"""What to write in one process instead of the names that users of Spark or Polars try first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.errors import find_nearest

_IN_QUERY = "write it into on= or select=, or call it on the result of to_polars() or to_pandas()"
_ON_RESULT = "call it on the result of to_polars() or to_pandas()"
_NOTHING_RUNS = "nothing runs between batches in one process, so there is nothing to wait for or to stop"
_PER_BATCH = "process(...) returns each batch's results as Arrow, collect(...) in the format that came in"
JOIN_HINTS = {
    "writeStream": "start() gives a running query, whose process(a=table, ...) returns each batch's results",
    "write": "write the result, like pyarrow.parquet.write_table(joined.to_arrow(), path)",
    "toDF": "collect() gives the results in the format of the tables, to_arrow() an Arrow table",
    "toPandas": "its name is to_pandas()",
    "toArrow": "its name is to_arrow()",
    "show": "print(joined.to_polars()) or print(joined.to_pandas()) shows the results",
    "printSchema": "print(joined.schema) shows the columns of the results",
    "dtypes": "joined.schema has the types of the results",
    "count": "joined.to_arrow().num_rows counts the results",
    "process": "start() gives a running query, which has process(...)",
    **dict.fromkeys(("to_dicts", "to_pylist", "to_dict", "rows"), "joined.to_arrow().to_pylist() has dicts"),
    **dict.fromkeys(("head", "limit", "take", "first"), "joined.to_arrow().slice(0, 10) has ten results"),
    **dict.fromkeys(("filter", "where", "select", "selectExpr", "drop", "transform"), _IN_QUERY),
    **dict.fromkeys(("withColumn", "with_columns", "withColumnRenamed", "rename"), _IN_QUERY),
    **dict.fromkeys(("groupBy", "group_by", "groupby", "agg", "orderBy", "sort", "join"), _ON_RESULT),
    **dict.fromkeys(("distinct", "dropDuplicates", "unique", "union"), _ON_RESULT),
}
QUERY_HINTS = {
    **dict.fromkeys(("stop", "awaitTermination", "processAllAvailable", "isActive", "status"), _NOTHING_RUNS),
    **dict.fromkeys(("to_arrow", "to_pandas", "to_polars", "toPandas", "show"), _PER_BATCH),
}


def missing_attribute(what: str, name: str, known: Iterable[str], hints: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that does not exist, with what to write instead.

    >>> str(missing_attribute("a join in one process", "toPandas", [], JOIN_HINTS))
    "a join in one process has no 'toPandas'; its name is to_pandas()"
    """
    # Names that begin with _ are asked for by Python and notebooks, not by users.
    near = None if name.startswith("_") else find_nearest(name, [k for k in known if not k.startswith("_")])
    hint = hints.get(name, near and f"did you mean '{near}'?")
    return AttributeError(f"{what} has no '{name}'" + (f"; {hint}" if hint else ""))
