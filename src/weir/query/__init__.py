"""What is asked: from text and schemas to a checked `Query`."""

from weir.query.bounds import Bounds, closure
from weir.query.model import Budget, Output, Query, Stream
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
from weir.query.windows import RowWindow, TimeWindow, Window, rows

__all__ = [
    "AttributeClass",
    "Band",
    "Bounds",
    "Budget",
    "Comparison",
    "Conjunct",
    "Cosine",
    "Equality",
    "Filter",
    "Output",
    "Predicate",
    "Query",
    "Residual",
    "RowWindow",
    "Stream",
    "TimeBound",
    "TimeWindow",
    "Window",
    "closure",
    "rows",
]
