"""Expressions: parsed from Spark SQL, bound and typed, evaluated on Arrow arrays with Spark's meaning."""

from weir.expr.bind import bind
from weir.expr.dialect import SparkText
from weir.expr.evaluate import evaluate, holds
from weir.expr.nodes import Call, Column, Expr, Literal, columns_of, conjuncts, streams_of, walk
from weir.expr.parse import parse
from weir.expr.scope import Scope, UserFunction, udf
from weir.expr.text import show
from weir.expr.types import common_type, normalise, spark_name

__all__ = [
    "Call",
    "Column",
    "Expr",
    "Literal",
    "Scope",
    "SparkText",
    "UserFunction",
    "bind",
    "columns_of",
    "common_type",
    "conjuncts",
    "evaluate",
    "holds",
    "normalise",
    "parse",
    "show",
    "spark_name",
    "streams_of",
    "udf",
    "walk",
]
