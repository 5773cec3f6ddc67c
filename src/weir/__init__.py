"""Join many streams inside windows, with any predicate, within the CPU, memory and freshness given."""

from weir.adapt import Adapt
from weir.api import join, sql
from weir.errors import QueryError
from weir.expr import udf
from weir.query import Budget, rows
from weir.shed import Ages, Allowance

__all__ = ["Adapt", "Ages", "Allowance", "Budget", "QueryError", "join", "rows", "sql", "udf"]
