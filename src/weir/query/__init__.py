"""What is asked: from text and schemas to a checked `Query`."""

from weir.query.bounds import Bounds, closure
from weir.query.build import query
from weir.query.describe import describe
from weir.query.model import MOST_BASIC_WINDOWS, MOST_STREAMS, Budget, Output, Query, Stream, not_a_budget
from weir.query.predicate import (
    AttributeClass,
    Band,
    Comparison,
    Conjunct,
    Cosine,
    Equality,
    Filter,
    Predicate,
    Residual,
    TimeBound,
)
from weir.query.settings import Length, PerStream
from weir.query.sql import SelectStatement, SqlQuery, parse_sql, sql_query
from weir.query.windows import RowWindow, TimeWindow, Window, rows

__all__ = [
    "MOST_BASIC_WINDOWS",
    "MOST_STREAMS",
    "AttributeClass",
    "Band",
    "Bounds",
    "Budget",
    "Comparison",
    "Conjunct",
    "Cosine",
    "Equality",
    "Filter",
    "Length",
    "Output",
    "PerStream",
    "Predicate",
    "Query",
    "Residual",
    "RowWindow",
    "SelectStatement",
    "SqlQuery",
    "Stream",
    "TimeBound",
    "TimeWindow",
    "Window",
    "closure",
    "describe",
    "not_a_budget",
    "parse_sql",
    "query",
    "rows",
    "sql_query",
]
