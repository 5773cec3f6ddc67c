"""Spark's UDFs among the functions of a query: Spark calls them, over one stream or over the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from sqlglot import TokenType, exp, tokenize

from weir.errors import QueryError
from weir.expr.bind import SPECIAL
from weir.expr.build import callable_names
from weir.expr.dialect import Node, UntranslatedSpark, source_text
from weir.expr.scope import Scope
from weir.options import JoinOptions

T = TypeVar("T", bound=JoinOptions)
# What PySpark's functions `udf` and `pandas_udf` give to the objects that they make.
_MARKS = ("func", "returnType", "evalType", "asNondeterministic")


@dataclass(frozen=True, slots=True)
class SparkFunctions:
    """The names under which the session knows the UDFs of a query, by their names in the query."""

    registered: Mapping[str, str] = field(default_factory=dict)

    def rename(self, text: str) -> str:
        """Replace the names of the query's UDFs in a text by those that the session knows."""
        if not self.registered:
            return text
        tokens = tokenize(text, dialect=UntranslatedSpark)
        for token, after in reversed(list(pairwise(tokens))):
            name = self.registered.get(token.text.lower())
            if name is not None and after.token_type == TokenType.L_PAREN:
                text = text[: token.start] + name + text[token.end + 1 :]
        return text


def refuse_calls_of_spark(
    conditions: Iterable[Node], functions: SparkFunctions, scope: Scope, session: SparkSession
) -> None:
    """Refuse functions that only Spark can call in conditions over several streams, which it never sees."""
    own = {*callable_names(), *SPECIAL, *map(str.lower, scope.functions)}
    for call in (call for node in conditions for call in node.find_all(exp.Anonymous)):
        name = call.name
        is_lambda = call.find(exp.Lambda) is not None
        if name.lower() in own and not is_lambda:
            continue
        if name.lower() in functions.registered or session.catalog.functionExists(name):
            if call.find(exp.Column) is None:
                raise QueryError(
                    f"'{source_text(call, verified=False)}' in a condition reads no stream, so its value may "
                    "differ when a batch is repeated; compute it as a column of a stream before the join"
                )
            raise QueryError(
                f"'{source_text(call, verified=False)}' in a condition reads several streams, where Spark "
                f"calls no function; pass functions={{'{name}': weir.udf(...)}}, a function over Arrow arrays"
            )


def register_functions(options: T, session: SparkSession) -> tuple[T, SparkFunctions]:
    """Register the Spark UDFs among the functions of the options, and return the options without them."""
    given = options.functions or {}
    udfs: dict[str, Any] = {name: function for name, function in given.items() if is_spark_udf(function)}
    registered = {}
    for name, function in udfs.items():
        registered[name.lower()] = f"weir_{name}_{id(function):x}"
        session.udf.register(registered[name.lower()], function)
    rest = {name: function for name, function in given.items() if name not in udfs}
    return (replace(options, functions=rest) if udfs else options), SparkFunctions(registered)


def is_spark_udf(function: Any) -> bool:
    """True for what PySpark's `udf` and `pandas_udf` return."""
    return all(hasattr(function, mark) for mark in _MARKS)
